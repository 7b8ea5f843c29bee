# SPDX-License-Identifier: BSD-3-Clause
"""Chaos: random faults at random ends, random traffic, for LAB_CHAOS seconds (an hour).

    a  rail0 =?=?=?= rail0  b       ports, cables, loss, delay, black holes, stopped ranks, a hanging machine;
       rail1 =?=?=?= rail1          jobs of random operations, sizes and channels, one after the other
       mgmt  ------- mgmt

Nothing is ever wrong, no connection is lost, and nothing grows: memory, descriptors, queue pairs and registrations of the
machines are what they were.
"""
import os
import random
import time

SET = "long"
SECONDS = float(os.environ.get("LAB_CHAOS", "3600"))
SEED = int(os.environ.get("LAB_SEED", "1"))
JOB_S = 60


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


def used(lab, machine):
    """KiB of memory that are not free; descriptors; processes."""
    text = machine.run("free | awk '/Mem/ { print $2 - $7 }'; cat /proc/sys/fs/file-nr | cut -f1; ps | wc -l")
    return dict(zip(("kib", "files", "processes"), map(int, text.split())))


def run(lab):
    dice, end, before, jobs, faults = random.Random(SEED), time.monotonic() + SECONDS, None, 0, 0
    while time.monotonic() < end:
        job = lab.traffic(dice.choice(("allreduce", "sendrecv", "alltoall")), dice.choice(("8", "4K", "64K", "512K")),
                          "--channels", dice.choice((1, 2)), ends=0)
        stop = min(end, time.monotonic() + JOB_S)
        while time.monotonic() < stop:
            fault(lab, job, dice)
            faults += 1
            time.sleep(dice.random() * 2)
        if not lab.survived(job):
            break
        jobs += 1
        lab.flat("job %d" % jobs)
        now = {m.name: used(lab, m) for m in lab.machines}
        lab.sample("used", now)
        before = before or now
        lab.measure(jobs=jobs, faults=faults)
    for machine in lab.machines:
        first, last = before[machine.name], lab.measures["used"][-1][machine.name]
        lab.must(last["kib"] - first["kib"] < 16384 and last["files"] - first["files"] < 64,
                 "%s: nothing grows (%s, then %s)" % (machine.name, first, last))
