# SPDX-License-Identifier: BSD-3-Clause
"""Both rails are lost at the same time, and one returns; then the other.

    a  rail0 ==X== rail0  b         both down at a; rail1 up after 3 s; rail0 up later
       rail1 --X-- rail1            then the same with cables, at b
       mgmt  ----- mgmt             the out-of-band socket is

Nothing moves while no path is there; the job goes on when one is, and is protected when both are.
"""
import time

SET = "standard"


def run(lab):
    job = lab.traffic("allreduce", "64K")
    for machine, what in ((lab.a, "port"), (lab.b, "cable")):
        for rail in (0, 1):
            lab.hurt(machine, what, rail, False)
        time.sleep(3)
        back = lab.hurt(machine, what, 1, True)
        lab.wait(lambda since=back: sum(e["host_ns"] > since for e in job.events(event="recovered")) >= lab.ends,
                 "nothing came back")
        time.sleep(1)
        back = lab.hurt(machine, what, 0, True)
        job.wait_protected(after=back)
    lab.survived(job, failovers=4)
