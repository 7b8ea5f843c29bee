# SPDX-License-Identifier: BSD-3-Clause
"""softroce and the kernel's rdma_rxe: `ha perf` across, either end, all the plugin's traffic both ways.

    a  rail0 rdma_rxe  ======== softroce  rail0  b      then the other way round
       rail1 rdma_rxe  -------- softroce  rail1
       mgmt            --------           mgmt

All-reduce of every size is right, both ends are protected, and a port that goes down at either end is survived.
"""
import soft

SET = "core"


def run(lab):
    for machine, other in ((lab.b, lab.a), (lab.a, lab.b)):
        soft.on(lab, machine)
        of = {machine.name: soft.ENVIRONMENT}
        job = lab.perf("allreduce", "-b", "8", "-e", "1M", "-f", "16", "-n", "3", "-w", "1", of=of)
        lab.survived(job)
        job = lab.traffic("sendrecv", "64K", of=of)
        for end in (machine, other):
            lab.around(job, "soft_" + machine.name, end, "port", job.primary(end), False, True)
        lab.survived(job, failovers=8)
        soft.off(lab, machine)
