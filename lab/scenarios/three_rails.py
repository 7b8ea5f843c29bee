# SPDX-License-Identifier: BSD-3-Clause
"""Three rails, of which two are lost, whichever: the data goes over the third. Later all are back.

    a  rail0 ==X== rail0  b         the standby goes down at a: the third rail becomes the standby;
       rail1 --X-- rail1            then the one that carries is pulled at b, and all return;
       rail2 ----- rail2            then two at once, one at each end, until each rail was the one that is left
       mgmt  ----- mgmt

The rails are apart: a NIC reaches only the one on the same cable. The job goes on, nothing is wrong; when all are back it is protected.
"""
SET = "standard"
RAILS = 3


def run(lab):
    job = lab.traffic("allreduce", "64K")
    for number, (left, first, second) in enumerate(((2, 1, 0), (1, 2, 0), (0, 1, 2), (2, 0, 1))):
        machine, other = (lab.a, lab.b) if number % 2 == 0 else (lab.b, lab.a)
        at = lab.hurt(machine, "port", first, False)
        if number == 0:
            job.wait_protected(after=at)
        lab.hurt(other, "cable", second, False)
        before = job.progress()
        lab.wait(lambda b=before: job.progress() > b + 1, "the job stands still, and rail %d is left" % left)
        lab.hurt(machine, "port", first, True)
        lab.hurt(other, "cable", second, True)
        job.wait_calm()
    lab.survived(job, failovers=8)
