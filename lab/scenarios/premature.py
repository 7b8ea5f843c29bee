# SPDX-License-Identifier: BSD-3-Clause
"""A time-out shorter than the way there and back: nearly everything is sent again for no reason, and rdma_rxe loses count of its packets.

    a  rail0 ==delay 5 ms== rail0  b    time-out of a jiffy (4 ms); 1 MB messages, adaptive over both rails; nothing is lost
       rail1 ==delay 5 ms== rail1
       mgmt  -------------- mgmt

rdma_rxe of Linux 6.1 gives packets of such a retransmission other numbers than the first time (docs/lab.md), until its peer refuses
one: "remote invalid request". The rail is lost then, the connection is not. LAB_ROUNDS=N jobs of 15 s.
"""
import os
import time

SET = "long"
SETTINGS = {"HA_NCCL_POLICY": "adaptive", "HA_NCCL_FORCE_IB_TIMEOUT": 1, "HA_NCCL_HEARTBEAT_MS": 60000, "HA_NCCL_RTO_MS": 5000}


def run(lab):
    for machine in lab.machines:
        for rail in range(lab.rails):
            lab.hurt(machine, "netem", rail, "delay 5ms")
    refused = 0
    for _ in range(int(os.environ.get("LAB_ROUNDS", "4"))):
        job = lab.traffic("sendrecv", "1M", "--dev", "0+1", **SETTINGS)
        time.sleep(15)
        lab.survived(job)
        refused += sum("remote invalid request" in e.get("text", "") for e in job.events(event="suspected"))
    lab.measure(refused=refused)
    lab.say("%d rails lost because a request was refused" % refused)
