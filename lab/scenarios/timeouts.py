# SPDX-License-Identifier: BSD-3-Clause
"""Which time-out, how many retries, which RTO: false alarms against the time to recover (experiment B).

    a  rail0 ==(netem)== rail0  b   timeout 12, 14, 16 x retry_cnt 3, 6, 7 x RTO 1000, 2000 ms: first 5 s of 10 % loss with
       rail1 ----------- rail1      5 ms of delay at both ends, in which every suspicion is a false one; then a silent cut at a
       mgmt  ----------- mgmt

Nothing is wrong in any of them. With retry_cnt 7 rdma_rxe never gives up, and the RTO is what is left. An RTO below twice the NIC's
window is raised to that by the plugin. The samples are for lab/plot. LAB_TIMEOUTS="12" takes the cells of that time-out only.
"""
import os
import time

SET = "long"
LOSS_S = 5


def run(lab):
    for timeout in map(int, os.environ.get("LAB_TIMEOUTS", "12 14 16").split()):
        for retries in (3, 6, 7):
            for rto in (1000, 2000):
                cell(lab, timeout, retries, rto)


def cell(lab, timeout, retries, rto):
    job = lab.traffic("sendrecv", "16K", HA_NCCL_FORCE_IB_TIMEOUT=timeout, HA_NCCL_QP_RETRY_CNT=retries, HA_NCCL_RTO_MS=rto)
    for machine in lab.machines:
        lab.hurt(machine, "netem", job.primary(lab.a), "loss 10% delay 5ms")
    time.sleep(LOSS_S)
    for machine in lab.machines:
        for rail in range(lab.rails):
            machine.netem(rail, None)
    false, told = len(lab.false_alarms(job)), len(job.events(event="suspected"))
    job.wait_protected()
    at = lab.hurt(lab.a, "netem", job.primary(lab.a), "loss 100%")
    job.wait_moved(at)
    took = (job.last("failed_over") - at) / 1e6
    still = lab.stood_still(at, job.last("failed_over"))
    for rail in range(lab.rails):
        lab.a.netem(rail, None)
    lab.survived(job)
    lab.sample("grid", {"timeout": timeout, "retry_cnt": retries, "rto_ms": rto, "false_alarms": false, "suspected": told,
                        "window_ms": 4.096e-3 * 2 ** timeout * (retries + 1), "recovered_ms": took, "still_ms": still})
