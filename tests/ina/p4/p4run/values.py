# SPDX-License-Identifier: BSD-3-Clause
"""Types and values. A value that was never set is None, and whoever reads it ends the test: P4 says nothing of what it would be."""


class Type:
    """bit, int (with a width), integer (a constant without one), bool, error, text, any, and what the program declares by a name."""

    def __init__(self, kind, width=0, name="", fields=(), arguments=()):
        self.kind, self.width, self.name, self.arguments = kind, width, name, tuple(arguments)
        self.fields = dict(fields)

    def __str__(self):
        return "%s<%d>" % (self.kind, self.width) if self.kind in ("bit", "int") else self.name or self.kind

    def same(self, other):
        if self.kind == "list" or other.kind == "list":
            return self.kind == other.kind and len(self.fields) == len(other.fields) and all(
                a.same(b) for a, b in zip(self.fields.values(), other.fields.values()))
        return (self.kind, self.width, self.name) == (other.kind, other.width, other.name)

    def composite(self):
        return self.kind in ("header", "struct")

    def bits(self):
        return self.width if self.kind in ("bit", "int") else 1 if self.kind == "bool" else sum(f.bits() for f in self.fields.values())

    def wrap(self, value):
        """What is left of a number in this width."""
        value &= (1 << self.width) - 1
        return value - (1 << self.width) if self.kind == "int" and value >> (self.width - 1) else value

    def clamp(self, value):
        low = -(1 << (self.width - 1)) if self.kind == "int" else 0
        high = (1 << (self.width - (self.kind == "int"))) - 1
        return min(max(value, low), high)


BOOL, INTEGER, ERROR, TEXT, ANY, VOID = (Type(k) for k in ("bool", "integer", "error", "text", "any", "void"))


def bit(width):
    return Type("bit", width)


class Aggregate:
    """A header or struct: fields by name; valid is always true of a struct."""

    def __init__(self, type_, zero=False):
        self.type, self.valid = type_, type_.kind == "struct"
        self.fields = {name: fresh(kind, zero) for name, kind in type_.fields.items()}

    def copy(self):
        twin = Aggregate.__new__(Aggregate)
        twin.type, twin.valid = self.type, self.valid
        twin.fields = {n: v.copy() if isinstance(v, Aggregate) else v for n, v in self.fields.items()}
        return twin

    def take(self, other):
        self.valid = other.valid
        for name, value in other.fields.items():
            if isinstance(value, Aggregate):
                self.fields[name].take(value)
            else:
                self.fields[name] = value

    def pack(self):
        """(number, width), the first field in front."""
        return pack([(self.fields[n], t) for n, t in self.type.fields.items()])


def fresh(type_, zero=False):
    if type_.composite():
        return Aggregate(type_, zero)
    if not zero:
        return None
    return {"bool": False, "error": "NoError"}.get(type_.kind, 0)


def pack(pairs):
    total = width = 0
    for value, type_ in pairs:
        if isinstance(value, Aggregate):
            value, bits = value.pack()
        else:
            bits = type_.bits()
            value = int(value) & ((1 << bits) - 1)
        total, width = total << bits | value, width + bits
    return total, width


class Cells(dict):
    """The entries of a register, 0 until somebody writes them. Most are never looked at."""

    def __init__(self, type_, size):
        super().__init__()
        self.type, self.size = type_, size

    def __missing__(self, index):
        if not 0 <= index < self.size:
            raise IndexError(index)
        self[index] = fresh(self.type, zero=True)
        return self[index]
