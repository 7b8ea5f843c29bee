#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bench/speed: what fails loses nothing of what else was measured. Its programs are stand-ins, one of which fails once, one always.

Usage: test_speed.py bench/speed
"""
import json
import os
import subprocess
import sys
import tempfile

# The second run of two plugins fails, the others take 2 and 4 us; the status of a process has 3 calls kept out in 6 messages.
RUN = """#!%s
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
options = sys.argv[1:]
if "--at" in options:
    os.system(options[options.index("--at") + 2])
if "--vs" in options:
    count = len(os.listdir(os.path.join(here, "runs")))
    open(os.path.join(here, "runs", str(count)), "w").close()
    if count == 1:
        sys.exit("no such luck")
out = [word[7:] for word in options if word.startswith("--json=")][0]
with open(out, "w") as f:
    json.dump({"results": [{"p50_us": 2, "vs": {"p50_us": 4}}]}, f)
"""
HA = """#!/bin/sh
echo '%s'
"""
BENCH = """#!/bin/sh
[ "$1" != latency ] || { echo "half a table"; echo "no latency here" >&2; exit 1; }
echo "figure of $*"
"""
STATUS = {"processes": [{"totals": {"kept_out": kept_out}, "connections": [{"messages": 2}, {"messages": 4}]} for kept_out in (1, 2)]}


def write_program(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)


def main():
    with tempfile.TemporaryDirectory() as build:
        os.mkdir(os.path.join(build, "runs"))
        write_program(os.path.join(build, "softroce-run"), RUN % sys.executable)
        write_program(os.path.join(build, "ha"), HA % json.dumps(STATUS))
        write_program(os.path.join(build, "bench/bench-softroce"), BENCH)
        done = subprocess.run([sys.argv[1], "softroce", "eight", "--build", build, "--rounds", "3", "--iterations", "1"], text=True,
                              capture_output=True, check=False)
    said = done.stdout + done.stderr
    wanted = ("half a table\n", "softroce, latency FAILED: bench-softroce: exit status 1: no latency here\n", "figure of devices\n",
              "FAILED: softroce-run: exit status 1: no such luck\n", "| 2.0 (2.0) | 4.0 (4.0) | **0.50** (0.50 to 0.50) | 2 |",
              "3 calls kept out (kept_out of `ha status`) in 6 messages: 0.50000 per message", " processors", "\nfailed, as said above: ")
    missing = [words for words in wanted if words not in said]
    if missing or done.returncode != 1:
        sys.exit("%s\nexit status %d, missing: %s" % (said, done.returncode, missing))


if __name__ == "__main__":
    main()
