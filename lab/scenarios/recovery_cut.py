# SPDX-License-Identifier: BSD-3-Clause
"""Faults while the last one is being recovered from: the standby too, the returning rail again, at random moments.

    a  rail0 ==X=X=X rail0  b       down at a, then within 0 to 300 ms: down at b, or the other rail at either end,
       rail1 --X---- rail1          or up and down again
       mgmt  ------- mgmt

Whatever the order, everything comes back in the end and nothing is wrong.
"""
import random
import time

SET = "standard"
ROUNDS = 8


def run(lab):
    job, dice = lab.traffic("sendrecv", "128K"), random.Random(4)
    for _ in range(ROUNDS):
        hurt, rail = [], job.primary(lab.a)
        for machine, r, up in dice.choice((((lab.a, rail, False), (lab.b, rail, False)),
                                           ((lab.a, rail, False), (lab.b, 1 - rail, False)),
                                           ((lab.a, rail, False), (lab.a, rail, True), (lab.a, rail, False)),
                                           ((lab.b, rail, False), (lab.b, rail, True), (lab.a, 1 - rail, False)))):
            lab.hurt(machine, dice.choice(("port", "cable")) if up is False else "port", r, up)
            hurt.append((machine, r))
            time.sleep(dice.random() * 0.3)
        time.sleep(dice.random())
        for machine, r in hurt:
            lab.hurt(machine, "cable", r, True)
            lab.hurt(machine, "port", r, True)
        job.wait_calm()
    lab.survived(job, failovers=2 * ROUNDS)
