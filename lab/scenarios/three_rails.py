# SPDX-License-Identifier: BSD-3-Clause
"""Three rails, of which two are lost, whichever: the data goes over the third. Later all are back.

    a  rail0 ==X== rail0  b         the rail that carries goes down at a, then
       rail1 ----- rail1            the one that nothing uses, at b; the standby carries
       rail2 --X-- rail2            then, when it is protected again, the standby and the unused one
       mgmt  ----- mgmt

A connection has two paths, whatever the number of NICs: the third NIC is for those whose standby has not come up. The job goes on,
nothing is wrong; when all are back it is protected.
"""
SET = "standard"
RAILS = 3


def run(lab):
    job = lab.traffic("allreduce", "64K")
    for machine, other in ((lab.a, lab.b), (lab.b, lab.a)):
        rail, unused = job.primary(machine), 2
        at = lab.hurt(machine, "port", rail, False)
        lab.hurt(other, "cable", unused, False)
        job.wait_moved(at)
        before = job.progress()
        lab.wait(lambda b=before: job.progress() > b, "the job stands still on the rail that is left")
        lab.hurt(machine, "port", rail, True)
        lab.hurt(other, "cable", unused, True)
        job.wait_calm()
    lab.survived(job, failovers=8)
