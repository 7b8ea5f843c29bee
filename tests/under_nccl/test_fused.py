#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fused devices and MPIB under NCCL itself: NCCL merges what it should at each of its levels, each NIC of what it has merged carries
bytes, in the proportion that the settings say, and the job goes on without one wrong element when each of them is cut and put back.

Usage: test_fused.py BUILD VERSION CASE
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from job import Job, expect, main  # noqa: E402

MEGABYTE = 1 << 20
FUSED = "NET/HA: soft0+soft1: device 2, fused of 2"
FORCE = {"NCCL_NET_FORCE_MERGE": "soft0,soft1"}
# A software NIC whose thread waits for a processor looks silent for a moment: a false alarm harms nobody but who counts bytes.
NO_ALARM = {"HA_NCCL_SILENCE_MS": "0"}


def cut_and_heal(job, nic, other):
    """The other carries alone, then both are there again."""
    failed, recovered, protected = job.events("failed_over"), job.events("recovered"), job.events("protected")
    job.tool("cut", nic)
    job.wait("connections have failed over", lambda: job.events("failed_over") > failed)
    job.wait_sent(other, 8 * MEGABYTE)
    job.tool("heal", nic)
    job.wait("paths have recovered", lambda: job.events("recovered") > recovered)
    job.wait("connections are protected again", lambda: job.events("protected") > protected)


def carries_on_both(build, version, settings, devices, cuts=True, ratio=None, size="2M"):
    """NCCL's channels are on `devices`; soft0 sends ratio[0] to ratio[1] times what soft1 sends."""
    with Job(build, version, "all_reduce", "-b", size, "-e", size, settings=settings) as job:
        job.wait_sent("soft0", 16 * MEGABYTE)
        job.wait_sent("soft1", 16 * MEGABYTE)
        expect(job.devices_used() == devices, "NCCL has channels on %s, not on %s", job.devices_used(), devices)
        if ratio:
            before = job.sent_by("soft0", "soft1")
            job.wait_sent("soft1", 128 * MEGABYTE)
            after = job.sent_by("soft0", "soft1")
            part = (after[0] - before[0]) / (after[1] - before[1])
            expect(ratio[0] <= part <= ratio[1], "soft0 sends %.2f times what soft1 sends", part)
        if cuts:
            cut_and_heal(job, "soft0", "soft1")
            job.wait_sent("soft0", 8 * MEGABYTE)
            cut_and_heal(job, "soft1", "soft0")
            job.wait_sent("soft1", 8 * MEGABYTE)
        log = job.log()
        job.end()
        return log


def separate(build, version, settings, devices, said=None):
    """Nothing is merged: NCCL's channels are on ports."""
    with Job(build, version, "all_reduce", "-b", "1M", "-e", "1M", settings=settings) as job:
        job.wait("NCCL has channels on %s" % devices, lambda: job.devices_used() == devices)
        job.wait("connections are protected", lambda: job.events("protected") >= 4)
        expect("fused of" not in job.log(), "something was merged")
        expect(not said or said in job.log(), "the log does not say '%s'", said)
        job.end()


def on_one_then_the_other(build, version, settings, first, second):
    """MPIB: one NIC carries all, and the other when that one is cut."""
    with Job(build, version, "all_reduce", "-b", "2M", "-e", "2M", settings=settings) as job:
        job.wait_sent(first, 16 * MEGABYTE)
        # Clear-to-sends, proofs and heartbeats there are; data would be as much as on the other.
        much, little = job.sent_by(first, second)
        expect(little < much / 8, "%s sends %d bytes, %s %d", second, little, first, much)
        expect(job.devices_used() == {0}, "NCCL has channels on %s", job.devices_used())
        expect("MPIB: SOUT soft0:1" in job.log(), "MPIB is not on")
        cut_and_heal(job, first, second)
        job.wait_sent(first, 8 * MEGABYTE)
        job.end()


def default(build, version):
    separate(build, version, {}, {0})


def one_card(build, version):
    log = carries_on_both(build, version, {"SOFTROCE_CARD_PORTS": "2"}, {2})
    expect(FUSED in log and "Made vNic 2" in log, "the ports of a card are not merged")


def force(build, version):
    log = carries_on_both(build, version, FORCE, {2})
    expect(FUSED in log, "soft0 and soft1 are not merged")


def level(name):
    def run(build, version):
        """Cards hang off one CPU: PHB and SYS merge them, all nearer ones do not."""
        if name in ("PHB", "SYS"):
            carries_on_both(build, version, {"NCCL_NET_MERGE_LEVEL": name}, {2}, cuts=False)
        else:
            separate(build, version, {"NCCL_NET_MERGE_LEVEL": name}, {0})
    return run


def level_loc_of_a_card(build, version):
    separate(build, version, {"NCCL_NET_MERGE_LEVEL": "LOC", "SOFTROCE_CARD_PORTS": "2"}, {0})


def level_port_of_a_card(build, version):
    carries_on_both(build, version, {"NCCL_NET_MERGE_LEVEL": "PORT", "SOFTROCE_CARD_PORTS": "2"}, {2}, cuts=False)


def without_places(build, version):
    """NICs that sit nowhere: NCCL takes them for one card, and goes on with the ports when they are not fused."""
    with Job(build, version, "all_reduce", "-b", "1M", "-e", "1M", settings={"SOFTROCE_CONTROL": "/proc/there/is/none"}) as job:
        job.wait("connections are protected", lambda: job.events("protected") >= 4)
        expect("cannot be fused: it has no PCI path" in job.log(), "no word of what is not fused")
        expect(job.devices_used() <= {0, 1}, "NCCL has channels on %s", job.devices_used())
        job.end()


def two_pairs(build, version):
    """Two fused devices behind four ports, by order and by number."""
    number = os.getpid() % 250
    nics = ",".join("127.%d.%d.0/24" % (170 + i, number) for i in range(4))
    settings = {"SOFTROCE_DEVICES": nics, "NCCL_NET_FORCE_MERGE": "soft0,soft1;soft2,soft3", "NCCL_CROSS_NIC": "0"}
    with Job(build, version, "all_reduce", "-b", "4M", "-e", "4M", settings=settings) as job:
        job.wait("connections are there", lambda: job.events("connected") >= 4)
        expect("soft0+soft1: device 4, fused of 2" in job.log() and "soft2+soft3: device 5, fused of 2" in job.log(), "not two fused devices")
        job.wait("NCCL has channels on them", lambda: job.devices_used() and job.devices_used() <= {4, 5})
        for number in job.devices_used():
            for nic in ("soft0", "soft1") if number == 4 else ("soft2", "soft3"):
                job.wait_sent(nic, 8 * MEGABYTE)
        job.end()


def weights(build, version):
    settings = dict(FORCE, **NO_ALARM, HA_NCCL_WEIGHTS="768,256")
    carries_on_both(build, version, settings, {2}, ratio=(2.4, 3.6), size="8M")


def adaptive(build, version):
    """It may leave a NIC out that only slows the other, as two on one processor do; alone each carries."""
    settings = dict(FORCE, HA_NCCL_POLICY="adaptive", SOFTROCE_RATE="200,100")
    with Job(build, version, "all_reduce", "-b", "8M", "-e", "8M", settings=settings) as job:
        for nic in ("soft0", "soft1"):
            job.wait("%s has sent data" % nic, lambda nic=nic: job.sent(nic) >= MEGABYTE)
        expect(job.devices_used() == {2}, "NCCL has channels on %s", job.devices_used())
        cut_and_heal(job, "soft0", "soft1")
        cut_and_heal(job, "soft1", "soft0")
        job.end()


def mpib(mode):
    def run(build, version):
        settings = {"MPIB_HCA_SOUT": "soft0", "MPIB_HCA_SUP": "soft1", "MPIB_MODE": mode, **NO_ALARM}
        on_one_then_the_other(build, version, settings, *(("soft1", "soft0") if mode == "0" else ("soft0", "soft1")))
    return run


def collnet(build, version):
    """CollNet's table is asked first, merges for itself, and its sums go over the same fused device (over its rails, as there is no switch;
    in pieces that stay on one NIC while it is there)."""
    settings = {"SOFTROCE_CARD_PORTS": "2", "HA_NCCL_COLLNET": "1", "NCCL_COLLNET_ENABLE": "1", "NCCL_ALGO": "collnetchain,ring"}
    with Job(build, version, "all_reduce", "-b", "4M", "-e", "4M", "-d", "float", "-o", "sum", settings=settings) as job:
        job.wait_sent("soft0", 16 * MEGABYTE)
        expect(job.log().count("Made vNic 2") == 4, "two tables of two ranks do not merge the ports of a card")
        expect("via COLLNET/HA/2" in job.log(), "NCCL's CollNet is not on the fused device")
        cut_and_heal(job, "soft0", "soft1")
        job.end()


CASES = {"collnet": collnet, "default": default, "one_card": one_card, "force": force, "level_LOC": level("LOC"), "level_PORT": level("PORT"),
         "level_PIX": level("PIX"), "level_PXB": level("PXB"), "level_PHB": level("PHB"), "level_SYS": level("SYS"),
         "level_LOC_of_a_card": level_loc_of_a_card, "level_PORT_of_a_card": level_port_of_a_card, "without_places": without_places,
         "two_pairs": two_pairs, "weights": weights, "adaptive": adaptive, "mpib0": mpib("0"), "mpib1": mpib("1")}


main(CASES)
