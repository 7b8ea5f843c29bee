# SPDX-License-Identifier: BSD-3-Clause
"""A path loses everything silently: what one end sends vanishes (netem), then what one end receives (a filter).

    a  rail0 ==> (lost) rail0  b      what a sends; what b sends; what a receives
       rail1 ---------- rail1
       mgmt  ---------- mgmt

The path's silence is seen early, by a look at it and at the standby. With HA_NCCL_SILENCE_MS=0 nobody looks: then the kernel's
NIC gives up after its window of 0.47 s (HA_NCCL_QP_RETRY_CNT=6), or never (7), and the soft time-out is what is left. The job goes
on over the other rail in each case, no byte is wrong.
"""
SET = "core"


def run(lab):
    job = lab.traffic("allreduce", "64K")
    lab.around(job, "silent_seen_early", lab.a, "netem", job.primary(lab.a), "loss 100%", None)
    lab.survived(job, failovers=4)
    job = lab.traffic("allreduce", "64K", HA_NCCL_SILENCE_MS=0, HA_NCCL_QP_RETRY_CNT=6)
    lab.around(job, "silent_out", lab.a, "netem", job.primary(lab.a), "loss 100%", None)
    lab.around(job, "silent_out", lab.b, "netem", job.primary(lab.b), "loss 100%", None)
    lab.survived(job, failovers=8)
    job = lab.traffic("allreduce", "64K", HA_NCCL_SILENCE_MS=0)
    lab.around(job, "silent_in_for_ever", lab.a, "blackhole", job.primary(lab.a), True, False)
    lab.survived(job, failovers=4)
