# SPDX-License-Identifier: BSD-3-Clause
"""The architecture v1model, as BMv2's simple_switch has it: parser, checksum, ingress, copies, egress, checksum, deparser.

After "The BMv2 Simple Switch target" in BMv2's docs: metadata begin as 0; a multicast group goes before egress_spec; port 511 is the floor; exit ends a control.
"""
from architecture import Architecture, sized
from packet import PacketIn, PacketOut, ParserError, checksum16
from syntax import Wrong
from values import BOOL, VOID, Cells, bit, fresh, pack

DROP = 511


class Register:
    def __init__(self, kind, size):
        self.kind, self.cells = kind, Cells(kind, size)


class V1model(Architecture):
    def __init__(self):
        self.length = None  # of truncate()
        self.groups, self.nodes = {}, []
        self.error = False

    # ---- externs ----

    def instance(self, kind, values, methods, at):
        if kind.name != "register" or methods or len(kind.arguments) != 1:
            raise Wrong("%s: an instance of %s" % (at, kind.name))
        return Register(kind.arguments[0], sized(values, at))

    def register_read(self, compiler, register, node, scope):
        result, index = self.arguments(node, 2)
        kind, write = compiler.target(result, scope)
        if not kind.same(register.kind):
            raise Wrong("%s: %s where the register holds %s" % (node.at, kind, register.kind))
        where = self.value(compiler, index, bit(32), scope)
        return VOID, lambda: write(register.cells[self.inside(node, register, where())])

    def register_write(self, compiler, register, node, scope):
        index, value = self.arguments(node, 2)
        where, what = self.value(compiler, index, bit(32), scope), self.value(compiler, value, register.kind, scope)

        def store():
            register.cells[self.inside(node, register, where())] = what()
        return VOID, store

    def inside(self, node, register, index):
        if index >= register.cells.size:
            raise Wrong("%s: entry %d of a register that has %d" % (node.at, index, register.cells.size))
        return index

    def call_mark_to_drop(self, compiler, node, scope):
        (std,) = self.arguments(node, 1)
        compiler.target(std, scope)
        kind, of = compiler.expr(std, scope)
        if kind.name != "standard_metadata_t":
            raise Wrong("%s: mark_to_drop of %s" % (node.at, kind))
        return VOID, lambda: of().fields.update(egress_spec=DROP, mcast_grp=0)

    def call_truncate(self, compiler, node, scope):
        (length,) = self.arguments(node, 1)
        of = self.value(compiler, length, bit(32), scope)

        def cut():
            self.length = of()
        return VOID, cut

    def call_verify_checksum(self, compiler, node, scope):
        condition, sum_of, have = self.checksum(compiler, node, scope)

        def verify():
            if condition() and sum_of() != have():
                self.error = True
        return VOID, verify

    def call_update_checksum(self, compiler, node, scope):
        condition, sum_of, _ = self.checksum(compiler, node, scope)
        write = compiler.target(node.arguments[2], scope)[1]
        return VOID, lambda: write(sum_of()) if condition() else None

    def checksum(self, compiler, node, scope):
        condition, data, checksum, algorithm = self.arguments(node, 4)
        if compiler.expr(algorithm, scope)[1]() != "csum16":
            raise Wrong("%s: only csum16 is known here" % node.at)
        kind, of = compiler.expr(data, scope)
        if kind.kind != "list" or sum(k.bits() for k in kind.fields.values()) % 16:
            raise Wrong("%s: the fields of a checksum are not a multiple of 16 bits" % node.at)
        return (self.value(compiler, condition, BOOL, scope), lambda: checksum16(*pack(list(zip(of(), kind.fields.values())))),
                self.value(compiler, checksum, bit(16), scope))

    # ---- the switch ----

    def build(self, compiler):
        name, units = compiler.package
        if name != "V1Switch" or len(units) != 6:
            raise Wrong("the program is no V1Switch of six parts")
        self.compiler = compiler
        self.parser, self.verify, self.ingress, self.egress, self.compute, self.deparser = [compiler.unit(u) for u in units]
        self.kinds = [c.type for c in self.parser[0][1:4]]
        for (cells, _), kinds in ((self.verify, self.kinds[:2]), (self.ingress, self.kinds), (self.egress, self.kinds), (self.compute, self.kinds[:2])):
            if [c.type.name for c in cells] != [k.name for k in kinds]:
                raise Wrong("the parts of V1Switch do not take the same headers and metadata")

    def send(self, port, data):
        """[(port, bytes)] that come out"""
        hdr, meta, std = fresh(self.kinds[0]), fresh(self.kinds[1], zero=True), fresh(self.kinds[2], zero=True)
        std.fields.update(ingress_port=port, packet_length=len(data))
        packet, self.error = PacketIn(data), False
        try:
            self.run(self.parser, packet, hdr, meta, std)
        except ParserError as why:
            std.fields["parser_error"] = why.args[0]
        self.run(self.verify, hdr, meta)
        std.fields["checksum_error"] = int(self.error)
        self.run(self.ingress, hdr, meta, std)
        return [out for copy in self.copies(std.fields) for out in self.out(copy, packet.rest(), hdr.copy(), meta.copy(), std.copy())]

    def copies(self, std):
        """(port, rid) of each"""
        if std["mcast_grp"]:
            return [(port, rid) for rid, ports in self.groups.get(std["mcast_grp"], []) for port in ports]
        return [] if std["egress_spec"] == DROP else [(std["egress_spec"], 0)]

    def out(self, copy, payload, hdr, meta, std):
        std.fields.update(egress_port=copy[0], egress_rid=copy[1], egress_spec=0)
        self.length = None
        self.run(self.egress, hdr, meta, std)
        if std.fields["egress_spec"] == DROP:
            return []
        self.run(self.compute, hdr, meta)
        packet = PacketOut()
        self.run(self.deparser, packet, hdr)
        return [(copy[0], (packet.data + payload)[:self.length])]
