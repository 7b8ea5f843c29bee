#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""NCCL's profiler gets the network's events through the plugin: each queue pair's event is begun and ended, under the step that it is
part of, and what failed over when a cable is cut is there, from which queue pair to which.

Usage: test_profiler.py BUILD VERSION CASE
"""
import glob
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from job import Job, expect, main  # noqa: E402

PROFILER = "tests/under_nccl/profiler/libnccl-profiler-probe.so"


def profiled(build, version, settings, hurt):
    """What the profiler of each of two ranks has written."""
    plugin = os.path.join(build, PROFILER)
    with Job(build, version, "all_reduce", "-b", "256K", "-e", "256K",
             settings={"NCCL_PROFILER_PLUGIN": plugin, **settings}) as job:
        job.wait("connections are protected", lambda: job.events("protected") >= 4)
        hurt(job)
        job.end()
        expect("Successfully loaded external profiler plugin" in job.log(), "NCCL has not loaded the profiler")
        reports = []
        for path in glob.glob(settings["PROFILER_OUT"] + ".*"):
            with open(path, encoding="utf-8") as file:
                reports.append(json.load(file))
            os.unlink(path)
    expect(len(reports) == 2, "%d ranks have written what they saw, not 2", len(reports))
    return reports


def out(build, case):
    return {"PROFILER_OUT": os.path.join(build, "profiler-%s-%d" % (case, os.getpid()))}


def cut(build, version):
    def hurt(job):
        # More than once: that something is under way on soft0 when it is cut is likely, and no more.
        for nic in ("soft0", "soft1", "soft0", "soft1"):
            failed, protected = job.events("failed_over"), job.events("protected")
            job.wait_sent(nic, 1 << 20)
            job.tool("cut", nic)
            job.wait("connections have failed over", lambda: job.events("failed_over") > failed)
            job.tool("heal", nic)
            job.wait("connections are protected again", lambda: job.events("protected") > protected)
    reports = profiled(build, version, out(build, "cut"), hurt)
    failovers = []
    for report in reports:
        expect(report["qp_started"] == report["qp_stopped"] > 100, "queue pairs' events: %s", report)
        expect(report["failovers_started"] == report["failovers_stopped"], "failovers' events: %s", report)
        expect(not report["strange"] and not report["orphans"] and not report["qp_without_number"], "strange events: %s", report)
        expect(report["qp_bytes"] > 1 << 20, "too few bytes: %s", report)
        failovers += report["failovers"]
    moved = [f for f in failovers if not f["settled"]]
    expect(moved, "nothing has moved to another queue pair: %s", failovers)
    for f in moved:
        expect(f["from"] != f["to"] and f["to"][1], "it moved to where it was: %s", f)
    print("%d events of queue pairs, %d failovers, of which %d moved" %
          (sum(r["qp_started"] for r in reports), len(failovers), len(moved)))


def off(build, version):
    settings = {**out(build, "off"), "HA_NCCL_PROFILER": "0"}
    for report in profiled(build, version, settings, lambda job: None):
        expect(report["qp_started"] == 0 and report["failovers_started"] == 0, "events all the same: %s", report)


main({"cut": cut, "off": off})
