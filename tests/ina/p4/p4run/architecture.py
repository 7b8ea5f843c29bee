# SPDX-License-Identifier: BSD-3-Clause
"""What all architectures share: packets in and out, and how calls of externs are checked."""
from packet import ParserError
from program import Cell, Exit, fits
from syntax import Wrong
from values import VOID, bit


class Architecture:
    def parser_error(self, name):
        return ParserError(name)

    def arguments(self, node, count):
        if len(node.arguments) != count:
            raise Wrong("%s: %d arguments where %d are wanted" % (node.at, len(node.arguments), count))
        return node.arguments

    def value(self, compiler, node, type_, scope):
        return fits(node.at, type_, compiler.expr(node, scope))

    def method(self, compiler, thing, name, node, scope):
        """(type, function) of a call of an extern's method"""
        if isinstance(thing, Cell) and thing.type.name in ("packet_in", "packet_out"):
            return self.packet(compiler, thing, name, node, scope)
        found = getattr(self, "%s_%s" % (type(thing).__name__.lower(), name), None)
        if not found:
            raise Wrong("%s: there is no method %s" % (node.at, name))
        return found(compiler, thing, node, scope)

    def function(self, compiler, name, node, scope):
        found = getattr(self, "call_" + name, None)
        if not found:
            raise Wrong("%s: function %s is not known here" % (node.at, name))
        return found(compiler, node, scope)

    def run(self, unit, *values):
        """A part of the package: exit ends it."""
        cells, body = unit
        for cell, value in zip(cells, values):
            cell.value = value
        try:
            body()
        except Exit:
            pass

    def packet(self, compiler, cell, name, node, scope):
        (argument,) = self.arguments(node, 1)
        if (cell.type.name, name) == ("packet_in", "advance"):
            bits = self.value(compiler, argument, bit(32), scope)
            return VOID, lambda: cell.value.take(bits())
        kind, of = compiler.expr(argument, scope)
        if (cell.type.name, name) == ("packet_in", "extract") and kind.kind == "header":
            compiler.target(argument, scope)
            return VOID, lambda: cell.value.extract(of())
        if (cell.type.name, name) == ("packet_out", "emit") and kind.composite():
            return VOID, lambda: cell.value.emit(of())
        raise Wrong("%s: %s of %s" % (node.at, name, kind))


def sized(values, at):
    """A register's number of entries."""
    if len(values) not in (1, 2) or not isinstance(values[0], int) or values[0] < 1:
        raise Wrong("%s: a register needs a size" % at)
    return values[0]
