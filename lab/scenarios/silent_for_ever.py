# SPDX-License-Identifier: BSD-3-Clause
"""A path loses everything silently, and the NIC never gives up: what b sends vanishes (netem), then what a receives (a filter).

    a  rail0 (lost) <== rail0  b      what b sends; what a receives
       rail1 ---------- rail1
       mgmt  ---------- mgmt

With HA_NCCL_SILENCE_MS=0 nobody looks for silence. With HA_NCCL_QP_RETRY_CNT=6 the kernel's NIC gives up after its window, with 7
never, and the soft time-out is what is left. The job goes on over the other rail in both cases, no byte is wrong.
"""
SET = "standard"


def run(lab):
    job = lab.traffic("allreduce", "64K", HA_NCCL_SILENCE_MS=0, HA_NCCL_QP_RETRY_CNT=6)
    lab.around(job, "silent_out", lab.b, "netem", job.primary(lab.b), "loss 100%", None)
    lab.survived(job, failovers=4)
    job = lab.traffic("allreduce", "64K", HA_NCCL_SILENCE_MS=0)
    lab.around(job, "silent_in_for_ever", lab.a, "blackhole", job.primary(lab.a), True, False)
    lab.survived(job, failovers=4)
