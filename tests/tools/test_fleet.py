#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bench/fleet: a row is printed as docs/performance.md has it, and twice the driver's time takes longer. Usage: test_fleet.py ROOT"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = sys.argv[1]
ONE = ["--hosts", "1024", "--connections", "64"]


def run(*options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "fleet.json")
        subprocess.run([os.path.join(ROOT, "bench/fleet"), *options, "--json", path], check=True, stdout=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as f:
            return json.load(f)["rows"]


def as_documented(row):
    return "| %s | %d | %d | %s | %s | %d | %.1f | %.1f ms | **%.1f ms** | %.1f, %.1f | %.1f |" % (
        format(row["hosts"], ","), row["nics_lost"], row["connections_per_process"], format(row["connections_moved"], ","),
        format(row["messages"], ","), row["messages_per_process"], row["megabytes"], row["median_ms"], row["last_ms"],
        row["nic_load"], row["leaf_load"], row["mib_per_process"])


with open(os.path.join(ROOT, "docs/performance.md"), encoding="utf-8") as page:
    documented = page.read()
(usual,) = run(*ONE)
(slow,) = run(*ONE, "--end-us", "100")
if as_documented(usual) not in documented:
    sys.exit("docs/performance.md has no row " + as_documented(usual))
if "the last of 1,024 hosts with 64 ends a process is over after %.1f ms" % slow["last_ms"] not in documented:
    sys.exit("docs/performance.md says another time than %.1f ms for --end-us 100" % slow["last_ms"])
if slow["connections_moved"] != usual["connections_moved"] or slow["last_ms"] <= usual["last_ms"]:
    sys.exit("with more time for an end: %s, with less: %s" % (slow, usual))
