#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes icrc_vectors.h: ICRCs of made-up RoCEv2 packets, computed from whole IP packets with zlib's crc32.

Independent of softroce/icrc.c: here a complete packet is built as it lies on the wire, and then the fields that IBTA
annex A17.3.3 calls variant are overwritten with ones in that packet.  Usage: icrc_vectors.py > icrc_vectors.h
"""
import ipaddress
import random
import struct
import zlib


def ip4(src, dst, tos, ttl, ipid, payload_len):
    return struct.pack(">BBHHHBBH4s4s", 0x45, tos, 20 + payload_len, ipid, 0x4000, ttl, 17, 0xABCD,
                       ipaddress.ip_address(src).packed, ipaddress.ip_address(dst).packed)


def ip6(src, dst, tclass, hops, flow, payload_len):
    return struct.pack(">IHBB16s16s", 6 << 28 | tclass << 20 | flow, payload_len, 17, hops,
                       ipaddress.ip_address(src).packed, ipaddress.ip_address(dst).packed)


def icrc(ip, udp, rest):
    packet = bytearray(b"\xff" * 8 + ip + udp + rest)
    at_ip = 8
    if ip[0] >> 4 == 4:
        packet[at_ip + 1] = 0xFF                              # type of service
        packet[at_ip + 8] = 0xFF                              # time to live
        packet[at_ip + 10:at_ip + 12] = b"\xff\xff"           # header checksum
    else:
        packet[at_ip] |= 0x0F                                 # traffic class,
        packet[at_ip + 1:at_ip + 4] = b"\xff\xff\xff"         # flow label
        packet[at_ip + 7] = 0xFF                              # hop limit
    at_udp = at_ip + len(ip)
    packet[at_udp + 6:at_udp + 8] = b"\xff\xff"               # UDP checksum
    packet[at_udp + 8 + 4] = 0xFF                             # BTH: FECN, BECN and the six bits behind them
    return zlib.crc32(bytes(packet)) & 0xFFFFFFFF


def main():
    rng = random.Random(4791)
    print("/* SPDX-License-Identifier: BSD-3-Clause */")
    print("/* Written by icrc_vectors.py; the packet bytes from the BTH on are i * 37 + seed. */")
    print("static const struct vector vectors[] = {")
    for i in range(48):
        length = rng.choice([12, 16, 28, 40, 44, 64, 100, 268, 1036, 4124]) & ~3
        seed, sport, ipid = rng.randrange(256), rng.randrange(0xC000, 0x10000), rng.choice([0, 1, 7, 0xBEEF])
        tclass, ttl = rng.randrange(256), rng.randrange(256)
        rest = bytes((j * 37 + seed) & 0xFF for j in range(length))
        udp_len = 8 + length + 4
        udp = struct.pack(">HHHH", sport, 4791, udp_len, rng.randrange(65536))
        if i % 2:
            src, dst = "fd00::%x" % rng.randrange(1, 65536), "fe80::%x:1" % rng.randrange(1, 65536)
            ip, ipid = ip6(src, dst, tclass, ttl, rng.randrange(1 << 20), udp_len), 0
        else:
            src, dst = "10.%d.3.%d" % (rng.randrange(256), rng.randrange(256)), "127.1.0.%d" % rng.randrange(256)
            ip = ip4(src, dst, tclass, ttl, ipid, udp_len)
        print('\t{ "%s", "%s", %d, %d, 0x%04x, %d, %d, %d, 0x%08x },' %
              (src, dst, tclass, ttl, sport, ipid, length, seed, icrc(ip, udp, rest)))
    print("};")


if __name__ == "__main__":
    main()
