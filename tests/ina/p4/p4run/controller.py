# SPDX-License-Identifier: BSD-3-Clause
"""What a controller puts into a switch: entries for tables; and for TNA, whose tables are others, what the vectors' entries for v1model come to there."""
from syntax import Wrong

ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER = range(1, 6)
RANKS = 32
WITH_WORDS = 0x100  # in the number of a copy
ONE_WORDS, ONE_BARE = 2, 3  # BRIDGE_WORDS, BRIDGE_BARE
NO_KIND = 0xFFFF


def add_entry(compiler, name, keys, action, arguments):
    if name not in compiler.tables or action not in compiler.tables[name].actions:
        raise Wrong("there is no table %s with an action %s" % (name, action))
    table = compiler.tables[name]
    wanted, chosen = [k[0] for k in table.keys], table.actions[action]
    names = [c.name for c in chosen.cells]
    if sorted(keys) != sorted(wanted) or sorted(arguments) != sorted(names):
        raise Wrong("%s takes %s and %s takes %s" % (name, wanted, action, names))
    values = [in_width(keys[k[0]], k[2]) for k in table.keys]
    table.entries.append((values, chosen, [in_width(arguments[c.name], c.type) for c in chosen.cells]))


def in_width(given, kind):
    """given: a number, its text, or (number, mask)"""
    value = int(given, 0) if isinstance(given, str) else given
    if not isinstance(value, tuple) and kind.wrap(value) != value:
        raise Wrong("%s does not fit into %s" % (given, kind))
    return value


class ForV1model:
    def __init__(self, switch):
        self.switch = switch

    def entry(self, name, keys, action, arguments):
        add_entry(self.switch.compiler, name, keys, action, arguments)

    def multicast(self, verb, numbers):
        groups, nodes = self.switch.groups, self.switch.nodes
        if verb == "mc_mgrp_create":
            groups[numbers[0]] = []
        elif verb == "mc_node_create":
            nodes.append((numbers[0], numbers[1:]))
        else:
            groups[numbers[0]].append(nodes[numbers[1]])


class ForTna:
    """ina/p4/README.md, "Tofino", says what goes where."""

    def __init__(self, switch):
        self.switch, self.compiler, self.groups, self.nodes = switch, switch.compiler, {}, []
        self.brings()

    def brings(self):
        anyone = (0, 0)
        for coll in (ALL_REDUCE, REDUCE, REDUCE_SCATTER):
            for root in range(RANKS):
                copies = 0 if coll == ALL_REDUCE else 1 + root
                self.sound(coll, (root, 0xFF), (root, 0xFF), 0, copies, ONE_WORDS)
                self.sound(coll, anyone, (root, 0xFF), 0, copies, ONE_WORDS if coll == ALL_REDUCE else ONE_BARE)
        for coll in (BROADCAST, ALL_GATHER):
            for root in range(RANKS):
                self.sound(coll, (root, 0xFF), (root, 0xFF), 0, 33 + root, ONE_BARE)
                add_entry(self.compiler, "brings", {"coll": coll, "rank": (root, 0xFF), "root": (root, 0xFF), "bare": 1}, "unsound", {})
                self.sound(coll, anyone, (root, 0xFF), 1, 33 + root, ONE_WORDS)

    def sound(self, coll, rank, root, bare, copies, alone):
        add_entry(self.compiler, "brings", {"coll": coll, "rank": rank, "root": root, "bare": bare}, "sound", {"copies": copies, "alone": alone})

    def entry(self, name, keys, action, arguments):
        a = {n: int(v, 0) for n, v in arguments.items()}
        group = int(keys["group"], 0)
        if name == "group":
            self.group(group, keys, a)
        elif name == "member":
            self.member(group, int(keys["rank"], 0), a["addr"])
        elif name == "lapsed":
            table = self.compiler.tables["group"]
            table.entries = [e for e in table.entries if e[0] != [group]]
        else:
            add_entry(self.compiler, name, keys, action, arguments)

    def group(self, group, keys, a):
        if keys["extended"] != "0":
            raise Wrong("a group with extended frames is not for this switch")
        self.groups[group] = a
        add_entry(self.compiler, "group", {"group": group}, "set_group", {"last": a["ranks"] - 1, "all": a["all"], "each": a["each"]})
        psn_of, kind_of = self.switch.registers[:2]
        for i in range(a["workers"] * a["each"]):
            first = a["first_psn"] + (i - a["first_psn"] & a["mask"])
            psn_of.cells[a["base"] + i].fields.update(psn=first - a["each"] & 0xFFFFFFFF, next=first & 0xFFFFFFFF)
            kind_of.cells[a["base"] + i] = NO_KIND

    def member(self, group, rank, addr):
        a = self.groups[group]
        for worker in range(a["workers"]):
            add_entry(self.compiler, "member", {"group": group, "rank": rank, "worker": worker, "addr": addr}, "set_member",
                      {"rank_bit": 1 << rank, "base": a["base"] + worker * a["each"], "mask": a["mask"]})

    def multicast(self, verb, numbers):
        """Each group becomes those of all choices of who gets words."""
        if verb == "mc_node_create":
            self.nodes.append((numbers[0], numbers[1:]))
        elif verb == "mc_node_associate":
            rank, ports = self.nodes[numbers[1]]
            for copies in range(33 + RANKS):
                gets = copies == 0 or (rank == copies - 1 if copies <= RANKS else rank != copies - 33)
                self.switch.groups.setdefault(numbers[0] << 8 | copies, []).append((rank | (WITH_WORDS if gets else 0), ports))
