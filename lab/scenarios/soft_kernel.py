# SPDX-License-Identifier: BSD-3-Clause
"""softroce at b and the kernel's rdma_rxe at a: `ha perf` across, all the plugin's traffic both ways.

    a  rail0 rdma_rxe  ======== softroce  rail0  b      the other way round: kernel_soft
       rail1 rdma_rxe  -------- softroce  rail1
       mgmt            --------           mgmt

All-reduce of every size is right, both ends are protected, and a port that goes down at either end is survived.
"""
import soft

SET = "core"


def run(lab):
    soft.perf_across(lab, lab.b, lab.a)
