# SPDX-License-Identifier: BSD-3-Clause
"""Three rails, of which two are lost: the data moves to the second, then to the third.

    a  rail0 ==X== rail0  b         down at a, then
       rail1 --X-- rail1            the one that carries, at b
       rail2 ----- rail2            is left
       mgmt  ----- mgmt

The job goes on each time, nothing is wrong; when all are back it is protected.
"""
import time

SET = "standard"
RAILS = 3


def run(lab):
    job = lab.traffic("allreduce", "64K")
    down = []
    for machine in (lab.a, lab.b):
        rail = job.primary(machine)
        at = lab.hurt(machine, "port", rail, False)
        down.append((machine, rail))
        job.wait_moved(at)
        lab.say("events so far: %s" % [(e["machine"], e["event"], e.get("device")) for e in job.events()][-6:])
        job.wait_protected(after=at) if len(down) == 1 else time.sleep(1)
    for machine, rail in down:
        back = lab.hurt(machine, "port", rail, True)
    job.wait_protected(after=back)
    lab.survived(job, failovers=8)
