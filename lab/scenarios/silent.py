# SPDX-License-Identifier: BSD-3-Clause
"""A path loses everything silently: what one end sends vanishes (netem).

    a  rail0 ==> (lost) rail0  b
       rail1 ---------- rail1
       mgmt  ---------- mgmt

The path's silence is seen early, by a look at it and at the standby. With HA_NCCL_SILENCE_MS=0 nobody looks: then the kernel's
NIC gives up after its window of 0.47 s (HA_NCCL_QP_RETRY_CNT=6). The job goes on over the other rail in both cases, no byte is wrong.
The other end and a NIC that never gives up: silent_for_ever.
"""
SET = "core"


def run(lab):
    job = lab.traffic("allreduce", "64K")
    lab.around(job, "silent_seen_early", lab.a, "netem", job.primary(lab.a), "loss 100%", None)
    lab.survived(job, failovers=4)
    job = lab.traffic("allreduce", "64K", HA_NCCL_SILENCE_MS=0, HA_NCCL_QP_RETRY_CNT=6)
    lab.around(job, "silent_out", lab.a, "netem", job.primary(lab.a), "loss 100%", None)
    lab.survived(job, failovers=4)
