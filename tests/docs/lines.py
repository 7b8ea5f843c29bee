#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""lines.py [DOCUMENT...]: every log line that the operators' documents quote is one that a program of the tree can write.

Quoted is the first column of each table whose heading begins with "line" or "text" (in Chinese 日志行 and 文本), and what stands in a code block behind a
sentence that ends with "in this order:" (依次为). A quotation is cut into clauses at punctuation and at what it leaves open ("…", words in capitals,
numbers, paths); each clause must come in a string of the sources, in two of them where a program puts it together, or be the name of an
event or a cause (include/hawser/event.h).

Without DOCUMENT: the documents of the tree, and the check tries itself on a line that no program writes."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCUMENTS = ["docs/operations.md", "docs/zh/operations.md"]
SOURCES = ["agent", "base", "include", "ina", "plugin", "rdma", "softroce", "tools"]
STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')
BETWEEN = re.compile(r"[\s\\]*(?:PRI[A-Za-z0-9]+|/\*.*?\*/)?[\s\\]*", re.S)
# What a quotation leaves open: dots, a path, a word in capitals or with a digit.
OPEN = re.compile(r"…|\.\.\.|⇄|(?<!\S)/[\w/.-]+|\b[A-Z]{1,}(?::P)?\b(?!_)|\b[\w.-]*\d[\w.:\[\]]*|[\"`']")
CLAUSE = re.compile(r"[;:,()]\s|[()]")


def strings_of(text):
    """Adjacent strings joined, as the compiler does; a format's PRIu64 stays open."""
    out, at, last = [], None, ""
    for m in STRING.finditer(text):
        if at is not None and BETWEEN.fullmatch(text, at, m.start()):
            last += ("%d" if "PRI" in text[at:m.start()] else "") + m.group(1)
        else:
            out.append(last)
            last = m.group(1)
        at = m.end()
    return out + [last]


def sources():
    found = set()
    for folder in SOURCES:
        for path, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith((".c", ".h", ".py")):
                    with open(os.path.join(path, name), encoding="utf-8") as f:
                        found.update(strings_of(f.read()))
    return "\n".join(s.replace('\\"', '"').replace("%%", "%") for s in found)


def clauses(quotation):
    """The fixed parts, with a word in each."""
    fixed = CLAUSE.sub("…", OPEN.sub("…", quotation)).split("…")
    parts = (re.sub(r"\s+", " ", p).strip(" ,;:()[]") for p in fixed)
    return [p for p in parts if re.search(r"[A-Za-z_]{2}", p)]


class Tree:
    def __init__(self):
        self.text = sources()
        with open(os.path.join(ROOT, "include/hawser/event.h"), encoding="utf-8") as f:
            names = f.read()
        self.names = [n.replace("_", " ") for n in re.findall(r'"([a-z_]+)"', names)]

    def writes_clause(self, clause):
        """In one string, or in two that a program puts together: of two words each, or of one word and four."""
        if clause in self.names or clause in self.text:
            return True
        words = clause.split(" ")
        for cut in range(1, len(words)):
            if max(cut, len(words) - cut) >= (4 if min(cut, len(words) - cut) == 1 else 2) and all(" ".join(part) in self.text for part in (words[:cut], words[cut:])):
                return True
        return False

    def writes(self, quotation):
        return all(self.writes_clause(c) for c in clauses(quotation))


def table_cells(lines):
    """(line number, first cell) of the tables of log lines."""
    inside = False
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            inside = False
            continue
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if re.match(r"line|text|日志行|文本", cells[0]) or (len(cells) > 1 and re.match(r"line|text|日志行|文本", cells[1])):
            inside, column = True, 0 if re.match(r"line|text|日志行|文本", cells[0]) else 1
        elif inside and not re.fullmatch(r"[-: ]*", cells[0]):
            yield number, cells[column]


def quotations(document):
    with open(document, encoding="utf-8") as f:
        lines = f.read().split("\n")
    for number, cell in table_cells(lines):
        for quoted in re.findall(r"`([^`]+)`", cell) or [cell]:
            yield number, quoted
    order = False
    for number, line in enumerate(lines, 1):
        if re.search(r"in this order:$|依次为：$", line):
            order = True
        elif order and line.startswith("    "):
            # Behind the connection or the device that the line is about.
            yield number, re.sub(r"^(?:soft0:1 -> n2\[4711\] soft1:1|soft0:1): (?:rail \d \(.*?\) )?", "", line.strip())
        elif line.strip():
            order = False


def check(tree, documents):
    seen = wrong = 0
    for document in documents:
        for number, quoted in quotations(document):
            seen += 1
            if not tree.writes(quoted):
                wrong += 1
                print("%s:%d: no program of the tree writes: %s" % (os.path.relpath(document, ROOT), number, quoted))
    return seen, wrong


def main():
    tree = Tree()
    if len(sys.argv) > 1:
        seen, wrong = check(tree, sys.argv[1:])
    else:
        for line in ["failed over: nobody was there", "the cable is green", "suspected: the moon is full"]:
            if tree.writes(line):
                sys.exit("the check takes what no program writes: " + line)
        seen, wrong = check(tree, [p for p in (os.path.join(ROOT, d) for d in DOCUMENTS) if os.path.exists(p)])
        if seen < 60:
            sys.exit("%d quoted lines found: the documents' tables are not read" % seen)
    print("%d quoted lines, %d of them in no program" % (seen, wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
