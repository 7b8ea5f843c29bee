# SPDX-License-Identifier: BSD-3-Clause
"""softroce at a and the kernel's rdma_rxe at b: soft_kernel the other way round.

    a  rail0 softroce  ======== rdma_rxe  rail0  b
       rail1 softroce  -------- rdma_rxe  rail1
       mgmt            --------           mgmt

All-reduce of every size is right, both ends are protected, and a port that goes down at either end is survived.
"""
import soft

SET = "standard"


def run(lab):
    soft.perf_across(lab, lab.a, lab.b)
