# SPDX-License-Identifier: BSD-3-Clause
"""The contract tests of the plugin over the kernel's NIC: handles, nothing that blocks, groups, flushes, closing (experiment A).

    a  rxe0, rxe1                   both ends in one process, each program for interface v12, some for v8 and v6

Every program that passes over softroce passes here.
"""
import os
import time

from machine import ROOT

SET = "standard"
LEFT_OUT = {"big", "million", "many",  # much data
            "hot_path",  # the provider of the kernel's NIC makes a system call per doorbell
            "mpib"}  # makes a network namespace, and the kernel's NIC stays in the first
# The kernel drops what comes for the queue pairs of a dead process: that the NIC gives up, within 0.5 s, is what shows a sender whose
# socket was reset. With retry_cnt 7 rdma_rxe never does.
SETTINGS = {"dead_peer": {"HA_NCCL_QP_RETRY_CNT": 6}}
OLDER = {"transfer", "handle", "nonblocking", "group", "close"}  # for v8 and v6, too
NEWER = {"optional": 9, "fused": 9, "weights": 12}  # the interface that has it


def program(lab, name, version):
    """Exit status and output. Some have limits of their own, which a host that is busy with something else breaks: again then."""
    for _ in range(3):
        begin = time.monotonic_ns()
        command = lab.a.start_command("exec /hawser/tests/test_nccl_%s %d" % (name, version), HA_NCCL_VERBS="system",
                                      RIG_PLUGIN="/hawser/libnccl-net-ha.so", RIG_DEVICES="rxe0,rxe1", NCCL_SOCKET_IFNAME="lo",
                                      **SETTINGS.get(name, {}))
        status = command.wait(280)
        if status in (0, 77) or not lab.stood_still(begin, time.monotonic_ns()):
            break
    return status, command.output


def run(lab):
    folder = os.path.join(ROOT, "build/tests/plugin/nccl")
    names = sorted(f[len("test_nccl_"):] for f in os.listdir(folder) if f.startswith("test_nccl_"))
    for name in [n for n in names if n not in LEFT_OUT]:
        for version in (12, 8, 6):
            if version < NEWER.get(name, 0) or version < 12 and name not in OLDER:
                continue
            status, output = program(lab, name, version)
            lab.sample({0: "passed", 77: "skipped"}.get(status, "failed"), "%s v%d" % (name, version))
            lab.must(status in (0, 77), "%s v%d (%d): %s" % (name, version, status, output[-1500:]))
