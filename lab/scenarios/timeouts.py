# SPDX-License-Identifier: BSD-3-Clause
"""Which time-out, how many retries, which RTO: false alarms against the time to recover (experiment B).

    a  rail0 ==(netem)=> rail0  b   timeout 12 to 16 x retry_cnt 5, 6, 7 x RTO 800, 1000, 1500, 2000, 3000 ms: 75 cells, each with
       rail1 ----------- rail1      20 flaps of the rail that carries data (nothing leaves a for a while), in which every suspicion
       mgmt  ----------- mgmt       is a false one; then a silent cut at a

One connection, from a to b: the rail that carries data is one. The flaps of the five RTOs of one window are together the 100
percentiles of a distribution: exponential with a mean of 100 ms. The guest makes each of them by itself and says how long it was: one
that was longer, because the host was busy, is made again, and left out in the end. The next one begins when all is protected. The
document's retry_cnt 9 does not exist, the field has three bits; 6 is in its place, since with 7 rdma_rxe never gives up and the RTO
is what is left. An RTO below twice the NIC's window is raised to that by the plugin. HA_NCCL_SILENCE_MS is 0: leaving a silent path
early would hide what is measured. Nothing is wrong in any cell. What has been measured is in result.json after each cell.

The samples are for lab/plot, and lab/timeouts-virtual measures the same cells in virtual time. LAB_TIMEOUTS="12", LAB_RETRIES="5", LAB_RTOS="800" take those cells only.
"""
import math
import os
import random
import time

from channel import Dead

SET = "long"
TIMEOUTS, RETRIES, RTOS = (12, 13, 14, 15, 16), (5, 6, 7), (800, 1000, 1500, 2000, 3000)
FLAPS = 20
TRIES = 3  # for a flap that a busy host has made too long
MEAN_MS = 100
MOVES = 8  # of a job: a rail that is lost again and again waits longer and longer before it is taken back, up to 30 s
MOVED_LIMIT = 40  # seconds; 5 with the longest RTO


def chosen(variable, everything):
    """Those of `everything` that the variable names; all of them when it is not set."""
    named = [int(n) for n in os.environ.get(variable, "").split()]
    return [n for n in everything if n in named or not named]


def run(lab):
    let_all_through(lab)
    for timeout in chosen("LAB_TIMEOUTS", TIMEOUTS):
        for retries in chosen("LAB_RETRIES", RETRIES):
            for rto in chosen("LAB_RTOS", RTOS):
                try:
                    cell(lab, timeout, retries, rto)
                except Dead as dead:  # the other cells are worth as much without this one
                    lab.must(False, "timeout %d, retry_cnt %d, RTO %d ms: %s" % (timeout, retries, rto, dead))
                    lab.wind_up()
                    let_all_through(lab)
                lab.save_so_far()


def let_all_through(lab):
    for rail in range(lab.rails):
        lab.a.silence(rail, False)


def flap_lengths(timeout, retries, rto):
    """ms, in an order that the cell alone decides."""
    strata = [(FLAPS * i + RTOS.index(rto) * FLAPS / len(RTOS) + 2) / (FLAPS * FLAPS) for i in range(FLAPS)]
    lengths = [-MEAN_MS * math.log(1 - q) for q in strata]
    random.Random("%d %d %d" % (timeout, retries, rto)).shuffle(lengths)
    return lengths


def traffic(lab, timeout, retries, rto):
    return lab.traffic("broadcast", "16K", "--progress", "20ms", ends=2, HA_NCCL_FORCE_IB_TIMEOUT=timeout,
                       HA_NCCL_QP_RETRY_CNT=retries, HA_NCCL_RTO_MS=rto, HA_NCCL_SILENCE_MS=0, HA_NCCL_MAX_RETRIES=1000)


def cell(lab, timeout, retries, rto):
    job = traffic(lab, timeout, retries, rto)
    flaps, took, still = [], None, 0
    try:
        for length in flap_lengths(timeout, retries, rto):
            if len(job.events(lab.a, "failed_over")) >= MOVES:
                lab.survived(job)
                job = traffic(lab, timeout, retries, rto)
            flaps.append(flap_that_counts(lab, job, length, timeout))
        took, still = cut_that_counts(lab, job)
        lab.survived(job)
    finally:  # what there is
        counted = [f for f in flaps if f["counts"]]
        lab.sample("grid", {"timeout": timeout, "retry_cnt": retries, "rto_ms": rto,
                            "window_ms": 4.096e-3 * 2 ** timeout * (retries + 1), "flaps": len(counted),
                            "false_alarms": sum(f["false"] for f in counted), "left_out": len(flaps) - len(counted),
                            "longest_borne_ms": max([f["ms"] for f in counted if not f["false"]], default=0),
                            "shortest_false_ms": min([f["ms"] for f in counted if f["false"]], default=None),
                            "recovered_ms": took, "still_ms": still, "each": [[round(f["ms"], 1), f["false"]] for f in counted]})


def cut(lab, job):
    """The path that carries data, for good. ms: until both ends have moved, and for how long a machine stood still meanwhile."""
    job.wait_protected()
    rail = job.primary(lab.a)
    look_at_clocks(lab)
    at = lab.hurt(lab.a, "silence", rail, True)
    job.wait_moved(at, limit=MOVED_LIMIT)
    moved = job.last("failed_over")
    lab.a.silence(rail, False)
    took, still = (moved - at) / 1e6, lab.stood_still(at, moved)
    lab.say("every end has moved after %.0f ms; a machine stood still for %.0f" % (took, still))
    return took, still


def cut_that_counts(lab, job):
    for _ in range(TRIES):
        took, still = cut(lab, job)
        if not still:
            break
    return took, still


def flap_that_counts(lab, job, ms, timeout):
    """Made again when the host was too busy; the last try is what it is."""
    for _ in range(TRIES):
        made = flap(lab, job, ms, timeout)
        if made["counts"]:
            break
    return made


def flap(lab, job, ms, timeout):
    """Nothing leaves by the path that carries data for so long; then what was lost has been sent again, or the path given up."""
    job.wait_protected()
    rail, known = job.primary(lab.a), len(job.events(event="suspected"))
    look_at_clocks(lab)
    begin, end = (lab.host_time(lab.a, at) for at in lab.a.flap(rail, ms))
    wait_over(lab, job, end + 4096 * 2 ** timeout)
    suspected = [e["host_ns"] > begin for e in job.events(event="suspected")[known:]]
    false = any(suspected)
    lasted, still = (end - begin) / 1e6, lab.stood_still(begin, time.monotonic_ns())
    counts = not still and lasted < 1.05 * ms + 5 and all(suspected)
    lab.say("rail%d: %.1f ms of %.1f: %s%s" % (rail, lasted, ms, "suspected" if false else "borne", "" if counts else ", does not count"))
    return {"ms": lasted, "false": false, "counts": counts}


def wait_over(lab, job, last_retry_ns):
    """Until traffic flows, no queue pair can give up because of what has been, and all that was reported of it is known."""
    job.wait_flowing()
    time.sleep(max(0, last_retry_ns - time.monotonic_ns()) / 1e9)
    job.catch_up()


def look_at_clocks(lab):
    """The machines' clocks drift, and an hour is long."""
    for machine in lab.machines:
        lab.clock_look(machine)
