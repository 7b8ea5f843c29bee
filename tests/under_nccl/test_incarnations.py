#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Communicators in turn and beside each other under NCCL (incarnations.py), over fused devices where NCCL has them: each is the plugin's, on the
same devices, whatever NCCL does with the plugin in between.

Usage: test_incarnations.py BUILD VERSION CASE
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from job import Run, expect, main  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = 2
TURNS = ["make", "sum", "end"] * 3


class Incarnations(Run):
    def __init__(self, build, version, plan, settings=None):
        own = {"NCCL_NET_PLUGIN": os.path.join(build, "libnccl-net-ha.so"), "NCCL_SOCKET_IFNAME": "lo", "NCCL_P2P_DISABLE": "1",
               "NCCL_SHM_DISABLE": "1", "NCCL_CUMEM_ENABLE": "0", "SOFTROCE_CARD_PORTS": "2"}
        libraries = os.path.join(build, "softcuda", "nccl-" + version)
        super().__init__(build, lambda folder: [sys.executable, os.path.join(HERE, "incarnations.py"), libraries, str(RANKS), *plan],
                         {**own, **(settings or {})})

    def own_settings(self):
        return {**super().own_settings(), "INCARNATIONS_FOLDER": self.folder, "INCARNATIONS_GO": os.path.join(self.folder, "go")}

    def go(self):
        with open(self.env["INCARNATIONS_GO"], "w", encoding="utf-8"):
            pass

    def reached(self, step):
        """All ranks are past that step."""
        return self.printed().count(": step %d " % step) == RANKS

    def check(self, communicators, version, merged=False):
        """merged: all communicators are on the fused device. 2.28 and 2.29 do not take its ports out of the topology of those that they do
        not merge for anew."""
        expect(self.status() == 0, "it ends badly")
        log = self.log()
        used = log.count("Using network HA")
        expect(used == communicators * RANKS, "%d of %d communicators are the plugin's", used, communicators * RANKS)
        used = self.devices_used()
        if version == "2.22.3":  # which merges nothing
            expect(used == {0}, "NCCL has channels on %s", used)
        else:
            expect(used == {2} if merged else 2 in used <= {0, 1, 2}, "NCCL has channels on %s", used)


def in_turn(build, version):
    """NCCL closes the plugin with each; 2.27 to 2.30 forget its name."""
    with Incarnations(build, version, TURNS) as incarnations:
        incarnations.check(3, version, merged=True)


def in_turn_kept(build, version):
    """NCCL keeps the plugin and what it knows of the devices, but has finalized each communicator."""
    with Incarnations(build, version, TURNS, {"NCCL_NET_PLUGIN_REF_COUNT": "1"}) as incarnations:
        incarnations.check(3, version)


def beside(build, version):
    with Incarnations(build, version, ["make", "make", "sum", "end", "make", "sum", "end", "sum", "end"]) as incarnations:
        incarnations.check(3, version)


def made_during_a_cut(build, version):
    """A communicator that is made while a NIC is away; the first one goes on."""
    with Incarnations(build, version, ["make", "sum", "wait", "make", "sum", "wait", "sum", "end", "end"]) as incarnations:
        incarnations.wait("the first has summed", lambda: incarnations.reached(1))
        incarnations.tool("cut", "soft0")
        incarnations.wait("it has failed over", lambda: incarnations.events("failed_over") >= 1)
        incarnations.go()
        incarnations.wait("the second has summed", lambda: incarnations.reached(4))
        incarnations.tool("heal", "soft0")
        incarnations.wait("paths have recovered", lambda: incarnations.events("recovered") >= 1)
        incarnations.go()
        incarnations.check(2, version)


main({"in_turn": in_turn, "in_turn_kept": in_turn_kept, "beside": beside, "made_during_a_cut": made_during_a_cut})
