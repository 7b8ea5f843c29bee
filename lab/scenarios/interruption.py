# SPDX-License-Identifier: BSD-3-Clause
"""How long nothing moves: 20 faults of each kind at each end, every one between two states in which all is protected.

    a  rail0 ==X==X== rail0  b      port down (ip link), cable pulled (set_link), silent cut (netem at the end that is named),
       rail1 -------- rail1         with retry_cnt 6 (the NIC gives up after its window) and 7 (rdma_rxe never does)
       mgmt  -------- mgmt

Writes its samples for lab/plot: pause, the longest pause before, the parts of the failover, how long the machines stood still.
LAB_SAMPLES=N takes N of each.
"""
import os

SET = "long"
SAMPLES = int(os.environ.get("LAB_SAMPLES", "20"))
KINDS = (("port", False, True, {}), ("cable", False, True, {}),
         ("netem", "loss 100%", None, {"HA_NCCL_QP_RETRY_CNT": 6}), ("netem", "loss 100%", None, {}))


def run(lab):
    for what, off, on, settings in KINDS:
        job = lab.traffic("allreduce", "64K", **settings)
        for i in range(2 * SAMPLES):
            machine = lab.machines[i % 2]
            name = what + ("_retry%s" % settings.get("HA_NCCL_QP_RETRY_CNT", 7) if what == "netem" else "")
            lab.around(job, name, machine, what, job.primary(machine), off, on)
        lab.survived(job, failovers=4 * SAMPLES)
    for name, samples in lab.measures.items():
        if "_at_" in name:
            lab.say("%s: %s" % (name, spread(samples)))


def spread(samples):
    """Median and worst of the pauses that nothing but the fault can have made long."""
    good = sorted(s["pause_ms"] for s in samples if s and not s["still_ms"])
    return "%d of %d while every machine ran; median %.1f ms, worst %.1f ms" % (
        len(good), len(samples), good[len(good) // 2], good[-1]) if good else "none while every machine ran"
