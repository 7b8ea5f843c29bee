# SPDX-License-Identifier: BSD-3-Clause
"""How long nothing moves: 20 faults of each kind at each end, every one between two states in which all is protected.

    a  rail0 ==X==X== rail0  b      port down (ip link), cable pulled (set_link), silent cut (netem at the end that is named);
       rail1 -------- rail1         the latter also with HA_NCCL_SILENCE_MS=0, where the NIC gives up after its window
       mgmt  -------- mgmt          (retry_cnt 6) or never (7: rdma_rxe's for ever), and the soft time-out is what is left

Writes its samples for lab/plot: pause, the longest pause before, the parts of the failover, how long the machines stood still, and
how often a queue pair of the rail that is left had to send again: a time-out of 67 ms each at worst.
LAB_SAMPLES=N takes N of each; LAB_KINDS="port cable silent silent6 silent7" names the kinds.
"""
import os

SET = "long"
SAMPLES = int(os.environ.get("LAB_SAMPLES", "20"))
KINDS = {"port": ("port", False, True, {}), "cable": ("cable", False, True, {}),
         "silent": ("netem", "loss 100%", None, {}),
         "silent6": ("netem", "loss 100%", None, {"HA_NCCL_SILENCE_MS": 0, "HA_NCCL_QP_RETRY_CNT": 6}),
         "silent7": ("netem", "loss 100%", None, {"HA_NCCL_SILENCE_MS": 0})}

FLAPS = 6  # a rail that is lost a fourth time has to wait before it is taken back: a new job then
PARTS = ("before_ms", "detected_ms", "fenced_ms", "failed_over_ms", "registering_ms", "replayed", "sent_again", "not_ready")  # after the command was given


def run(lab):
    for kind in os.environ.get("LAB_KINDS", " ".join(KINDS)).split():
        what, off, on, settings = KINDS[kind]
        for first in range(0, 2 * SAMPLES, FLAPS):
            job = lab.traffic("allreduce", "64K", **settings)
            for i in range(first, min(first + FLAPS, 2 * SAMPLES)):
                machine = lab.machines[i % 2]
                lab.around(job, kind, machine, what, job.primary(machine), off, on, rest=0.5)
            lab.survived(job)
    for name, samples in lab.measures.items():
        if "_at_" in name:
            lab.say("%s: %s" % (name, spread(samples)))


def spread(samples):
    """Median and worst of the pauses that nothing but the fault can have made long."""
    good = [s for s in samples if s and not s["still_ms"]]
    if not good:
        return "none while every machine ran"
    return "%d of %d while every machine ran; median %.1f ms, worst %.1f ms; medians of the parts: %s" % (
        len(good), len(samples), median(good, "pause_ms"), max(s["pause_ms"] for s in good),
        ", ".join("%s %.1f" % (part, median(good, part)) for part in PARTS))


def median(samples, what):
    values = sorted(s[what] for s in samples if what in s)
    return values[len(values) // 2] if values else float("nan")
