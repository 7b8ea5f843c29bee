# SPDX-License-Identifier: BSD-3-Clause
"""Ports and cables flap at random, at any end, on any rail: one rail may be left alive, or none for a moment.

    a  rail0 =X=X=X= rail0  b       40 flaps of 0 to 500 ms, by port or by cable
       rail1 -X-X-X- rail1
       mgmt  ------- mgmt

The job goes on through all of it, nothing is wrong, and at the end everything is protected again.
"""
import random
import time

SET = "standard"
FLAPS = 40


def run(lab):
    job, dice = lab.traffic("allreduce", "64K"), random.Random(7)
    for _ in range(FLAPS):
        machine, rail, what = dice.choice(lab.machines), dice.randrange(lab.rails), dice.choice(("port", "cable"))
        lab.hurt(machine, what, rail, False)
        time.sleep(dice.random() * 0.5)
        lab.hurt(machine, what, rail, True)
        time.sleep(dice.random() * 0.3)
    job.wait_calm()
    lab.survived(job, failovers=4)
