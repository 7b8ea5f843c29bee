# SPDX-License-Identifier: BSD-3-Clause
"""The primary's port goes down while connections are being made.

    a  rail0 ==X== rail0  b         down at b at a random moment of the first second, up 1.5 s later
       rail1 ----- rail1
       mgmt  ----- mgmt

The job runs to its end with nothing wrong, or every rank ends with a line that says why: nobody hangs, nothing is left.
"""
import random
import time

SET = "standard"
ROUNDS = 6


def run(lab):
    dice = random.Random(3)
    ends = []
    for _ in range(ROUNDS):
        job = lab.perf("allreduce", "-b", "64K", "-e", "64K", "-n", "10", HA_NCCL_CONNECT_TIMEOUT_MS=20000)
        time.sleep(dice.random() * 1.2)
        machine, what = dice.choice(lab.machines), dice.choice(("port", "cable"))
        lab.hurt(machine, what, 0, False)
        time.sleep(1.5)
        lab.hurt(machine, what, 0, True)
        well = job.end()
        ends.append(well)
        lab.must(job.wrong == 0, "no element is wrong")
        said = job.last_lines() + " ".join(e.get("text", "") for e in job.events(event="lost"))
        lab.must(well or said, "a rank that ends says why")
        if not well:
            lab.say("ended early: " + said[-300:])
            lab.measures.setdefault("errors", []).append(said[-300:])
        lab.flat("a connection that was hurt while it was made")
    lab.measure(survived=sum(ends), of=ROUNDS)
    lab.say("%d of %d jobs ran to their end" % (sum(ends), ROUNDS))
