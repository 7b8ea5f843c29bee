# SPDX-License-Identifier: BSD-3-Clause
"""The architecture TNA, as far as ina_tna.p4 uses it: one pipe, whose port 68 leads back into it.

After tofino1_base.p4 and tofino1_arch.p4 of p4c. Held here besides: a packet reaches a register once in each pass. Checksum.verify() is true when the sum is WRONG,
as programs for Tofino use it (the comment in the header says the reverse). What does not show here is whether it fits: stages, containers, one operation a stage.
"""
from architecture import Architecture, sized
from packet import PacketIn, PacketOut, ParserError, checksum16
from syntax import Wrong
from values import BOOL, VOID, Aggregate, Cells, bit, fresh, pack

RECIRCULATE = 68
PORT_METADATA = bytes(8)
RUNT = 60  # bytes, the shortest frame of Ethernet's without check sequence
ACTIONS_OF_A_REGISTER = 4


class Register:
    def __init__(self, kind, size):
        self.cells, self.used, self.actions = Cells(kind, size), False, 0


class RegisterAction:
    def __init__(self, register, returns, method):
        self.register, self.returns, self.cells, self.body = register, returns, method[0], method[1]


class Checksum:
    def __init__(self):
        self.number = self.bits = 0


class Tna(Architecture):
    def __init__(self):
        self.groups, self.nodes, self.registers = {}, [], []

    # ---- externs ----

    def instance(self, kind, values, methods, at):
        if kind.name == "Checksum" and not values:
            return Checksum()
        if kind.name == "Register":
            self.registers.append(Register(kind.arguments[0], sized(values, at)))
            return self.registers[-1]
        if kind.name != "RegisterAction" or not isinstance(values[0], Register) or list(methods) != ["apply"]:
            raise Wrong("%s: an instance of %s" % (at, kind.name))
        values[0].actions += 1
        if values[0].actions > ACTIONS_OF_A_REGISTER:
            raise Wrong("%s: a register has more than %d actions" % (at, ACTIONS_OF_A_REGISTER))
        return RegisterAction(values[0], kind.arguments[2], methods["apply"])

    def registeraction_execute(self, compiler, action, node, scope):
        (index,) = self.arguments(node, 1)
        where = self.value(compiler, index, bit(16), scope)

        def execute():
            register = action.register
            if register.used:
                raise Wrong("%s: the register is reached twice in one pass" % node.at)
            register.used = True
            if where() >= register.cells.size:
                raise Wrong("%s: entry %d of a register that has %d" % (node.at, where(), register.cells.size))
            value, out = action.cells
            value.value, out.value = register.cells[where()], None
            action.body()
            register.cells[where()] = value.value
            return out.value
        return action.returns, execute

    def checksum_add(self, compiler, checksum, node, scope):
        of = self.packed(compiler, node, scope)

        def add():
            number, bits = of()
            checksum.number, checksum.bits = checksum.number << bits | number, checksum.bits + bits
        return VOID, add

    def checksum_verify(self, compiler, checksum, node, scope):
        self.arguments(node, 0)

        def verify():
            wrong = checksum16(checksum.number, checksum.bits) != 0
            checksum.number = checksum.bits = 0
            return wrong
        return BOOL, verify

    def checksum_update(self, compiler, checksum, node, scope):
        of = self.packed(compiler, node, scope)
        return bit(16), lambda: checksum16(*of())

    def packed(self, compiler, node, scope):
        (data,) = self.arguments(node, 1)
        kind, of = compiler.expr(data, scope)
        if kind.bits() % 16:
            raise Wrong("%s: the fields of a checksum are not a multiple of 16 bits" % node.at)
        return (lambda: of().pack()) if kind.composite() else (lambda: pack(list(zip(of(), kind.fields.values()))))

    # ---- the switch ----

    def build(self, compiler):
        name, units = compiler.package
        if name != "Pipeline" or len(units) != 6:
            raise Wrong("the program is no Switch of one Pipeline of six parts")
        self.compiler = compiler
        self.units = [compiler.unit(u) for u in units]

    def fresh_of(self, unit, first, zero=False):
        return [fresh(c.type, zero) for c in unit[0][first:]]

    def parse(self, unit, data, intrinsic):
        """(headers, metadata, intrinsic metadata, payload, error)"""
        hdr, meta, intr = self.fresh_of(unit, 1)
        front = Aggregate(intr.type, zero=True)
        front.fields.update(intrinsic)
        number, bits = front.pack()
        packet, error = PacketIn(number.to_bytes(bits // 8, "big") + data), 0
        try:
            self.run(unit, packet, hdr, meta, intr)
        except ParserError:
            error = 1
        return hdr, meta, intr, packet.rest(), error

    def send(self, port, data):
        """[(port, bytes)] that come out"""
        done, waiting = [], [(port, data.ljust(RUNT, b"\0"))]
        while waiting:
            if len(done) + len(waiting) > 100:
                raise Wrong("packets go round for ever")
            for out, frame in self.pass_through(*waiting.pop()):
                (waiting if out & 0x7F == RECIRCULATE else done).append((out, frame))
        for _, frame in done:
            if len(frame) < RUNT:
                raise Wrong("a frame of %d bytes is too short for Ethernet" % len(frame))
        return done

    def pass_through(self, port, data):
        for register in self.registers:
            register.used = False
        parser, control, deparser = self.units[:3]
        hdr, meta, intr, payload, error = self.parse(parser, PORT_METADATA + data, {"ingress_port": port})
        from_parser, for_deparser, tm = self.fresh_of(control, 3)
        from_parser.fields["parser_err"] = error
        for_deparser.fields["drop_ctl"] = 0
        self.run(control, hdr, meta, intr, from_parser, for_deparser, tm)
        packet = PacketOut()
        self.run(deparser, packet, hdr, meta, for_deparser)
        if for_deparser.fields["drop_ctl"] & 1:
            return []
        return [out for to in self.copies(tm.fields) for out in self.leave(to, packet.data + payload)]

    def copies(self, tm):
        unicast = [] if tm["ucast_egress_port"] is None else [(tm["ucast_egress_port"], 0)]
        return unicast + [(port, rid) for rid, ports in self.groups.get(tm["mcast_grp_a"], []) for port in ports]

    def leave(self, to, data):
        parser, control, deparser = self.units[3:]
        hdr, meta, intr, payload, error = self.parse(parser, data, {"egress_port": to[0], "egress_rid": to[1]})
        from_parser, for_deparser, port = self.fresh_of(control, 3)
        from_parser.fields["parser_err"] = error
        for_deparser.fields["drop_ctl"] = 0
        self.run(control, hdr, meta, intr, from_parser, for_deparser, port)
        packet = PacketOut()
        self.run(deparser, packet, hdr, meta, for_deparser)
        return [] if for_deparser.fields["drop_ctl"] & 1 else [(to[0], packet.data + payload)]
