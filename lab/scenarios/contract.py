# SPDX-License-Identifier: BSD-3-Clause
"""The contract tests of the plugin over the kernel's NIC: handles, nothing that blocks, groups, flushes, closing (experiment A).

    a  rxe0, rxe1                   both ends in one process, each program for interface v6, v8 and v12

Every program that passes over softroce passes here.
"""
import os

from machine import ROOT

SET = "standard"
LEFT_OUT = {"big", "million", "many",  # much data
            "hot_path",  # the provider of the kernel's NIC makes a system call per doorbell
            "mpib"}  # makes a network namespace, and the kernel's NIC stays in the first
NEWER = {"optional": 9, "fused": 9, "weights": 12}  # the interface that has it


def run(lab):
    folder = os.path.join(ROOT, "build/tests/nccl")
    names = sorted(f[len("test_nccl_"):] for f in os.listdir(folder) if f.startswith("test_nccl_"))
    for name in [n for n in names if n not in LEFT_OUT]:
        for version in (12, 8, 6):
            if version < NEWER.get(name, 0):
                continue
            command = lab.a.start_command("exec /hawser/tests/test_nccl_%s %d" % (name, version), HA_NCCL_VERBS="system",
                                          RIG_PLUGIN="/hawser/libnccl-net-ha.so", RIG_DEVICES="rxe0,rxe1", NCCL_SOCKET_IFNAME="lo")
            status = command.wait(280)
            lab.sample("skipped" if status == 77 else "passed", "%s v%d" % (name, version))
            lab.must(status in (0, 77), "%s v%d (%d): %s" % (name, version, status, command.output[-400:]))
