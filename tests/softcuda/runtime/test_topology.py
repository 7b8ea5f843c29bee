#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_topology.py SOFTCUDA_TOPOLOGY SOFTCUDA_RUN PROGRAM: the file puts each GPU that the runtime shows under a switch
of its own, with its NICs beside it, and nonsense is refused in one line."""

import os
import subprocess
import sys
import xml.etree.ElementTree as xml

TOOL, RUN, PROGRAM = sys.argv[1:4]
NICS = ["ffff:01:00.0", "ffff:02:00.0", "ffff:03:00.0", "ffff:03:00.1"]
ENV = {**os.environ, "SOFTCUDA_DEVICES": "3"}


def expect(condition, text):
    if not condition:
        sys.exit(f"test_topology: {text}")


def run(*command, env=None):
    return subprocess.run(command, env=env or ENV, capture_output=True, text=True, check=False)


def check_file():
    gpus = [line.lower() for line in run(RUN, PROGRAM).stdout.splitlines()[1:]]
    expect(len(gpus) == 3, f"the runtime shows {gpus}")
    made = run(TOOL, *NICS)
    expect(made.returncode == 0, made.stderr)
    system = xml.fromstring(made.stdout)
    switches = system.findall("cpu/pci")
    expect(len(switches) == 3 and system.get("version") == "1", made.stdout)
    expect(len({switch.get("busid") for switch in switches} | set(gpus) | set(NICS)) == 10, "addresses are not distinct")
    for number, switch in enumerate(switches):
        children = [(child.get("busid"), child.get("class")[:4]) for child in switch]
        beside = [(nic, "0x02") for nic in NICS[number::3]]
        expect(children == [(gpus[number], "0x03"), *beside], f"under switch {number} are {children}")
        expect(switch.get("class") == "0x060400", "what holds them is no switch")


def check_refusals():
    for bad in ("nonsense", "ffff:01:00", "ffff:01:00.0.0", "fffff:1:00.0", ""):
        refused = run(TOOL, NICS[0], bad)
        expect(refused.returncode == 2 and refused.stdout == "", f"'{bad}' is taken")
        expect(refused.stderr.count("\n") == 1 and refused.stderr.startswith("softcuda: " + bad), refused.stderr)
    wrong = run(TOOL, NICS[0], env={**ENV, "SOFTCUDA_DEVICES": "many"})
    expect(wrong.returncode == 1 and "SOFTCUDA_DEVICES=many" in wrong.stderr, "the environment is not checked")
    expect(run(TOOL).returncode == 2, "without a NIC it does something")
    expect(run(TOOL, "--help").stdout.startswith("usage: softcuda-topology NIC"), "--help does not help")


check_file()
check_refusals()
