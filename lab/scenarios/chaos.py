# SPDX-License-Identifier: BSD-3-Clause
"""Chaos: random faults at random ends, random traffic, for LAB_CHAOS seconds (an hour).

    a  rail0 =?=?=?= rail0  b       ports, cables, loss, delay, black holes, stopped ranks, a hanging machine;
       rail1 =?=?=?= rail1          jobs of random operations, sizes and channels, one after the other
       mgmt  ------- mgmt

Nothing is ever wrong, no connection is lost, and nothing grows: neither the ranks during a job (memory, descriptors, threads, queue
pairs, completion queues, protection domains; registrations, once both devices have had a turn), nor the machines from job to job.
LAB_SEED draws another hour.
"""
import os
import random
import time

from channel import Dead

SET = "long"
SECONDS = float(os.environ.get("LAB_CHAOS", "3600"))
SEED = int(os.environ.get("LAB_SEED", "1"))
JOB_S = 150
RANK_KIB, MACHINE_KIB = 4096, 16384  # what may come and go: buffers of a kernel, a measurement's samples


def fault(lab, job, dice):
    """One fault and its end."""
    machine, rail, hold = dice.choice(lab.machines), dice.randrange(lab.rails), dice.random() * dice.choice((0.2, 1, 3))
    kind = dice.choice(("port", "port", "cable", "cable", "silent", "netem", "blackhole", "stop", "hang"))
    if kind in ("port", "cable"):
        lab.hurt(machine, kind, rail, False)
        time.sleep(hold)
        lab.hurt(machine, kind, rail, True)
    elif kind == "stop":
        lab.say("%s: SIGSTOP" % machine.name)
        job.ranks[machine.number - 1].kill(19)
        time.sleep(hold)
        job.ranks[machine.number - 1].kill(18)
    elif kind == "hang":
        lab.say("%s: hangs" % machine.name)
        machine.hang(True)
        time.sleep(min(hold, 2))
        machine.hang(False)
    else:
        how = {"silent": "loss 100%", "netem": dice.choice(("loss 2%", "delay 10ms", "loss 5% delay 3ms"))}.get(kind)
        lab.hurt(machine, "netem" if how else "blackhole", rail, how or True)
        time.sleep(hold)
        lab.hurt(machine, "netem" if how else "blackhole", rail, None if how else False)


def holds(machine, job):
    """What the rank on a machine holds."""
    if job.ranks[machine.number - 1].ended.is_set():
        raise Dead("the rank on %s has ended: %s" % (machine.name, job.last_lines()))
    text = machine.run("pid=$(pidof ha | cut -d' ' -f1); awk '/^VmRSS|^Threads/ { print $2 }' /proc/$pid/status; "
                       "ls /proc/$pid/fd | wc -l; for o in qp cq pd mr; do rdma resource show $o | grep -c 'pid [0-9]'; done; true")
    return dict(zip(("kib", "threads", "files", "qp", "cq", "pd", "mr"), map(int, text.split())))


def used(machine):
    """KiB of memory that are not free; descriptors; processes."""
    text = machine.run("free | awk '/Mem/ { print $2 - $7 }'; cat /proc/sys/fs/file-nr | cut -f1; ps | wc -l")
    return dict(zip(("kib", "files", "processes"), map(int, text.split())))


def same(first, last):
    """Did a rank come back to what it held? Registered lazily: buffers of a job are known to one device first, then
    to both; and one thread more, the reaper, since the first fault."""
    return last["kib"] - first["kib"] < RANK_KIB and last["mr"] <= 2 * first["mr"] and \
        last["threads"] <= first["threads"] + 1 and all(last[k] <= first[k] for k in ("files", "qp", "cq", "pd"))


def settled(lab, machine, job, first):
    """What incarnations that are over have left behind is destroyed by a thread that takes its time: a minute at most."""
    for _ in range(60):
        last = holds(machine, job)
        if same(first, last):
            break
        time.sleep(1)
    lab.sample("rank", [machine.name, first, last])
    lab.must(same(first, last), "%s: the rank holds what it held: %s, then %s" % (machine.name, first, last))


def one(lab, dice, stop):
    """One job under faults until `stop`. False: there is no point in going on."""
    job = lab.traffic(dice.choice(("allreduce", "sendrecv", "alltoall")), dice.choice(("8", "4K", "64K", "512K")),
                      "--channels", dice.choice((1, 2)), ends=0)
    lab.ends = len(job.states())
    job.wait_calm()
    first, faults = {m.name: holds(m, job) for m in lab.machines}, 0
    while time.monotonic() < stop:
        fault(lab, job, dice)
        faults += 1
        time.sleep(dice.random() * 2)
    job.wait_calm()
    for machine in lab.machines:
        settled(lab, machine, job, first[machine.name])
    return lab.survived(job), faults


def run(lab):
    dice, end, before, jobs, faults = random.Random(SEED), time.monotonic() + SECONDS, None, 0, 0
    while time.monotonic() < end:
        well, hurt = one(lab, dice, min(end, time.monotonic() + JOB_S))
        jobs, faults = jobs + 1, faults + hurt
        lab.measure(jobs=jobs, faults=faults)
        lab.flat("job %d" % jobs)
        now = {m.name: used(m) for m in lab.machines}
        lab.sample("used", now)
        lab.say("job %d, %d faults so far; the machines: %s" % (jobs, faults, now))
        before = before or now
        if not well:
            break
    lab.measure(elapsed_s=round(time.monotonic() - lab.begin))
    for machine in lab.machines:
        first, last = before[machine.name], now[machine.name]
        lab.must(last["kib"] - first["kib"] < MACHINE_KIB and last["files"] - first["files"] < 64 and
                 last["processes"] <= first["processes"] + 4, "%s: nothing grows (%s, then %s)" % (machine.name, first, last))
