# SPDX-License-Identifier: BSD-3-Clause
"""softroce and the kernel's NIC over a cable that loses, delays and reorders: every opcode of reliable connections heals.

    a  rail0 rdma_rxe ==(netem)==(netem)== softroce rail0  b     2 % loss; then 1 % with 1 ms of delay and one in twenty early

Either end as server. What loss does to each: sequence errors answered with NAKs, responses to reads that are missing in the middle,
atomics that must not be done twice. The pingpong checks every byte; all must end well.
"""
import soft

SET = "long"
HURTS = ("loss 2%", "loss 1% delay 1ms reorder 5%")
PROGRAMS = ("ibv_rc_pingpong -g 1 -c -n 50 -s 65536", "ibv_srq_pingpong -g 1 -c -n 100 -s 4096", "ib_write_bw -F -s 65536 -n 50",
            "ib_read_bw -F -s 65536 -n 50 -o 4", "ib_send_bw -F -s 65536 -n 50", "ib_atomic_bw -F -n 100 -o 4")


def run(lab):
    soft.on(lab, lab.b)
    try:
        for how in HURTS:
            for machine in lab.machines:
                lab.hurt(machine, "netem", 0, how)
            for program in PROGRAMS:
                for server, client in ((lab.a, lab.b), (lab.b, lab.a)):
                    soft.both(lab, program, server, client, limit=120, timeout=16)
    finally:
        for machine in lab.machines:
            machine.netem(0, None)
        soft.off(lab, lab.b)
