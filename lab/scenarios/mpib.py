# SPDX-License-Identifier: BSD-3-Clause
"""MPIB's testing matrix: within an island, between islands, both at once, and by an agent's hints; bytes counted on the wire.

         b        rail0 is the scale-out NIC (SOUT), rail1 the scale-up NIC (SUP), joined by a switch each; a ring a > b > c > a.
       /   \\     The islands come from the machines' addresses in the management network, 10.0.0.1, .2 and .3:
      a --- c     prefix 24: one island; 32: three; 31: a by itself, b and c together

Mode 0: within an island everything goes over SUP, between islands over SOUT and SUP has no queue pair at all. Mode 1: as ha-agent's hint
says. Each within 1 %.
"""
import time

SET = "long"
MACHINES = 3
SLACK = 0.01
IN_FLIGHT = 64 * 4096  # bytes that a queue pair of rdma_rxe has out at most
LONG_TIMEOUTS = {"HA_NCCL_ENABLE_BACKUP": 0, "HA_NCCL_FORCE_IB_TIMEOUT": 18, "HA_NCCL_AGENT_STALE_MS": 60000, "MPIB_HCA_SOUT": "rxe0", "MPIB_HCA_SUP": "rxe1"}
MATRIX = (("within an island", 24, (1, 1, 1)), ("between islands", 32, (0, 0, 0)), ("both at once", 31, (0, 1, 0)))


def queue_pairs(machine):
    return int(machine.run("rdma resource show qp | grep -v 'type GSI' | grep -c 'link rxe1/'; true"))


def look(lab, what, job, parts, before, again):
    """SUP's part of what each machine has sent since `before`, after the job."""
    lab.survived(job)
    again = lab.sent_again((0, 1))["sent_again"] - again
    for machine, part, was in zip(lab.machines, parts, before):
        _, sout, sup = [now - then for now, then in zip(machine.sent(), was)]
        found = sup / (sout + sup)
        lab.sample("matrix", {"what": what, "machine": machine.name, "sup": round(found, 4), "should": part, "mb": round((sout + sup) / 1e6, 1)})
        lab.must(abs(found - part) <= SLACK + again * IN_FLIGHT / (sout + sup),
                 "%s: %s sends %.4f over SUP, not %.4f (sent again %d times)" % (what, machine.name, found, part, again))


def run(lab):
    for what, prefix, parts in MATRIX:
        before, again = [m.sent() for m in lab.machines], lab.sent_again((0, 1))["sent_again"]
        job = lab.traffic("sendrecv", "1M", MPIB_MODE=0, MPIB_ISLAND_PREFIX_LEN=prefix, **LONG_TIMEOUTS)
        made = [queue_pairs(m) for m in lab.machines]
        lab.must(all(bool(n) == (prefix != 32 and not (prefix == 31 and m is lab.a)) for n, m in zip(made, lab.machines)),
                 "%s: queue pairs on SUP only where it is used (%s)" % (what, made))
        time.sleep(6)
        look(lab, what, job, parts, before, again)
    daemons = [m.start_command("exec /hawser/ha-agent --metrics none") for m in lab.machines]
    time.sleep(1)
    for hint in (378, 1024):
        for machine in lab.machines:
            machine.run("/hawser/ha agent set '*' '*' %d" % hint)
        job = lab.traffic("sendrecv", "1M", MPIB_MODE=1, **LONG_TIMEOUTS)
        job.wait_event("advice", count=len(lab.machines), cause="followed")
        before, again = [m.sent() for m in lab.machines], lab.sent_again((0, 1))["sent_again"]
        time.sleep(6)
        look(lab, "hint %d" % hint, job, [hint / 1024] * 3, before, again)
    for daemon in daemons:
        daemon.kill(15)
        lab.must(daemon.wait(20) == 0, "the agent ends well: %s" % daemon.output[-300:])
