#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Where the plugin finds its NICs under NCCL, and what is said where it finds none.

Usage: test_devices.py BUILD VERSION CASE
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from job import Job, expect, main  # noqa: E402


def system_verbs(build, version):
    """Under softroce-run, with the system's verbs: the plugin finds the NICs where NCCL's own transport finds them."""
    with Job(build, version, "all_reduce", "-b", "1M", "-e", "1M", settings={"HA_NCCL_VERBS": "system"},
             wrapper=[os.path.join(build, "softroce-run")]) as job:
        job.wait_sent("soft0", 16 << 20)
        job.end()


def no_device(build, version):
    """The one line of a failed run says what the plugin said."""
    with Job(build, version, "all_reduce", "-b", "8", "-e", "8", settings={"NCCL_IB_HCA": "=none"}) as job:
        expect(job.status() == 1, "it ends well without a device")
        errors = [line for line in job.printed().splitlines() if line.startswith("ha nccl: rank")]
        expect(len(errors) == 1 and "NCCL_IB_HCA==none leaves none of the 2 devices" in errors[0],
               "the error does not say what to do: %s", errors)


main({"system_verbs": system_verbs, "no_device": no_device})
