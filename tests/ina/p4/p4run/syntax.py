# SPDX-License-Identifier: BSD-3-Clause
"""P4_16's grammar, the part of it that switches for hawser's frames are written in: text to a tree of Nodes.

After the grammar in the appendix of the P4_16 language specification (version 1.2). What is not understood ends with one line, file and line number first.
"""
import re
import subprocess

TOKEN = re.compile(r"""
    (?P<space>[ \t\r\n]+) | (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<number>(?:\d+[ws])?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[dD][0-9_]+|\d[\d_]*))
  | (?P<name>[A-Za-z_]\w*) | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<op>&&&|\|\+\||\|-\||\+\+|<<|<=|>=|==|!=|&&|\|\||\.\.\.|\.\.|[-+*/%&|^~!<>=?:;,.(){}\[\]@])
""", re.X | re.S)
KEYWORDS = frozenset("""abstract action actions apply bit bool const control default else enum error exit extern false header header_union if in inout
int key match_kind type out package parser return select state string struct switch table this transition true tuple typedef value_set varbit void
_ entries priority list for break continue pragma""".split())
USABLE = frozenset("apply key actions state type entries priority list".split())  # keywords that may still be names
LEVELS = (("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("|",), ("^",), ("&",), ("<<", ">>"), ("+", "-", "++", "|+|", "|-|"), ("*", "/", "%"))


class Wrong(Exception):
    """The program is not right, or does what has no defined outcome."""


class Node:
    def __init__(self, kind, at, **parts):
        self.kind, self.at = kind, at
        self.__dict__.update(parts)


def preprocess(path, folders, defines=()):
    words = ["cc", "-E", "-undef", "-nostdinc", "-x", "assembler-with-cpp"] + ["-I" + f for f in folders] + ["-D" + d for d in defines]
    done = subprocess.run(words + [path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Wrong(done.stderr.strip())
    return done.stdout


def tokens_of(text):
    """(class, text, place, touches the one before)"""
    out, file, line = [], "?", 1
    for part in re.split(r"(?m)(^#[^\n]*\n)", text):
        marker = re.match(r'# (\d+) "([^"]*)"', part)
        if marker:
            line, file = int(marker[1]), marker[2]
            continue
        position, touches = 0, False
        while position < len(part):
            match = TOKEN.match(part, position)
            if not match:
                raise Wrong("%s:%d: no token begins with %r" % (file, line, part[position]))
            if match.lastgroup in ("space", "comment"):
                touches = False
            else:
                out.append((match.lastgroup, match[0], "%s:%d" % (file, line), touches))
                touches = True
            line += match[0].count("\n")
            position = match.end()
    out.append(("end", "end of the file", "%s:%d" % (file, line), False))
    return out


class Grammar:
    """A recursive descent over the tokens. Names of types are remembered, as the language's own grammar needs them."""

    def __init__(self, tokens):
        self.tokens, self.i, self.types = tokens, 0, set()

    # ---- tokens ----

    def peek(self, ahead=0):
        return self.tokens[min(self.i + ahead, len(self.tokens) - 1)]

    def at(self):
        return self.peek()[2]

    def see(self, *texts):
        return self.peek()[1] in texts and self.peek()[0] != "string"

    def take(self, *texts):
        if self.see(*texts):
            self.i += 1
            return self.tokens[self.i - 1][1]
        return None

    def need(self, *texts):
        got = self.take(*texts)
        if got is None:
            raise Wrong("%s: expected %s, found %s" % (self.at(), " or ".join(texts), self.peek()[1]))
        return got

    def name(self):
        kind, text = self.peek()[:2]
        if kind != "name" or (text in KEYWORDS and text not in USABLE):
            raise Wrong("%s: expected a name, found %s" % (self.at(), text))
        self.i += 1
        return text

    def annotations(self):
        """{name: text in brackets}"""
        found = {}
        while self.take("@"):
            name, words = self.peek()[1], []
            self.i += 1
            if self.take("("):
                depth = 1
                while depth:
                    kind, text = self.peek()[:2]
                    if kind == "end":
                        raise Wrong("%s: an annotation without its end" % self.at())
                    self.i += 1
                    depth += (text == "(") - (text == ")")
                    if depth:
                        words.append(text)
            found[name] = "".join(words).strip('"')
        return found

    def list_of(self, item, end):
        items = []
        while not self.see(end):
            items.append(item())
            if not self.take(","):
                break
        self.need(end)
        return items

    # ---- types ----

    def starts_type(self):
        kind, text = self.peek()[:2]
        return text in ("bit", "int", "bool", "error", "void", "varbit", "tuple", "string", "match_kind", "_") or (kind == "name" and text in self.types)

    def type(self):
        at = self.at()
        if self.take("_"):
            return Node("any", at)
        word = self.take("bit", "int", "varbit")
        if word:
            width = None
            if self.take("<"):
                width = self.expression(len(LEVELS) - 2)
                self.need(">")
            return Node(word, at, width=width)
        word = self.take("bool", "error", "void", "string", "match_kind")
        if word:
            return Node(word, at)
        name = self.take("tuple") or self.name()
        arguments = []
        if self.take("<"):
            arguments = self.type_list()
        node = Node("named", at, name=name, arguments=arguments)
        if self.take("["):
            node = Node("stack", at, element=node, size=self.expression())
            self.need("]")
        return node

    def type_list(self):
        items = [self.type()]
        while self.take(","):
            items.append(self.type())
        self.need(">")
        return items

    def type_parameters(self):
        names = []
        if self.take("<"):
            while True:
                names.append(self.name())
                if not self.take(","):
                    break
            self.need(">")
        return names

    # ---- expressions ----

    def expression(self, level=-1):
        if level == -1:
            at, node = self.at(), self.expression(0)
            while self.take("?"):  # the first of two groups first, other than in C
                yes = self.expression()
                self.need(":")
                node = Node("choice", at, condition=node, yes=yes, no=self.expression(0))
            return node
        if level == len(LEVELS):
            return self.prefix()
        left = self.expression(level + 1)
        while True:
            at, op = self.at(), self.operator(LEVELS[level])
            if not op:
                return left
            left = Node("binary", at, op=op, left=left, right=self.expression(level + 1))

    def operator(self, ops):
        """>> is two tokens, so that lists of types may end with it."""
        if self.see(">") and self.peek(1)[1] == ">" and self.peek(1)[3]:
            if ">>" not in ops:
                return None
            self.i += 2
            return ">>"
        return self.take(*ops)

    def prefix(self):
        at = self.at()
        op = self.take("!", "~", "-", "+")
        if op:
            return Node("unary", at, op=op, of=self.prefix())
        if self.see("("):
            save = self.i
            self.i += 1
            if self.starts_type():
                cast = self.type()
                if self.take(")"):
                    return Node("cast", at, to=cast, of=self.prefix())
            self.i = save
        return self.postfix()

    def postfix(self):
        node = self.primary()
        while True:
            at = self.at()
            if self.take("."):
                node = Node("member", at, of=node, name="apply" if self.take("apply") else self.name())
            elif self.take("["):
                high = self.expression()
                if self.take(":"):
                    node = Node("slice", at, of=node, high=high, low=self.expression())
                else:
                    node = Node("index", at, of=node, index=high)
                self.need("]")
            elif self.see("(") or (self.see("<") and self.generic_call()):
                kinds = []
                if self.take("<"):
                    kinds = self.type_list()
                self.need("(")
                node = Node("call", at, of=node, types=kinds, arguments=self.list_of(self.argument, ")"))
            else:
                return node

    def generic_call(self):
        save, found = self.i, False
        self.i += 1
        if self.starts_type():
            try:
                self.type_list()
                found = self.see("(")
            except Wrong:
                pass
        self.i = save
        return found

    def argument(self):
        if self.take("_"):
            return Node("ignored", self.at())
        return self.expression()

    def primary(self):
        kind, text, at = self.peek()[:3]
        if kind == "number":
            self.i += 1
            return number(text, at)
        if kind == "string":
            self.i += 1
            return Node("text", at, text=text[1:-1])
        if self.take("true", "false"):
            return Node("truth", at, value=text == "true")
        if self.take("("):
            node = self.expression()
            self.need(")")
            return node
        if self.take("{"):
            return Node("list", at, items=self.list_of(self.expression, "}"))
        if self.take("error"):
            self.need(".")
            return Node("error_value", at, name=self.name())
        if self.take("default", "_"):
            return Node("otherwise", at)
        if self.take("."):
            return Node("name", at, name=self.name())
        return Node("name", at, name=self.name())

    # ---- statements ----

    def block(self):
        at = self.at()
        self.need("{")
        body = []
        while not self.take("}"):
            body.append(self.statement())
        return Node("block", at, body=body)

    def statement(self):
        self.annotations()
        at = self.at()
        if self.see("{"):
            return self.block()
        if self.take(";"):
            return Node("block", at, body=[])
        if self.take("if"):
            self.need("(")
            condition = self.expression()
            self.need(")")
            yes = self.statement()
            return Node("if", at, condition=condition, yes=yes, no=self.statement() if self.take("else") else None)
        word = self.take("exit", "return")
        if word:
            if not self.see(";"):
                raise Wrong("%s: %s with a value" % (at, word))
            self.need(";")
            return Node(word, at)
        if self.see("const") or self.declares():
            return self.variable()
        target = self.postfix()
        if self.take("="):
            node = Node("assign", at, target=target, value=self.expression())
        else:
            node = Node("do", at, call=target)
            if target.kind != "call":
                raise Wrong("%s: a statement that does nothing" % at)
        self.need(";")
        return node

    def declares(self):
        return self.starts_type() and self.peek(1)[1] != "."

    def variable(self):
        at, constant = self.at(), bool(self.take("const"))
        kind = self.type()
        if self.take("("):
            arguments = self.list_of(self.expression, ")")
            name, body = self.name(), []
            if self.take("="):
                self.need("{")
                while not self.take("}"):
                    body.append(self.method())
            self.need(";")
            return Node("instance", at, type=kind, arguments=arguments, name=name, methods=body)
        name = self.name()
        value = self.expression() if self.take("=") else None
        self.need(";")
        return Node("variable", at, constant=constant, type=kind, name=name, value=value)

    def parameters(self):
        self.need("(")
        return self.list_of(self.parameter, ")")

    def parameter(self):
        notes = self.annotations()
        at, way = self.at(), self.take("in", "out", "inout") or ""
        kind = self.type()
        name = self.name()
        value = self.expression() if self.take("=") else None
        return Node("parameter", at, way=way, type=kind, name=name, value=value, optional="optional" in notes)

    def method(self):
        """A prototype, or with a body the method of an instance."""
        self.annotations()
        self.take("abstract")
        at = self.at()
        if self.starts_type() and self.peek(1)[1] == "(" and self.peek()[1] in self.types:
            returns, name = None, self.name()  # a constructor
        else:
            save = self.i
            returns = self.type_or_variable()
            if self.see("(") and self.tokens[save][1] not in KEYWORDS:
                raise Wrong("%s: a method without a type" % at)
            name = self.name() if not self.see("apply") else self.need("apply")
        variables = self.type_parameters()
        self.types |= set(variables)
        parameters = self.parameters()
        body = self.block() if self.see("{") else None
        if body is None:
            self.need(";")
        return Node("method", at, returns=returns, name=name, variables=variables, parameters=parameters, body=body)

    def type_or_variable(self):
        """A method may return a type variable that is declared behind it."""
        if self.peek()[0] == "name" and self.peek()[1] not in KEYWORDS:
            self.types.add(self.peek()[1])
        return self.type()

    # ---- parsers, controls, tables ----

    def local_declarations(self, parts):
        """Until `apply` or the first state."""
        while True:
            notes = self.annotations()
            at = self.at()
            if self.see("apply", "state", "}"):
                return notes
            if self.take("action"):
                name, parameters = self.name(), self.parameters()
                parts.append(Node("action", at, name=name, parameters=parameters, body=self.block(), notes=notes))
            elif self.take("table"):
                parts.append(self.table(at, notes))
            else:
                parts.append(self.variable())

    def table(self, at, notes):
        table = Node("table", at, name=self.name(), keys=[], actions=[], default=None, size=None, notes=notes)
        self.need("{")
        while not self.take("}"):
            self.annotations()
            self.take("const")
            what = self.name() if not self.see("key", "actions") else self.need("key", "actions")
            self.need("=")
            if what == "key":
                self.need("{")
                while not self.take("}"):
                    of = self.expression()
                    self.need(":")
                    match = self.name()
                    table.keys.append((of, match, self.annotations()))
                    self.need(";")
            elif what == "actions":
                self.need("{")
                while not self.take("}"):
                    self.annotations()
                    table.actions.append(Node("name", self.at(), name=self.name()))
                    self.need(";")
            elif what == "default_action":
                table.default = self.postfix()
                self.need(";")
            elif what == "size":
                table.size = self.expression()
                self.need(";")
            else:
                raise Wrong("%s: property %s of a table is not known here" % (at, what))
        return table

    def states(self):
        states = []
        while not self.take("}"):
            self.annotations()
            at = self.at()
            self.need("state")
            name, body = self.name(), []
            self.need("{")
            while not self.see("transition", "}"):
                body.append(self.statement())
            self.i += self.see("transition")
            next_state = self.transition(at) if not self.see("}") else Node("go", at, to="reject")
            self.need("}")
            states.append(Node("state", at, name=name, body=body, next=next_state))
        return states

    def transition(self, at):
        if not self.take("select"):
            to = self.name()
            self.need(";")
            return Node("go", at, to=to)
        self.need("(")
        of, cases = self.list_of(self.expression, ")"), []
        self.need("{")
        while not self.take("}"):
            where = self.at()
            if self.take("("):
                key = self.list_of(self.keyset, ")")
            else:
                key = [self.keyset()]
            self.need(":")
            cases.append((where, key, self.name()))
            self.need(";")
        return Node("select", at, of=of, cases=cases)

    def keyset(self):
        value = self.expression()
        if self.take("&&&"):
            return Node("mask", value.at, value=value, mask=self.expression())
        return value

    # ---- the file ----

    def program(self):
        parts = []
        while self.peek()[0] != "end":
            if self.take(";"):
                continue
            parts.append(self.declaration())
        return parts

    def declaration(self):
        notes = self.annotations()
        at = self.at()
        word = self.take("header", "struct", "typedef", "type", "const", "enum", "error", "match_kind", "extern", "parser", "control", "package", "action")
        if word in ("header", "struct"):
            return self.structure(word, at)
        if word in ("typedef", "type"):
            kind = self.type()
            name = self.name()
            self.need(";")
            self.types.add(name)
            return Node("typedef", at, type=kind, name=name)
        if word == "const":
            self.i -= 1
            return self.variable()
        if word == "enum":
            kind = self.type() if self.see("bit") else None
            name = self.name()
            self.types.add(name)
            self.need("{")
            return Node("enum", at, name=name, type=kind, members=self.list_of(self.member_of_enum, "}"))
        if word in ("error", "match_kind"):
            self.need("{")
            return Node(word, at, members=[m for m, _ in self.list_of(self.member_of_enum, "}")])
        if word == "action":
            name, parameters = self.name(), self.parameters()
            return Node("action", at, name=name, parameters=parameters, body=self.block(), notes=notes)
        if word == "extern":
            return self.extern(at)
        if word in ("parser", "control", "package"):
            return self.unit(word, at)
        return self.variable()

    def member_of_enum(self):
        self.annotations()
        name = self.name()
        return name, self.expression() if self.take("=") else None

    def structure(self, word, at):
        name, fields = self.name(), []
        self.types.add(name)
        for variable in self.type_parameters():
            self.types.add(variable)
        self.need("{")
        while not self.take("}"):
            self.annotations()
            kind = self.type()
            fields.append((self.name(), kind))
            self.need(";")
        return Node("structure", at, what=word, name=name, fields=fields)

    def extern(self, at):
        if self.peek(1)[1] in ("{", "<") and self.peek()[0] == "name" and self.peek()[1] not in KEYWORDS:
            name = self.name()
            self.types.add(name)
            variables, methods = self.type_parameters(), []
            self.types |= set(variables)
            self.need("{")
            while not self.take("}"):
                methods.append(self.method())
            return Node("extern", at, name=name, variables=variables, methods=methods)
        return Node("function", at, method=self.method())

    def unit(self, word, at):
        name = self.name()
        variables = self.type_parameters()
        self.types |= set(variables) | {name}
        parameters = self.parameters()
        if self.take(";"):
            return Node("unit_type", at, what=word, name=name, variables=variables, parameters=parameters)
        self.need("{")
        parts = []
        self.local_declarations(parts)
        if word == "parser":
            return Node("parser", at, name=name, parameters=parameters, parts=parts, states=self.states())
        self.need("apply")
        body = self.block()
        self.need("}")
        return Node("control", at, name=name, parameters=parameters, parts=parts, body=body)


def number(text, at):
    sized = re.match(r"(\d+)([ws])(.*)", text)
    digits = (sized[3] if sized else text).replace("_", "").lower()
    value = int(digits[2:], 10) if digits.startswith("0d") else int(digits, 0 if digits[:2] in ("0x", "0b") else 10)
    return Node("number", at, value=value, width=int(sized[1]) if sized else None, signed=bool(sized and sized[2] == "s"))
