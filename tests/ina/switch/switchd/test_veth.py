#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A living ha-switch between hosts of the kernel's: three network namespaces, two cables (veth), net_af_packet or net_af_xdp.

Hosts reach each other through it (ARP, ping), learn its own address by ARP, and their frames of aggregation, written here from the tables of
docs/ina.md, come back as sums. Usage: test_veth.py HA-SWITCH net_af_packet|net_af_xdp
"""
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "netns"))
from spaces import Space, ip

SWITCH, PSNS = "10.9.0.254", 40


def checksum(header):
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def mac_of(address):
    return b"\x02\x00" + socket.inet_aton(address)


def frame(rank, psn, words, extended, mac):
    body = struct.pack("!BBBBHI", 1, 5, rank, 0, 32 + psn % 16, psn) + struct.pack("!64i", *words)
    if extended:
        body = struct.pack("!BBBBI", 1, 0, 0, 0, 8) + body
    head = struct.pack("!BBHHHBBH", 0x45, 1, 20 + len(body), 0, 0x4000, 64, 253 if extended else 254, 0)
    head += socket.inet_aton("10.9.0.%d" % (rank + 1)) + socket.inet_aton(SWITCH)
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return mac_of(SWITCH) + mac + b"\x08\x00" + head + body


def words_of(answer, rank, psn, extended):
    ip_header, at = answer[14:34], 42 if extended else 34
    assert checksum(ip_header) == 0 and ip_header[12:16] == socket.inet_aton(SWITCH)
    assert ip_header[16:20] == socket.inet_aton("10.9.0.%d" % (rank + 1))
    assert struct.unpack("!BBBBHI", answer[at:at + 10]) == (1, 5, rank, 0, 32 + psn % 16, psn), answer[at:at + 10]
    return struct.unpack("!64i", answer[at + 10:at + 266])


def receive(sock, psn, extended):
    """The answer to psn; what the kernel has to say besides is not ours, and an answer may come twice (AF_XDP on a busy machine)."""
    while True:
        packet = sock.recv(2048)
        if packet[12:14] != b"\x08\x00" or packet[23] != (253 if extended else 254) or packet[26:30] != socket.inet_aton(SWITCH):
            continue
        at = 42 if extended else 34
        if struct.unpack("!I", packet[at + 6:at + 10])[0] >= psn:
            return packet


def sums(spaces, extended):
    socks, macs = [], []
    for rank, space in enumerate(spaces[:2]):
        with space.here():
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
            sock.bind(("eth0", 0x0800))
            sock.settimeout(20)
            socks.append(sock)
            macs.append(sock.getsockname()[4])
    for psn in range(PSNS):
        given = [[1000 * psn + 7 * i - 50000 * rank for i in range(64)] for rank in range(2)]
        for rank in range(2):
            socks[rank].send(frame(rank, psn, given[rank], extended, macs[rank]))
        for rank in range(2):
            got = words_of(receive(socks[rank], psn, extended), rank, psn, extended)
            assert got == tuple(a + b for a, b in zip(*given)), (psn, rank)
    for sock in socks:
        sock.close()


def neighbour(space):
    return space.run("ip", "neigh", "show", SWITCH, capture_output=True, text=True).stdout


def ping(space, address, wait):
    return space.run(sys.executable, "-c", PING, address, str(wait)).returncode == 0


# An echo and its answer, for machines without the command.
PING = """
import socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
s.settimeout(1)
end = time.monotonic() + float(sys.argv[2])
data = b"hawser" * 200
packet = struct.pack("!BBHHH", 8, 0, 0, 77, 1) + data
total = sum(struct.unpack("!%dH" % (len(packet) // 2), packet))
while total >> 16:
    total = (total & 0xffff) + (total >> 16)
packet = packet[:2] + struct.pack("!H", ~total & 0xffff) + packet[4:]
while time.monotonic() < end:
    s.sendto(packet, (sys.argv[1], 0))
    try:
        got = s.recv(4096)
        if got[20] == 0 and got[28:] == data:
            sys.exit(0)
    except TimeoutError:
        pass
sys.exit(1)
"""


def serve(program, kind, space, groups, log):
    command = [program, "--address=" + SWITCH, "--metrics=none", "--memory=64", "--idle-us=50", "--cores=2", "--groups=" + groups]
    command += ["--port=%s%d,iface=sw%d" % (kind, i, i) for i in range(2)]
    return space.popen(*command, stdout=log, stderr=log)


def wait_said(switch, log, words):
    for _ in range(600):
        with open(log.name) as text:
            if words in text.read():
                return
        assert switch.poll() is None, "ha-switch has ended"
        time.sleep(0.05)
    raise AssertionError("ha-switch did not say '%s'" % words)


def play(program, kind, spaces):
    with tempfile.NamedTemporaryFile("w+") as log, tempfile.NamedTemporaryFile("w") as groups:
        groups.write("group 5 epoch 8 slots 32 16 frames extended members 10.9.0.1 10.9.0.2\n")
        groups.flush()
        switch = serve(program, kind, spaces[2], groups.name, log)
        try:
            wait_said(switch, log, " ports, ")
            assert ping(spaces[0], "10.9.0.2", 20), "10.9.0.1 does not reach 10.9.0.2"
            assert ping(spaces[1], "10.9.0.1", 20), "10.9.0.2 does not reach 10.9.0.1"
            assert not ping(spaces[0], SWITCH, 1)  # it has no ping, but an address
            assert "02:00:0a:09:00:fe" in neighbour(spaces[0]), neighbour(spaces[0])
            sums(spaces, True)
            groups.seek(0)
            groups.write("group 5 epoch 9 slots 32 16 frames old members 10.9.0.1 10.9.0.2    \n")
            groups.flush()
            switch.send_signal(signal.SIGHUP)
            wait_said(switch, log, "group 5 epoch 9: 2 ranks")
            sums(spaces, False)
            switch.send_signal(signal.SIGUSR1)
            wait_said(switch, log, "frames complete: %d" % (2 * PSNS))
            switch.send_signal(signal.SIGTERM)
            assert switch.wait(20) == 0, "it does not end well"
            text = open(log.name).read()
            assert "group 5 epoch 9: slots 32 to 47, 1 workers, old frames" in text and "frames complete: %d" % (2 * PSNS) in text, text
        except BaseException:
            print(open(log.name).read(), file=sys.stderr)
            raise
        finally:
            if switch.poll() is None:
                switch.kill()
                switch.wait()


def main():
    if os.geteuid():
        print("this test makes network namespaces: it needs root")
        sys.exit(77)
    program, kind = sys.argv[1:]
    spaces = [Space() for _ in range(3)]
    for i in range(2):
        ip("link", "add", "eth0", "netns", spaces[i], "type", "veth", "peer", "name", "sw%d" % i, "netns", spaces[2])
        spaces[i].ip("addr", "add", "10.9.0.%d/24" % (i + 1), "dev", "eth0")
        spaces[i].ip("link", "set", "eth0", "up")
        spaces[2].ip("link", "set", "sw%d" % i, "up")
    play(program, kind, spaces)


main()
