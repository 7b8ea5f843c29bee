# SPDX-License-Identifier: BSD-3-Clause
"""perftest and the examples of libibverbs between softroce and the kernel's NIC, each as server and as client.

    a  rail0 rdma_rxe ======== softroce rail0  b

Reliable connections: writes, reads, sends, atomics, a shared receive queue; unreliable ones and datagrams: one message
at a time, where a lost one would stop the program. In both directions; all must end well. The time-out is long: a host that is busy
with something else may not end a connection.
"""
import soft

SET = "long"
PROGRAMS = ("ib_write_bw -F -s 65536 -n 200", "ib_write_lat -F -s 8 -n 200", "ib_read_bw -F -s 65536 -n 200 -o 16",
            "ib_send_bw -F -s 65536 -n 200", "ib_send_lat -F -s 64 -n 200", "ib_atomic_bw -F -n 200 -o 16",
            "ib_write_bw -F -s 1048576 -n 20 -b", "ib_send_bw -F -c UD -s 1024 -n 100 -t 16", "ib_send_lat -F -c UD -s 64 -n 200",
            "ib_send_lat -F -c UC -s 16384 -n 100", "ib_write_lat -F -c UC -s 8 -n 200",
            "ibv_rc_pingpong -g 1 -n 200 -s 65536", "ibv_rc_pingpong -g 1 -n 100 -s 1000000", "ibv_srq_pingpong -g 1 -n 200 -s 4096",
            "ibv_uc_pingpong -g 1 -n 200 -s 4096", "ibv_ud_pingpong -g 1 -n 200 -s 1024")


def run(lab):
    soft.on(lab, lab.b)
    try:
        for program in PROGRAMS:
            for server, client in ((lab.a, lab.b), (lab.b, lab.a)):
                soft.both(lab, program, server, client)
    finally:
        soft.off(lab, lab.b)
