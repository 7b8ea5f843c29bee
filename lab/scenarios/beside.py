# SPDX-License-Identifier: BSD-3-Clause
"""softroce beside the kernel's rdma_rxe, the same programs in turns: rate of 64 B writes, bandwidth of 1 MiB, latency.

    a  rail0 rdma_rxe ======== rdma_rxe rail0  b      and both ends on a; then softroce in its place, and so on
       mgmt           --------          mgmt

perftest: writes of 64 B on 8 queue pairs, writes of 1 MiB, latency of writes of 64 B; every program must end well. Prints the median of
each, and the median of the rounds' ratios (above 1: softroce is ahead). Processors are emulated, alike for both, so the ratios count and
not the figures; they have no carry-less multiplication, by which softroce computes its ICRC elsewhere. On one machine rdma_rxe hands
packets to itself, without the kernel's network, and softroce goes through it. LAB_ROUNDS=N: so many turns (3).
"""
import os
import statistics

import soft

SET = "long"
ROUNDS = int(os.environ.get("LAB_ROUNDS", "3"))
# what, unit, program, column of perftest's line, whether more is better
MEASURES = (("64 B writes, 8 queue pairs", "messages/s", "ib_write_bw -F -q 8 -s 64 -n 500", 4, True),
            ("1 MiB writes", "MB/s", "ib_write_bw -F -s 1048576 -n 20", 3, True),
            ("64 B writes, half a round trip", "us", "ib_write_lat -F -s 64 -n 300", 4, False))
# where, softroce's devices there: an interface's address is one process' alone
PLACES = (("two machines", soft.DEVICES), ("one machine", "127.62.0.0/24"))


def measure(lab, nic, kernel):
    """One turn of all programs, the NIC of `nic` at both ends."""
    for place, devices in PLACES:
        client = lab.b if place == "two machines" else lab.a
        for what, unit, program, column, _ in MEASURES:
            words = soft.both(lab, program, lab.a, client, limit=120, kernel=kernel, devices=devices)
            if words:
                figure = float(words.split()[column]) * (1e6 if unit == "messages/s" else 1)
                lab.sample("%s, %s, %s" % (what, place, nic), figure)
                lab.say("%s, %s, %s: %.6g %s" % (what, place, nic, figure, unit))


def line(lab, what, place, unit, more):
    rxe, own = (lab.measures.get("%s, %s, %s" % (what, place, nic), []) for nic in ("rdma_rxe", "softroce"))
    ratios = [s / r if more else r / s for r, s in zip(rxe, own) if r and s]
    if not ratios:
        return "%s, %s: nothing was measured" % (what, place)
    return "%-13s %-31s %10.6g %10.6g %7.2f  (%.2f to %.2f) %s" % (
        place, what, statistics.median(rxe), statistics.median(own), statistics.median(ratios), min(ratios), max(ratios), unit)


def table(lab):
    return "\n".join(["%-13s %-31s %10s %10s %7s" % ("", "", "rdma_rxe", "softroce", "ratio")] + [
        line(lab, what, place, unit, more) for place, _ in PLACES for what, unit, _, _, more in MEASURES])


def run(lab):
    for _ in range(ROUNDS):
        measure(lab, "rdma_rxe", (lab.a, lab.b))
        for machine in (lab.a, lab.b):
            soft.on(lab, machine)
        try:
            measure(lab, "softroce", ())
        finally:
            for machine in (lab.a, lab.b):
                soft.off(lab, machine)
    lab.keep("table", table(lab) + "\n")
    print(table(lab), flush=True)
