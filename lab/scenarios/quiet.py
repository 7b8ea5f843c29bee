# SPDX-License-Identifier: BSD-3-Clause
"""All-reduce over the system's libibverbs and the kernel's rdma_rxe, with and without heartbeats and standby.

    a  rail0 ======== rail0  b      rdma_rxe on each, MTU 4200
       rail1 -------- rail1         the standby
       mgmt  -------- mgmt

Nothing is done to it: every size from 8 B to 1 MiB is right, both ends say `protected`, nobody fails over.
"""
SET = "core"
BUSY = 0.3  # share of the time for which a machine waits for a processor of the host; above it a silence says nothing about a path


def run(lab):
    moment = lab.waits()
    job = lab.perf("allreduce", "-b", "8", "-e", "1M", "-f", "8", "-n", "5", "-w", "1")
    lab.survived(job)
    lab.must(len(job.events(event="protected")) >= 4, "both ends of both connections say that they are protected")
    said = [e for e in job.events(event="suspected") if e["cause"] not in ("timeout", "heartbeat", "work_failed")]
    waited = lab.share_waited(moment)
    lab.measure(waited=round(waited, 2))
    if said and waited > BUSY:
        lab.say("machine too busy: a machine's thread waited for a processor %d %% of the time; not judged: %s" % (100 * waited, said))
        said = []
    lab.must(not said + lab.false_alarms(job), "nobody suspects a path while every machine runs")
    job = lab.perf("sendrecv", "-b", "64K", "-e", "64K", "-n", "10", ends=0, HA_NCCL_ENABLE_BACKUP=0)
    lab.survived(job)
    lab.must(not job.events(event="protected"), "without HA_NCCL_ENABLE_BACKUP nothing is protected")
