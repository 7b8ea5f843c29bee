#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bench/speed: what fails loses nothing of what else was measured; what is missing for a part is a line; what each part runs. Its programs
are stand-ins, one of which fails once, one always.

Usage: test_speed.py bench/speed
"""
import contextlib
import importlib.machinery
import importlib.util
import io
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


SPEED = sys.argv[1]
LAB = """#!%s
import json, os, sys
assert sys.argv[1:3] == ["beside", "--results"] and os.environ["LAB_ROUNDS"] == "2", sys.argv
os.makedirs(os.path.join(sys.argv[3], "beside"))
with open(os.path.join(sys.argv[3], "beside/result.json"), "w") as f:
    json.dump({"measures": {
        "64 B writes, 8 queue pairs, two machines, rdma_rxe": [1000, 2000], "64 B writes, 8 queue pairs, two machines, softroce": [1100, 2600],
        "64 B writes, half a round trip, two machines, rdma_rxe": [6, 9], "64 B writes, half a round trip, two machines, softroce": [3, 3]}}, f)
"""
NO_LAB = """#!/bin/sh
echo "lab: no qemu-system-x86_64: scripts/install-deps lab" >&2
exit 1
"""
FANOUT = """#!/bin/sh
echo "$2 connections: the last has moved $(($2 / 8)).5 ms after the first sign"
"""


def check(said, status, wanted, expected):
    missing = [words for words in wanted if words not in said]
    if missing or status != expected:
        sys.exit("%s\nexit status %d, not %d; missing: %s" % (said, status, expected, missing))


def run_speed(*options):
    done = subprocess.run([SPEED, *options], text=True, capture_output=True, check=False)
    return done.stdout + done.stderr, done.returncode


def load_speed():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("speed", SPEED)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("speed", loader))
    loader.exec_module(module)
    return module


def check_what_fails(build):
    os.mkdir(os.path.join(build, "runs"))
    write_program(os.path.join(build, "softroce-run"), RUN % sys.executable)
    write_program(os.path.join(build, "ha"), HA % json.dumps(STATUS))
    write_program(os.path.join(build, "bench/bench-softroce"), BENCH)
    said, status = run_speed("softroce", "eight", "--build", build, "--rounds", "3", "--iterations", "1")
    check(said, status, (
        "half a table\n", "softroce, latency FAILED: bench-softroce: exit status 1: no latency here\n", "figure of devices\n",
        "FAILED: softroce-run: exit status 1: no such luck\n", "| 2.0 (2.0) | 4.0 (4.0) | **0.50** (0.50 to 0.50) | 2 |",
        "3 calls kept out (kept_out of `ha status`) in 6 messages: 0.50000 per message", " processors", "\nfailed, as said above: "), 1)


def check_rxe(build):
    """The lab's samples as a table; above 1 softroce is ahead, for times as for rates. A line where there is no lab."""
    lab = os.path.join(build, "lab")
    write_program(lab, LAB % sys.executable)
    check(*run_speed("rxe", "--lab", lab, "--lab-rounds", "2"), (
        "| 64 B writes, 8 queue pairs, two machines | 1500 | 1850 | **1.20** (1.10 to 1.30) | 2 |",
        "| 64 B writes, half a round trip, two machines | 7.5 | 3 | **2.50** (2.00 to 3.00) | 2 |"), 0)
    write_program(lab, NO_LAB)
    check(*run_speed("rxe", "--lab", lab), (
        "\nrxe FAILED: lab: exit status 1: lab: no qemu-system-x86_64: scripts/install-deps lab\n",), 1)


def check_default():
    """The lab's part runs only when it is named; the default run names it."""
    speed = load_speed()
    assert "rxe" in speed.PARTS and "place" in speed.DEFAULT and "rxe" not in speed.DEFAULT, speed.DEFAULT
    speed.DEFAULT, sys.argv[1:] = {}, []
    with contextlib.redirect_stdout(io.StringIO()) as said:
        status = speed.main()
    check(said.getvalue(), status, ("Not in this run, since the lab's machines take minutes: bench/speed rxe",), 0)


def check_place(build):
    write_program(os.path.join(build, "bench/bench-place"), "#!/bin/sh\necho '| 64 | 2.0 | 1.0 | **2.00** |'\n")
    check(*run_speed("place", "--build", build), ("| 64 | 2.0 | 1.0 | **2.00** |",), 0)


def check_many(build):
    """--connections goes to each program of the part; a limit of the system below it is a line, and nothing is run."""
    for program in ("plugin/nccl/test_nccl_thousand", "sim/plugin/test_sim_fanout"):
        write_program(os.path.join(build, "tests", program), "#!/bin/sh\necho $(basename $0) $*: 178 KiB each\n")
    write_program(os.path.join(build, "tests/plugin/nccl/test_nccl_fanout"), FANOUT)
    speed = load_speed()
    speed.stream = speed.show
    speed.COUNT = os.path.join(build, "count")
    write_program(speed.COUNT, "#!/bin/sh\necho counts $*\n")
    sys.argv[1:] = ["many", "--build", build, "--connections", "2048", "--cuts", "1"]
    real = speed.show
    speed.show = lambda what, command, *rest, **env: None if command[0].endswith("bench/failover") else real(what, command, *rest, **env)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        status = speed.main()
    check(said.getvalue(), status, (
        "--connections 2048 --buffers 1000", "test_nccl_thousand 12 2048: 178 KiB each", "test_sim_fanout 256: ",
        "16 connections: 2.50 ms (best 2.50), 156.2 us each; 2048: 256.50 ms (best 256.50), 125.2 us each"), 0)
    done = subprocess.run(["sh", "-c", "ulimit -n 1000; exec \"$0\" many --connections 2048 --build \"$1\"", SPEED, build], text=True,
                          capture_output=True, check=False)
    check(done.stdout, done.returncode, (
        "many FAILED: 2048 connections need 8448 open files, this process may have 1000: raise the limit (ulimit -Hn)",), 1)
    check(*run_speed("many", "--connections", "4096"), ("--connections takes a number from 17 to 2048, not 4096",), 2)


def main():
    checks = (check_what_fails, check_rxe, check_place, check_many)
    for each in checks:
        with tempfile.TemporaryDirectory() as build:
            each(build)
    check_default()


if __name__ == "__main__":
    main()
