# SPDX-License-Identifier: BSD-3-Clause
"""A port goes down while connections are being closed.

    a  rail0 ==X== rail0  b         at the moment the traffic is told to end, and some milliseconds around it
       rail1 ----- rail1
       mgmt  ----- mgmt

Every rank ends well (what it was to do is done), nobody hangs, nothing is left.
"""
import random
import time

SET = "standard"
ROUNDS = 5


def run(lab):
    dice = random.Random(5)
    for i in range(ROUNDS):
        job = lab.traffic("allreduce", "64K")
        machine, what, rail = dice.choice(lab.machines), ("port", "cable")[i % 2], job.primary(lab.a)
        job.stop()
        time.sleep(dice.random() * 0.6)
        lab.hurt(machine, what, rail, False)
        lab.survived(job)
        lab.hurt(machine, what, rail, True)
        lab.flat("a close that was hurt")
