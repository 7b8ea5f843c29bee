# SPDX-License-Identifier: BSD-3-Clause
"""A program made to run: names are resolved and types checked once, and each expression and statement becomes a Python function.

Types are checked as strictly as the language says: no width is changed without a cast, only constants without a width fit where one is wanted. P4 has no recursion, so
each variable is one Cell. What has no defined outcome (a value that was never set, a field of an invalid header) is Wrong.
"""
from syntax import Wrong
from values import ANY, BOOL, ERROR, INTEGER, TEXT, VOID, Aggregate, Type, bit, fresh


class Exit(Exception):
    """`exit`, out of everything up to the architecture."""


class Return(Exception):
    """`return`, out of an action or apply."""


class Cell:
    def __init__(self, name, type_, writable=True):
        self.name, self.type, self.writable, self.value = name, type_, writable, None


class Constant:
    def __init__(self, type_, value):
        self.type, self.value = type_, value


class Action:
    def __init__(self, name, cells):
        self.name, self.cells, self.body = name, cells, None

    def run(self, values):
        for cell, value in zip(self.cells, values):
            cell.value = value
        try:
            self.body()
        except Return:
            pass


class Table:
    """Entries are (values of the keys, action, values of its parameters); a ternary key's value is (value, mask)."""

    def __init__(self, name, keys, actions, default):
        self.name, self.keys, self.actions, self.default, self.entries = name, keys, actions, default, []

    def apply(self):
        found = [read() for _, _, _, read in self.keys]
        for values, action, arguments in self.entries:
            if all(matches(v, f) for v, f in zip(values, found)):
                action.run(arguments)
                return True
        if self.default:
            self.default()
        return False


def matches(wanted, found):
    return found & wanted[1] == wanted[0] & wanted[1] if isinstance(wanted, tuple) else found == wanted


class Scope:
    def __init__(self, outer=None):
        self.outer, self.names = outer, {}

    def find(self, name, at):
        scope = self
        while scope:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        raise Wrong("%s: nothing is called %s" % (at, name))

    def put(self, name, thing, at):
        if name in self.names:
            raise Wrong("%s: there is a %s here already" % (at, name))
        self.names[name] = thing


def fits(at, type_, expr):
    """expr where type_ is wanted: a number without a width gets it."""
    have, run = expr
    if type_.kind in ("bit", "int") and have.kind == "integer":
        value = run()
        if type_.wrap(value) != value:
            raise Wrong("%s: %d does not fit into %s" % (at, value, type_))
        return run
    if type_.kind == "struct" and have.kind == "list":
        return struct_of(at, type_, have, run)
    if not (type_.kind == "any" or have.kind == "any" or type_.same(have)):
        raise Wrong("%s: %s where %s is wanted" % (at, have, type_))
    return run


def struct_of(at, type_, have, run):
    if [t.kind for t in have.fields.values()] != [t.kind for t in type_.fields.values()]:
        raise Wrong("%s: a list that is no %s" % (at, type_))

    def make():
        made = Aggregate(type_)
        made.fields.update(zip(type_.fields, run()))
        return made
    return make


class Compiler:
    """extern_call(instance, method, types, arguments, at) of the architecture gives (type, function) for a call of an extern."""

    def __init__(self, architecture):
        self.architecture, self.scope, self.types = architecture, Scope(), {}
        self.structures, self.units, self.tables, self.actions = {}, {}, {}, {}
        self.errors, self.package = set(), None

    # ---- types ----

    def type_of(self, node):
        if node.kind in ("bit", "int"):
            width = 1 if node.width is None else self.constant(node.width)
            return INTEGER if node.kind == "int" and node.width is None else Type(node.kind, width)
        plain = {"bool": BOOL, "error": ERROR, "string": TEXT, "any": ANY, "void": VOID}.get(node.kind)
        if plain:
            return plain
        if node.kind == "named" and node.name in self.types:
            known = self.types[node.name]
            return Type("extern", name=node.name, arguments=[self.type_of(a) for a in node.arguments]) if known.kind == "extern" else known
        raise Wrong("%s: no type is called %s" % (node.at, getattr(node, "name", node.kind)))

    def constant(self, node):
        return self.expr(node, self.scope)[1]()

    # ---- the file ----

    def program(self, parts):
        for node in parts:
            getattr(self, "declare_" + node.kind)(node)

    def declare_structure(self, node):
        self.alone(node)
        self.types[node.name] = Type(node.what, name=node.name)
        fields = self.types[node.name].fields
        for name, kind in node.fields:
            if name in fields:
                raise Wrong("%s: %s has two fields %s" % (node.at, node.name, name))
            fields[name] = self.type_of(kind)

    def declare_typedef(self, node):
        self.types[node.name] = self.type_of(node.type)

    def declare_enum(self, node):
        kind = Type("enum", name=node.name) if node.type is None else self.type_of(node.type)
        self.types[node.name] = kind
        members = {n: n if v is None else self.constant(v) for n, v in node.members}
        self.scope.put(node.name, ("enum", kind, members), node.at)

    def declare_error(self, node):
        self.errors |= set(node.members)

    def declare_match_kind(self, node):
        pass

    def declare_extern(self, node):
        self.types[node.name] = Type("extern", name=node.name)

    def declare_function(self, node):
        self.scope.names.setdefault(node.method.name, ("function", node.method))

    def declare_unit_type(self, node):
        self.alone(node)
        self.types[node.name] = Type("unit_type", name=node.name)

    def alone(self, node):
        """Types, parsers and controls share their names."""
        if node.name in self.types or node.name in self.units:
            raise Wrong("%s: there are two %s" % (node.at, node.name))

    def declare_action(self, node):
        self.scope.put(node.name, self.action(node, self.scope), node.at)

    def declare_variable(self, node):
        self.scope.put(node.name, Constant(self.type_of(node.type), self.fold(node)), node.at)

    def fold(self, node):
        return fits(node.at, self.type_of(node.type), self.expr(node.value, self.scope))()

    def declare_instance(self, node):
        """`Pipeline(...) pipe;`, `Switch(pipe) main;`: the names of the units, in order."""
        units = [a.of.name if a.kind == "call" else a.name for a in node.arguments]
        self.package = (node.type.name, units) if node.name != "main" or self.package is None else self.package

    def declare_parser(self, node):
        self.alone(node)
        self.units[node.name] = node

    declare_control = declare_parser

    # ---- units ----

    def unit(self, name):
        """(its parameters' cells, a function that runs it)"""
        node = self.units[name]
        scope = Scope(self.scope)
        cells = [self.parameter(p, scope) for p in node.parameters]
        setup = [self.local(part, scope) for part in node.parts]
        if node.kind == "control":
            body = self.statement(node.body, scope)
        else:
            body = self.states(node, scope)

        def run():
            for step in setup:
                if step:
                    step()
            try:
                body()
            except Return:
                pass
        return cells, run

    def parameter(self, node, scope):
        cell = Cell(node.name, self.type_of(node.type), node.way in ("out", "inout"))
        scope.put(node.name, cell, node.at)
        return cell

    def local(self, node, scope):
        if node.kind == "action":
            scope.put(node.name, self.action(node, scope), node.at)
        elif node.kind == "table":
            scope.put(node.name, self.table(node, scope), node.at)
        elif node.kind == "instance":
            kind = self.type_of(node.type)
            arguments = [self.expr(a, scope) if a.kind != "name" else (ANY, lambda t=a: scope.find(t.name, t.at)) for a in node.arguments]
            values = [run() for _, run in arguments]
            methods = {m.name: self.method(m, scope) for m in node.methods}
            made = self.architecture.instance(kind, [v.value if isinstance(v, Constant) else v for v in values], methods, node.at)
            scope.put(node.name, made, node.at)
        else:
            return self.variable(node, scope)
        return None

    def method(self, node, scope):
        inner = Scope(scope)
        cells = [self.parameter(p, inner) for p in node.parameters]
        return cells, self.statement(node.body, inner)

    def action(self, node, scope):
        inner = Scope(scope)
        action = Action(node.notes.get("name", "." + node.name).lstrip("."), [self.parameter(p, inner) for p in node.parameters])
        action.body = self.statement(node.body, inner)
        self.actions[action.name] = action
        return action

    def table(self, node, scope):
        keys = []
        for of, match, notes in node.keys:
            if match not in ("exact", "ternary"):
                raise Wrong("%s: %s keys are not known here" % (of.at, match))
            kind, run = self.expr(of, scope)
            keys.append((notes.get("name", spelled(of)), match, kind, run))
        actions = {}
        for reference in node.actions:
            action = scope.find(reference.name, reference.at)
            actions[action.name] = action
        default = None
        if node.default is not None:
            call = node.default
            action = scope.find(call.name if call.kind == "name" else call.of.name, call.at)
            if action.name not in actions:
                raise Wrong("%s: the default action is not one of the table's" % call.at)
            values = [fits(call.at, c.type, self.expr(a, scope))() for c, a in zip(action.cells, [] if call.kind == "name" else call.arguments)]
            default = lambda: action.run(values)
        if node.size is not None:
            self.constant(node.size)
        table = Table(node.notes.get("name", "." + node.name).lstrip("."), keys, actions, default)
        self.tables[table.name] = table
        return table

    def states(self, node, scope):
        table = {s.name: ([self.statement(x, Scope(scope)) for x in s.body], self.next_of(s.next, scope)) for s in node.states}
        for state in node.states:
            for to in [state.next.to] if state.next.kind == "go" else [c[2] for c in state.next.cases]:
                if to not in table and to not in ("accept", "reject"):
                    raise Wrong("%s: there is no state %s" % (state.at, to))

        def run():
            name = "start"
            while name not in ("accept", "reject"):
                body, go = table[name]
                for step in body:
                    step()
                name = go()
        return run

    def next_of(self, node, scope):
        if node.kind == "go":
            return lambda: node.to
        of = [self.expr(e, scope) for e in node.of]
        cases = []
        for at, keys, to in node.cases:
            if len(keys) == 1 and keys[0].kind == "otherwise":
                cases.append((None, to))
                continue
            if len(keys) != len(of):
                raise Wrong("%s: %d keys for %d values" % (at, len(keys), len(of)))
            cases.append(([self.keyset(k, kind, scope) for k, (kind, _) in zip(keys, of)], to))

        def choose():
            values = [run() for _, run in of]
            for keys, to in cases:
                if keys is None or all(matches(k, v) for k, v in zip(keys, values)):
                    return to
            raise self.architecture.parser_error("NoMatch")
        return choose

    def keyset(self, node, kind, scope):
        if node.kind == "otherwise":
            return (0, 0)
        if node.kind == "mask":
            return (fits(node.at, kind, self.expr(node.value, scope))(), fits(node.at, kind, self.expr(node.mask, scope))())
        return fits(node.at, kind, self.expr(node, scope))()

    # ---- statements ----

    def statement(self, node, scope):
        return getattr(self, "run_" + node.kind)(node, scope)

    def run_block(self, node, scope):
        inner = Scope(scope)
        steps = [self.statement(s, inner) for s in node.body]

        def run():
            for step in steps:
                step()
        return run

    def run_if(self, node, scope):
        condition = fits(node.at, BOOL, self.expr(node.condition, scope))
        yes = self.statement(node.yes, Scope(scope))
        no = self.statement(node.no, Scope(scope)) if node.no else lambda: None

        def run():
            (yes if condition() else no)()
        return run

    def run_exit(self, node, scope):
        def run():
            raise Exit()
        return run

    def run_return(self, node, scope):
        def run():
            raise Return()
        return run

    def run_variable(self, node, scope):
        return self.variable(node, scope)

    def variable(self, node, scope):
        kind = self.type_of(node.type)
        value = None if node.value is None else fits(node.at, kind, self.expr(node.value, scope))
        cell = Cell(node.name, kind, not node.constant)
        scope.put(node.name, cell, node.at)

        def run():
            cell.value = fresh(kind) if value is None else value()
        return run

    def run_assign(self, node, scope):
        kind, write = self.target(node.target, scope)
        value = fits(node.at, kind, self.expr(node.value, scope))
        return lambda: write(value())

    def run_do(self, node, scope):
        return self.expr(node.call, scope)[1]

    def target(self, node, scope):
        """(type, function that stores)"""
        if node.kind == "name":
            cell = scope.find(node.name, node.at)
            if not isinstance(cell, Cell) or not cell.writable:
                raise Wrong("%s: %s cannot be assigned to" % (node.at, node.name))
            if cell.type.composite():
                return cell.type, lambda value: cell.value.take(value)

            def store(value):
                cell.value = value
            return cell.type, store
        if node.kind == "member":
            self.target(node.of, scope)  # nobody writes into what is only read
            kind, of = self.expr(node.of, scope)
            if node.name not in kind.fields:
                raise Wrong("%s: %s has no %s" % (node.at, kind, node.name))

            def store_field(value):
                whole = of()
                if not whole.valid:
                    raise Wrong("%s: %s is written while its header is invalid" % (node.at, spelled(node)))
                if isinstance(value, Aggregate):
                    whole.fields[node.name].take(value)
                else:
                    whole.fields[node.name] = value
            return kind.fields[node.name], store_field
        raise Wrong("%s: this cannot be assigned to" % node.at)

    # ---- expressions: (type, function) ----

    def expr(self, node, scope):
        return getattr(self, "of_" + node.kind)(node, scope)

    def of_number(self, node, _):
        kind = INTEGER if node.width is None else Type("int" if node.signed else "bit", node.width)
        if node.width is not None and kind.wrap(node.value) != node.value:
            raise Wrong("%s: %d does not fit into %s" % (node.at, node.value, kind))
        return kind, lambda: node.value

    def of_truth(self, node, _):
        return BOOL, lambda: node.value

    def of_text(self, node, _):
        return TEXT, lambda: node.text

    def of_error_value(self, node, _):
        if node.name not in self.errors:
            raise Wrong("%s: there is no error %s" % (node.at, node.name))
        return ERROR, lambda: node.name

    def of_list(self, node, scope):
        items = [self.expr(i, scope) for i in node.items]
        return Type("list", fields=enumerate(t for t, _ in items)), lambda: [run() for _, run in items]

    def of_name(self, node, scope):
        thing = scope.find(node.name, node.at)
        if isinstance(thing, Constant):
            return thing.type, lambda: thing.value
        if not isinstance(thing, Cell):
            raise Wrong("%s: %s is no value" % (node.at, node.name))

        def read():
            if thing.value is None:
                raise Wrong("%s: %s is read and was never set" % (node.at, node.name))
            return thing.value
        return thing.type, read

    def of_member(self, node, scope):
        if node.of.kind == "name":
            thing = scope.find(node.of.name, node.at)
            if isinstance(thing, tuple) and thing[0] == "enum":
                if node.name not in thing[2]:
                    raise Wrong("%s: %s has no %s" % (node.at, node.of.name, node.name))
                return thing[1], lambda: thing[2][node.name]
        if node.of.kind == "call" and node.name in ("hit", "miss"):
            kind, run = self.expr(node.of, scope)
            if kind.kind == "applied":
                return BOOL, (lambda: run()) if node.name == "hit" else (lambda: not run())
        kind, of = self.expr(node.of, scope)
        if node.name not in kind.fields:
            raise Wrong("%s: %s has no %s" % (node.at, kind, node.name))

        def read():
            whole = of()
            if not whole.valid:
                raise Wrong("%s: %s is read while its header is invalid" % (node.at, spelled(node)))
            value = whole.fields[node.name]
            if value is None:
                raise Wrong("%s: %s is read and was never set" % (node.at, spelled(node)))
            return value
        return kind.fields[node.name], read

    def of_slice(self, node, scope):
        kind, of = self.expr(node.of, scope)
        high, low = self.constant(node.high), self.constant(node.low)
        if kind.kind != "bit" or not kind.width > high >= low >= 0:
            raise Wrong("%s: bits %d to %d of %s" % (node.at, high, low, kind))
        return bit(high - low + 1), lambda: of() >> low & ((1 << (high - low + 1)) - 1)

    def of_cast(self, node, scope):
        to = self.type_of(node.to)
        have, of = self.expr(node.of, scope)
        if to.same(have):
            return to, of
        allowed = (have.kind == "integer" and to.kind in ("bit", "int")) or (have.kind == to.kind and to.kind in ("bit", "int")) or (
            {have.kind, to.kind} == {"bit", "int"} and have.width == to.width) or ({str(have), str(to)} == {"bool", "bit<1>"})
        if not allowed:
            raise Wrong("%s: no cast from %s to %s" % (node.at, have, to))
        if to.kind == "bool":
            return to, lambda: bool(of())
        return to, lambda: to.wrap(int(of()))

    def of_unary(self, node, scope):
        kind, of = self.expr(node.of, scope)
        if node.op == "!":
            return BOOL, (lambda run=fits(node.at, BOOL, (kind, of)): not run())
        if kind.kind not in ("bit", "int", "integer") or (node.op == "~" and kind.kind == "integer"):
            raise Wrong("%s: %s of %s" % (node.at, node.op, kind))
        wrap = kind.wrap if kind.width else lambda v: v
        return kind, {"-": lambda: wrap(-of()), "+": of, "~": lambda: wrap(~of())}[node.op]

    def of_choice(self, node, scope):
        condition = fits(node.at, BOOL, self.expr(node.condition, scope))
        yes, no = self.expr(node.yes, scope), self.expr(node.no, scope)
        kind = yes[0] if yes[0].kind != "integer" else no[0]
        one, other = fits(node.at, kind, yes), fits(node.at, kind, no)
        return kind, lambda: one() if condition() else other()

    def of_binary(self, node, scope):
        left, right = self.expr(node.left, scope), self.expr(node.right, scope)
        op = node.op
        if op in ("&&", "||"):
            a, b = fits(node.at, BOOL, left), fits(node.at, BOOL, right)
            return BOOL, (lambda: a() and b()) if op == "&&" else (lambda: a() or b())
        if op == "++":
            return self.joined(node, left, right)
        if op in ("<<", ">>"):
            return self.shifted(node, left, right)
        kind = left[0] if left[0].kind != "integer" else right[0]
        a, b = fits(node.at, kind, left), fits(node.at, kind, right)
        if op in ("==", "!="):
            return BOOL, (lambda: a() == b()) if op == "==" else (lambda: a() != b())
        if kind.kind not in ("bit", "int", "integer") or (op in "/%" and kind.kind != "integer"):
            raise Wrong("%s: %s of %s" % (node.at, op, kind))
        compare = {"<": lambda: a() < b(), ">": lambda: a() > b(), "<=": lambda: a() <= b(), ">=": lambda: a() >= b()}
        if op in compare:
            return BOOL, compare[op]
        plain = {"+": lambda: a() + b(), "-": lambda: a() - b(), "*": lambda: a() * b(), "&": lambda: a() & b(), "|": lambda: a() | b(),
                 "^": lambda: a() ^ b(), "/": lambda: a() // b(), "%": lambda: a() % b()}
        if op in ("|+|", "|-|"):
            if kind.kind == "integer":
                raise Wrong("%s: %s of numbers without a width" % (node.at, op))
            raw = plain[op[1]]
            return kind, lambda: kind.clamp(raw())
        return (kind, plain[op]) if kind.kind == "integer" else (kind, lambda: kind.wrap(plain[op]()))

    def joined(self, node, left, right):
        for kind, _ in (left, right):
            if kind.kind not in ("bit", "int"):
                raise Wrong("%s: ++ of %s" % (node.at, kind))
        (a, run_a), (b, run_b) = left, right
        mask = (1 << b.width) - 1
        kind = Type(a.kind, a.width + b.width)
        return kind, lambda: kind.wrap(run_a() << b.width | (run_b() & mask))

    def shifted(self, node, left, right):
        kind, by = left[0], right[0]
        if kind.kind not in ("bit", "int", "integer") or by.kind not in ("bit", "integer"):
            raise Wrong("%s: %s of %s by %s" % (node.at, node.op, kind, by))
        a, b = left[1], right[1]
        if node.op == ">>":
            return kind, lambda: a() >> b()
        return (kind, lambda: a() << b()) if kind.kind == "integer" else (kind, lambda: kind.wrap(a() << min(b(), kind.width)))

    # ---- calls ----

    def of_call(self, node, scope):
        if node.of.kind == "name":
            thing = scope.find(node.of.name, node.at)
            if isinstance(thing, Action):
                return VOID, self.action_call(node, thing, scope)
            if isinstance(thing, tuple) and thing[0] == "function":
                return self.architecture.function(self, node.of.name, node, scope)
            raise Wrong("%s: %s cannot be called" % (node.at, node.of.name))
        if node.of.kind != "member":
            raise Wrong("%s: this cannot be called" % node.at)
        method = node.of.name
        if node.of.of.kind == "name":
            thing = scope.find(node.of.of.name, node.at)
            if isinstance(thing, Table) and method == "apply":
                return Type("applied"), thing.apply
            if not isinstance(thing, (Cell, Constant, tuple)):
                return self.architecture.method(self, thing, method, node, scope)
            if isinstance(thing, Cell) and thing.type.kind == "extern":
                return self.architecture.method(self, thing, method, node, scope)
        return self.header_call(node, method, scope)

    def header_call(self, node, method, scope):
        kind, of = self.expr(node.of.of, scope)
        if kind.kind != "header" or method not in ("isValid", "setValid", "setInvalid") or node.arguments:
            raise Wrong("%s: %s has no method %s" % (node.at, kind, method))
        if method == "isValid":
            return BOOL, lambda: of().valid
        self.target(node.of.of, scope)

        def change():
            header = of()
            if method == "setInvalid" or not header.valid:
                header.take(Aggregate(kind))
            header.valid = method == "setValid"
        return VOID, change

    def action_call(self, node, action, scope):
        if len(node.arguments) != len(action.cells):
            raise Wrong("%s: %s takes %d arguments" % (node.at, action.name, len(action.cells)))
        values = [fits(node.at, c.type, self.expr(a, scope)) for c, a in zip(action.cells, node.arguments)]
        return lambda: action.run([v() for v in values])


def spelled(node):
    return node.name if node.kind == "name" else "%s.%s" % (spelled(node.of), node.name) if node.kind == "member" else "?"
