# SPDX-License-Identifier: BSD-3-Clause
"""All-reduce over the system's libibverbs and the kernel's rdma_rxe, with and without heartbeats and standby.

    a  rail0 ======== rail0  b      rdma_rxe on each, MTU 4200
       rail1 -------- rail1         the standby
       mgmt  -------- mgmt

Nothing is done to it: every size from 8 B to 1 MiB is right, both ends say `protected`, nobody fails over.
"""
from lab import NOTHING_CAME_BACK

SET = "core"


def run(lab):
    moment = lab.waits()
    job = lab.perf("allreduce", "-b", "8", "-e", "1M", "-f", "8", "-n", "5", "-w", "1")
    lab.survived(job)
    lab.must(len(job.events(event="protected")) >= 4, "both ends of both connections say that they are protected")
    others = [e for e in job.events(event="suspected") if e["cause"] not in NOTHING_CAME_BACK]
    others = lab.unless_busy(others, moment)
    lab.must(not others + lab.false_alarms(job, moment), "nobody suspects a path while every machine runs")
    job = lab.perf("sendrecv", "-b", "64K", "-e", "64K", "-n", "10", ends=0, HA_NCCL_ENABLE_BACKUP=0)
    lab.survived(job)
    lab.must(not job.events(event="protected"), "without HA_NCCL_ENABLE_BACKUP nothing is protected")
