# SPDX-License-Identifier: BSD-3-Clause
"""Packet tests (STF), as far as ina-vectors writes them: entries of tables, nodes of multicast groups, packets in and what must come out."""
import re


class Failed(Exception):
    """What one file's test has to say."""


class Entry:
    """add TABLE KEY:VALUE... ACTION(NAME:VALUE, ...)"""

    def __init__(self, line, table, keys, action, arguments):
        self.line, self.table, self.keys, self.action, self.arguments = line, table, keys, action, arguments


class Multicast:
    """mc_mgrp_create GROUP, mc_node_create RID PORT, mc_node_associate GROUP NODE"""

    def __init__(self, line, verb, numbers):
        self.line, self.verb, self.numbers = line, verb, numbers


class Packet:
    """packet PORT BYTES, and the lines `expect PORT BYTES` behind it"""

    def __init__(self, line, port, data):
        self.line, self.port, self.data, self.expected = line, port, data, []


def pairs(words):
    return dict(word.strip().split(":") for word in words if word.strip())


def read(path):
    """Entries, Multicasts and Packets, as they stand in the file. Numbers of entries stay text."""
    statements = []
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            words = text.split("#")[0].split()
            entry = re.fullmatch(r"add (\S+) ((?:\S+:\S+ )*)(\w+)\((.*)\)", " ".join(words))
            if not words:
                continue
            if entry:
                statements.append(Entry(number, entry[1], pairs(entry[2].split()), entry[3], pairs(entry[4].split(","))))
            elif words[0] in ("mc_mgrp_create", "mc_node_create", "mc_node_associate"):
                statements.append(Multicast(number, words[0], [int(w) for w in words[1:]]))
            elif words[0] == "packet" and len(words) > 2:
                statements.append(Packet(number, int(words[1]), bytes.fromhex("".join(words[2:]))))
            elif words[0] == "expect" and len(words) > 2 and statements and isinstance(statements[-1], Packet):
                statements[-1].expected.append((int(words[1]), bytes.fromhex("".join(words[2:]))))
            else:
                raise Failed("line %d: not understood: %s" % (number, text.strip()))
    return statements


def ports_of(statements):
    packets = [s for s in statements if isinstance(s, Packet)]
    return sorted({p.port for p in packets} | {port for p in packets for port, _ in p.expected})


def compare(packet, got):
    """got: (port, bytes) that came out. Those of different ports have no order; those of one port have."""
    for port in sorted({p for p, _ in packet.expected} | {p for p, _ in got}):
        want = [data for p, data in packet.expected if p == port]
        have = [data for p, data in got if p == port]
        if want != have:
            raise Failed("line %d: port %d should have sent %s, sent %s" % (packet.line, port, shown(want), shown(have)))


def shown(packets):
    return " and ".join(p.hex() for p in packets) or "nothing"
