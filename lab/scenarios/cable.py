# SPDX-License-Identifier: BSD-3-Clause
"""Cables are pulled by the hypervisor: the carrier goes at one end (a switch between them), then at both (a plain cable).

    a  rail0 =X====X= rail0  b      pulled at a; pulled at b; pulled at both
       rail1 -------- rail1
       mgmt  -------- mgmt

The job goes on over the other rail each time, no byte is wrong.
"""
SET = "core"


def run(lab):
    job = lab.traffic("sendrecv", "256K")
    for machine in (lab.a, lab.b):
        lab.around(job, "cable", machine, "cable", job.primary(machine), False, True)
    rail = job.primary(lab.a)
    at = lab.hurt(lab.a, "cable", rail, False)
    lab.hurt(lab.b, "cable", rail, False)
    job.wait_moved(at)
    lab.sample("cable_at_both", (at, job.last("failed_over") - at))
    lab.hurt(lab.a, "cable", rail, True)
    back = lab.hurt(lab.b, "cable", rail, True)
    job.wait_protected(after=back)
    lab.survived(job, failovers=12)
