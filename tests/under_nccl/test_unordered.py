#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""NCCL over NICs whose messages arrive in any order (NCCL_IB_OOO_RQ): softroce behind a library that mixes what is posted
(unordered/unordered.c). Every element is compared.

Usage: test_unordered.py BUILD VERSION CASE
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from job import Job, expect, main, read_events  # noqa: E402

OVERTAKEN = 100  # work requests, at the least: of the shortest run here there were 600


class UnorderedJob(Job):
    """An all-reduce with this protocol and size, until the test ends it."""

    def __init__(self, build, version, protocol, size):
        super().__init__(build, version, "all_reduce", "-b", size, "-e", size, settings={
            "HA_NCCL_VERBS": os.path.join(build, "tests/under_nccl/unordered/libmlx5.so.1"), "NCCL_IB_OOO_RQ": "1",
            "NCCL_PROTO": protocol, "NCCL_ALGO": "Ring"})

    def own_settings(self):
        return {**super().own_settings(), "UNORDERED_REPORT": os.path.join(self.folder, "overtaken")}

    def check_order(self):
        """Each connection is of that kind, and messages did overtake each other."""
        connected = [one for one in read_events(os.path.join(self.folder, "events")) if one["event"] == "connected"]
        expect(connected, "no connection was made")
        for one in connected:
            expect("messages in any order" in one["text"], "a connection keeps the order: %s", one["text"])
        with open(os.path.join(self.folder, "overtaken"), encoding="utf-8") as file:
            overtaken = sum(int(line.split()[1]) for line in file)
        expect(overtaken >= OVERTAKEN, "%d work requests overtook others", overtaken)


def run(build, version, protocol, size):
    with UnorderedJob(build, version, protocol, size) as job:
        for _ in range(20):
            job.wait_iterations("in any order")
        job.end()
        job.check_order()


def simple(build, version):
    run(build, version, "Simple", "1M")


def ll(build, version):
    """Receives are complete when their data shows, whatever arrives of them later."""
    run(build, version, "LL", "8K")


def cut(build, version):
    """A cable, and the other one when it is back."""
    with UnorderedJob(build, version, "Simple", "1M") as job:
        job.wait("connections are protected", lambda: job.events("protected") >= 4)
        for nic in ("soft0", "soft1"):
            failed, protected = job.events("failed_over"), job.events("protected")
            job.tool("cut", nic)
            job.wait("%s is left" % nic, lambda: job.events("failed_over") > failed)
            job.wait_iterations("without %s" % nic)
            job.tool("heal", nic)
            job.wait("connections are protected again", lambda: job.events("protected") > protected)
        job.end()
        job.check_order()


main({"simple": simple, "ll": ll, "cut": cut})
