# SPDX-License-Identifier: BSD-3-Clause
"""A path works and is far too slow: late packets, or many that are lost. With HA_NCCL_SLOW_FACTOR=4 the traffic leaves it.

    a  rail0 ==(netem)==> rail0  b   what a sends: 60 ms late, then 15 % of it lost
       rail1 ----------- rail1       the standby, which carries meanwhile
       mgmt  ----------- mgmt

Without HA_NCCL_SILENCE_MS, which leaves such a path first: a `slow` event at the sender, and `failed_back` when the path is
well. (The other connection, whose acknowledgements go that way, may fail over.)
"""
import time

SET = "long"
LEARN_S = 8  # how long messages usually take
KINDS = ("delay 60ms", "loss 15%")


def run(lab):
    for how in KINDS:
        job = lab.traffic("sendrecv", "64K", HA_NCCL_SLOW_FACTOR=4, HA_NCCL_SILENCE_MS=0)
        rail = job.primary(lab.a)
        time.sleep(LEARN_S)
        lab.must(not job.events(event="slow"), "a path that is well is left by nobody")
        began = lab.hurt(lab.a, "netem", rail, how)
        slow = job.wait_event("slow", machine=lab.a)[0]
        lab.sample("left_after_s", [how, (slow["host_ns"] - began) / 1e9])
        lab.say("%s: %s" % (how, slow["text"]))
        lab.a.netem(rail, None)
        job.wait_event("failed_back", machine=lab.a, limit=240)
        lab.survived(job)
