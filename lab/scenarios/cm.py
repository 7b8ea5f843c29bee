# SPDX-License-Identifier: BSD-3-Clause
"""softroce's connection manager and the kernel's: programs that connect through librdmacm, each as server and as client.

    a  rail0 rdma_rxe, rdma_cm ======== softroce, its own connection manager  rail0  b

Reliable connections (REQ, REP, RTU, DREQ), datagrams (SIDR), and perftest over either; a refusal; every program ends well.
"""
import re
import time

import soft
from channel import TIME_LIMIT

SET = "long"
# What the server and the client are called with, behind it the address of the server.
PROGRAMS = (("rping -s -C 20 -v -a", "rping -c -C 20 -v -a"), ("ucmatose -C 20 -S 1000 -c 3 -b", "ucmatose -C 20 -S 1000 -c 3 -s"),
            ("udaddy -C 20 -S 1000 -b", "udaddy -C 20 -S 1000 -s"),
            ("ib_write_bw -R -F -s 65536 -n 50 -u 20", "ib_write_bw -R -F -s 65536 -n 50 -u 20"),
            ("ib_send_lat -R -F -s 64 -n 100 -u 20", "ib_send_lat -R -F -s 64 -n 100 -u 20"))
REFUSED = re.compile("REJECTED|UNREACHABLE|rejected|unreachable|error 8|Couldn't connect|Unable to perform rdma_client")


def run(lab):
    soft.on(lab, lab.b)
    try:
        for ends in PROGRAMS:
            for server, client in ((lab.a, lab.b), (lab.b, lab.a)):
                both(lab, ends, server, client)
        for client, server in ((lab.a, lab.b), (lab.b, lab.a)):
            nobody(lab, client, server)
    finally:
        soft.off(lab, lab.b)


def start(lab, machine, line):
    if line.startswith("ib_"):
        line += " -d rxe0" if machine is lab.a else " -d soft0"
    return machine.start_command("exec " + line if machine is lab.a else "exec env " + soft.RUN % soft.DEVICES + line)


def both(lab, ends, server, client):
    address = server.address(0)
    s = start(lab, server, ends[0] + ("" if ends[0].startswith("ib_") else " " + address))
    for pause in (2, 4, 8):  # whether softroce's end listens shows from outside only: nobody listens yet is a refusal
        time.sleep(pause)
        c = start(lab, client, ends[1] + " " + address)
        if c.ended.wait(60 * TIME_LIMIT) and c.status and not s.ended.is_set() and REFUSED.search(c.output):
            continue
        break
    try:
        status = [c.wait(60), s.wait(60)]
    except Exception as hung:
        c.kill(9)
        s.kill(9)
        status = str(hung)
    lab.must(status == [0, 0], "%s, %s serves %s%s" % (
        ends[1], server.name, client.name, "" if status == [0, 0] else ": %s; client: %s; server: %s" % (status, c.output[-400:], s.output[-400:])))


def nobody(lab, client, server):
    """A REJ comes back at once where nobody listens; at softroce's end a process must have the devices open to say so."""
    holder = start(lab, server, "rping -s -C 1 -p 7000 -a " + server.address(0))
    time.sleep(2)
    c = start(lab, client, "rping -c -C 1 -p 7001 -a " + server.address(0))
    status = c.wait(60)
    holder.kill(9)
    lab.must(status and "REJECTED" in c.output, "%s refuses %s: %s" % (server.name, client.name, c.output[-200:].strip()))
