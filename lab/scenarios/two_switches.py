# SPDX-License-Identifier: BSD-3-Clause
"""One of two leaf switches dies under connections that cross: announced or silent, data path and standby are lost together.

    a  rail0 -- leaf 0 -- rail0  b      the data path of one direction goes from a's rail0 over both switches to b's rail1, its
                  |                     standby from a's rail1 to b's rail0: either switch takes both along
       rail1 -- leaf 1 -- rail1
       mgmt  -------------- mgmt

What is left is the pair of NICs on the other switch, which is up already, since the data path crosses the switches; or, with
HA_NCCL_STANDBYS=1, which nobody had connected. The job goes on over it each time, no byte is wrong, and it is protected when the
switch is back. Measures how long nothing moves: a switch that takes the carrier along (set_link at both machines), and one that loses everything silently (a filter of QEMU's at both), with
retry_cnt 6 (the kernel's NIC gives up after 0.47 s). Both machines lose it within some milliseconds, as they do when a switch dies.
"""
import re
import time

SET = "standard"
JOINED = True
KNOWN = 20  # seconds from the start: by then standstills of the set-up are forgotten, and silence is noticed as early as it ever is
KINDS = {"announced": ("carrier", False, True), "silent": ("swallow", True, False)}
CROSSED = 3  # standbys by default: with the data path all four pairs


def came_up(job, since, until=None):
    return {e["device"] for kind in ("recovered", "added") for e in job.events(event=kind)
            if e["host_ns"] > since and (until is None or e["host_ns"] < until)}


def path_was_made(lab, job, at, leaf):
    # In silence the pair that is left comes up before the others are given up, which is no recovery.
    lab.wait(lambda: came_up(job, at), "no pair of NICs came up")
    lab.must(came_up(job, at) == {"rxe%d:1" % (1 - leaf)}, "what came up is on leaf %d at both ends (%s)" % (1 - leaf, came_up(job, at)))


def dies(lab, job, kind, leaf, standbys):
    what, off, on = KINDS[kind]
    time.sleep(KNOWN)
    since = time.monotonic_ns()
    time.sleep(0.5)
    at = lab.switch(what, leaf, off)
    job.wait_moved(at)
    before = job.progress()
    lab.wait(lambda: job.progress() > before + 1, "the job stands still, and leaf %d is left" % (1 - leaf))
    if standbys:
        path_was_made(lab, job, at, leaf)
    else:
        made = came_up(job, at, job.last("failed_over"))
        lab.must(not made, "nothing had to be made (%s)" % made)
    back = lab.switch(what, leaf, on)
    job.wait_protected(after=back)
    job.wait_calm()
    lab.sample("%s_at_leaf%d%s" % (kind, leaf, "_one_standby" if standbys else ""), (at, job.last("failed_over") - at, since))


def run(lab):
    for standbys in (0, 1):
        for kind in KINDS:
            for leaf in (0, 1):
                job = lab.traffic("sendrecv", "64K", dev=None, HA_NCCL_QP_RETRY_CNT=6, HA_NCCL_STANDBYS=standbys)
                paths = {re.search(r"rail 0: (rxe\d):1 .* to (rxe\d):1", e["text"]).groups() for e in job.events(event="connected")}
                lab.must(paths == {("rxe0", "rxe1"), ("rxe1", "rxe0")}, "the data paths cross the switches: %s" % paths)
                job.wait_event("added", (0 if standbys else CROSSED - 1) * lab.ends)
                dies(lab, job, kind, leaf, standbys)
                lab.survived(job, failovers=lab.ends)
