# SPDX-License-Identifier: BSD-3-Clause
"""perftest and the examples of libibverbs between softroce and the kernel's NIC, each as server and as client.

    a  rail0 rdma_rxe ======== softroce rail0  b

Reliable connections: writes, reads, sends, atomics, a shared receive queue; unreliable ones and datagrams: one message
at a time, where a lost one would stop the program. In both directions; all must end well. The time-out is long: a host that is busy
with something else may not end a connection.
"""
import time

import soft

SET = "standard"
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
                both(lab, program, server, client)
    finally:
        soft.off(lab, lab.b)


def line(lab, program, machine):
    kernel = machine is lab.a
    if program.startswith("ibv_"):
        program = program.replace("-g 1", "-g 1" if kernel else "-g 0") + (" -m 4096" if "ud_" not in program else "")
    else:
        program += " -u 20"
    return "%s %s -d %s" % ("exec" if kernel else "exec env " + soft.RUN, program, "rxe0" if kernel else "soft0")


def both(lab, program, server, client):
    """Once more, twice at most, when a machine stood still: the pingpongs' time-outs cannot be lengthened."""
    for _ in range(3):
        begin = time.monotonic_ns()
        well, words = once(lab, program, server, client)
        if well or not lab.stood_still(begin, time.monotonic_ns()):
            break
        lab.say("again, the machines stood still: %s, %s" % (program, words[:200]))
    lab.must(well, "%s, %s serves %s: %s" % (program, server.name, client.name, words))


def once(lab, program, server, client):
    s = server.start_command(line(lab, program, server))
    lab.wait(lambda: s.ended.is_set() or server.run("cat /proc/net/tcp /proc/net/tcp6 | grep -c ':4853 .* 0A '; true").strip() != "0",  # it listens at 18515
             "%s does not listen: %s" % (program, s.output[-300:]))
    c = client.start_command(line(lab, program, client) + " " + server.address(-1))
    try:
        status = [c.wait(60), s.wait(60)]
    except Exception as hung:
        c.kill(9)
        s.kill(9)
        status = str(hung)
    well = status == [0, 0]
    figures = [w for w in c.output.splitlines() if w.strip()[:1].isdigit()]
    return well, str(figures[-1:]) if well else "%s; client: %s; server: %s" % (status, c.output[-400:], s.output[-400:])
