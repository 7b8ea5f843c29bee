# SPDX-License-Identifier: BSD-3-Clause
"""What HA_NCCL_TEST_MAX_POLL costs and gives: the tail of an iteration for 4, 16, 64, 256 (experiment E).

    a  rail0 ======== rail0  b      sendrecv of 8 channels that share a connection in groups
       rail1 -------- rail1
       mgmt  -------- mgmt
"""
SET = "long"


def run(lab):
    for most in (4, 16, 32, 64, 256):
        job = lab.perf("sendrecv", "-b", "32K", "-e", "32K", "-n", "100", "-w", "5", "--channels", 8, "--group", 8,
                       HA_NCCL_TEST_MAX_POLL=most)
        lab.survived(job)
        result = job.report["results"][0] if job.report else {}
        lab.sample("tail", {"max_poll": most, "p50_us": result.get("p50_us"), "p99_us": result.get("p99_us")})
