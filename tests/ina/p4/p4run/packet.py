# SPDX-License-Identifier: BSD-3-Clause
"""Bits that a parser takes from a packet and a deparser puts together again."""
from values import Aggregate


class ParserError(Exception):
    """The packet ends the parser: args[0] is the error's name."""


class PacketIn:
    def __init__(self, data):
        self.number, self.left, self.size = int.from_bytes(data, "big"), 8 * len(data), 8 * len(data)

    def take(self, bits):
        if bits > self.left:
            raise ParserError("PacketTooShort")
        self.left -= bits
        return self.number >> self.left & ((1 << bits) - 1)

    def extract(self, header):
        number = self.take(header.type.bits())
        at = header.type.bits()
        for name, kind in header.type.fields.items():
            at -= kind.width
            header.fields[name] = kind.wrap(number >> at)
        header.valid = True

    def rest(self):
        return (self.number & ((1 << self.left) - 1)).to_bytes(self.left // 8, "big")


class PacketOut:
    def __init__(self):
        self.data = b""

    def emit(self, what):
        if what.type.kind == "struct":
            for part in what.fields.values():
                if isinstance(part, Aggregate):
                    self.emit(part)
        elif what.valid:
            number, width = what.pack()
            self.data += number.to_bytes(width // 8, "big")


def checksum16(number, bits):
    """The internet checksum (RFC 1071)."""
    bits += -bits % 16
    data = number.to_bytes(bits // 8, "big")
    total = sum(int.from_bytes(data[i:i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
