# SPDX-License-Identifier: BSD-3-Clause
"""What HA_NCCL_TEST_MAX_POLL costs and gives: how long one test() takes, and an iteration, for 1 to 256 (experiment E).

    a  rail0 ======== rail0  b      sendrecv of 1 MiB in messages of 4 KiB: 8 channels with 8 messages in flight each, on a connection
       rail1 -------- rail1         each, then sharing one in groups
       mgmt  -------- mgmt

Everything is right with any of them. The samples are for lab/plot. LAB_POLLS="4 32" names the values, LAB_ITERATIONS=N how many
iterations each has.
"""
import os

SET = "long"
POLLS = [int(n) for n in os.environ.get("LAB_POLLS", "1 4 16 32 64 256").split()]


def run(lab):
    for group in (1, 8):
        for most in POLLS:
            job = lab.perf("sendrecv", "-b", "1M", "-e", "1M", "-n", os.environ.get("LAB_ITERATIONS", "30"), "-w", "1", "--channels", 8, "--group", group, "--buffsize", "32K",
                           "--protocol", "simple", "--time-test", ends=4 if group == 8 else 32, HA_NCCL_TEST_MAX_POLL=most)
            lab.survived(job)
            result = job.report["results"][0] if job.report else {}
            test = result.get("test", {})
            lab.sample("tail", {"max_poll": most, "group": group, "p50_us": result.get("p50_us"), "p99_us": result.get("p99_us"),
                                **{"test_" + k: v for k, v in test.items()}})
            lab.say("at most %d, groups of %d: test() %s; an iteration %s us, p99 %s" % (
                most, group, test, result.get("p50_us"), result.get("p99_us")))
