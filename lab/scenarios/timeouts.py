# SPDX-License-Identifier: BSD-3-Clause
"""Which time-out, how many retries, which RTO: false alarms against the time to recover (experiment B).

    a  rail0 ==(netem)== rail0  b   timeout 12 to 16 x retry_cnt 5, 6, 7 x RTO 800, 1000, 1500, 2000, 3000 ms: 75 cells, each with
       rail1 ----------- rail1      20 flaps of the rail that carries data (nothing leaves a for a while), in which every suspicion
       mgmt  ----------- mgmt       is a false one; then a silent cut at a

The flaps of the five RTOs of one window are together the 100 percentiles of a distribution: exponential with a mean of 100 ms. The
guest makes each of them by itself and tells how long it was: one that was much longer, because the host was busy, is left out. The document's retry_cnt 9 does not exist, the field has three bits; 6
is in its place, since with 7 rdma_rxe never gives up and the RTO is what is left. An RTO below twice the NIC's window is raised to
that by the plugin. HA_NCCL_SILENCE_MS is 0: leaving a silent path early would hide what is measured. Nothing is wrong in any cell.

The samples are for lab/plot, and lab/timeouts-virtual measures the same cells in virtual time. LAB_TIMEOUTS="12", LAB_RETRIES="5", LAB_RTOS="800" take those cells only.
"""
import math
import os
import random

SET = "long"
TIMEOUTS, RETRIES, RTOS = (12, 13, 14, 15, 16), (5, 6, 7), (800, 1000, 1500, 2000, 3000)
FLAPS = 20
MEAN_MS = 100


def chosen(variable, everything):
    """Those of `everything` that the variable names; all of them when it is not set."""
    named = [int(n) for n in os.environ.get(variable, "").split()]
    return [n for n in everything if n in named or not named]


def run(lab):
    for timeout in chosen("LAB_TIMEOUTS", TIMEOUTS):
        for retries in chosen("LAB_RETRIES", RETRIES):
            for rto in chosen("LAB_RTOS", RTOS):
                cell(lab, timeout, retries, rto)


def flap_lengths(timeout, retries, rto):
    """ms, in an order that the cell alone decides."""
    strata = [(FLAPS * i + RTOS.index(rto) * FLAPS / len(RTOS) + 2) / (FLAPS * FLAPS) for i in range(FLAPS)]
    lengths = [-MEAN_MS * math.log(1 - q) for q in strata]
    random.Random("%d %d %d" % (timeout, retries, rto)).shuffle(lengths)
    return lengths


def cell(lab, timeout, retries, rto):
    job = lab.traffic("sendrecv", "16K", HA_NCCL_FORCE_IB_TIMEOUT=timeout, HA_NCCL_QP_RETRY_CNT=retries, HA_NCCL_RTO_MS=rto,
                      HA_NCCL_SILENCE_MS=0, HA_NCCL_MAX_RETRIES=1000)
    flaps = [flap(lab, job, length, timeout) for length in flap_lengths(timeout, retries, rto)]
    counted = [f for f in flaps if not f["still_ms"] and f["ms"] < 1.2 * f["meant_ms"] + 30]
    at = lab.hurt(lab.a, "netem", job.primary(lab.a), "loss 100%")
    job.wait_moved(at)
    took = (job.last("failed_over") - at) / 1e6
    still = lab.stood_still(at, job.last("failed_over"))
    for rail in range(lab.rails):
        lab.a.netem(rail, None)
    lab.survived(job)
    lab.sample("grid", {"timeout": timeout, "retry_cnt": retries, "rto_ms": rto, "window_ms": 4.096e-3 * 2 ** timeout * (retries + 1),
                        "flaps": len(counted), "false_alarms": sum(f["false"] for f in counted), "left_out": len(flaps) - len(counted),
                        "longest_borne_ms": max([f["ms"] for f in counted if not f["false"]], default=0),
                        "shortest_false_ms": min([f["ms"] for f in counted if f["false"]], default=None),
                        "recovered_ms": took, "still_ms": still})


def flap(lab, job, ms, timeout):
    """Nothing leaves a's data rail for so long, by the guest's own clock; then rest, until what was lost has been sent again."""
    rail, name = job.primary(lab.a), "rail%d" % job.primary(lab.a)
    rest_ms = 100 + 2 * 4.096e-3 * 2 ** timeout
    said = lab.a.run("agent clock; tc qdisc replace dev %s root netem loss 100%%; busybox usleep %d; tc qdisc del dev %s root; "
                     "agent clock; busybox usleep %d" % (name, ms * 1000, name, rest_ms * 1000))
    begin, end = (lab.host_time(lab.a, int(t)) for t in said.split())
    over = end + rest_ms * 1e6
    false = any(begin < e["host_ns"] < over for e in job.events(event="suspected"))
    lab.say("rail%d flapped for %.0f ms: %s" % (rail, (end - begin) / 1e6, "suspected" if false else "borne"))
    if false:
        job.wait_protected(after=begin)
    return {"ms": (end - begin) / 1e6, "meant_ms": ms, "false": false, "still_ms": lab.stood_still(begin, over)}
