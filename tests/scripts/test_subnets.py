#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_subnets TESTS: no two files under TESTS use the same software subnets. Tests run side by side, and one that expects an address
in 127.N.0.0/24 may find it taken by another's NIC. A subnet with the process's number in it (127.N.%d.0/24, 127.N.$((...)).0/24) may be
shared by files that all have the number in it."""
import os
import re
import sys

FIXED = re.compile(r"\b127\.(\d+)\.\d+\.\d+/\d")
NUMBERED = re.compile(r"\b127\.(\d+)\.(?:%[du]|\$|\{)")
# 127.NUMBER.0.0/24 of foreign.sh, cm.sh and upper.sh: foreign_test(NAME NUMBER ...) and the like
ARGUMENT = re.compile(r"^\w+_test\(\w+\s+(\d+) ", re.M)
# The devices that softroce has when nothing is said: test_vnics and its like list them and send nothing.
DEFAULT = {"1", "2", "3", "4"}
# What reads an address and opens nothing.
READERS = {"test_front_devices.c", "icrc_vectors.py", "test_subnets.py"}


def subnets_of(text):
    """([N of fixed subnets], {N of those with a process's number}). A file's own subnet stands in the list once, each argument for itself."""
    return list(set(FIXED.findall(text))) + ARGUMENT.findall(text), set(NUMBERED.findall(text))


def clashes(texts):
    """Lines about {path: text}: which N stands in two files."""
    fixed, numbered = {}, {}
    for path, text in sorted(texts.items()):
        for users, found in zip((fixed, numbered), subnets_of(text)):
            for n in (n for n in found if n not in DEFAULT):
                users.setdefault(n, []).append(path)
    lines = []
    for n, paths in sorted(fixed.items(), key=lambda item: int(item[0])):
        others = [path for path in numbered.get(n, []) if path not in paths]
        if len(paths + others) > 1:
            lines.append("127.%s is in %s: give each its own" % (n, ", ".join(paths + others)))
    return lines


def read_sources(top):
    texts = {}
    for folder, _, names in os.walk(top):
        for name in names:
            if name in READERS or "golden" in folder:
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8", errors="replace") as file:
                texts[os.path.relpath(path, top)] = file.read()
    return texts


def check_examples():
    assert clashes({"a": "127.9.0.0/24", "b": "127.10.0.0/24,127.9.1.1"}) == []
    assert clashes({"a": "127.9.0.0/24", "b": "cm_test(x   9 y)\n"}) == ["127.9 is in a, b: give each its own"]
    assert clashes({"a": "cm_test(x 9 y)\nlong_test(z 9 y)\n"}) == ["127.9 is in a, a: give each its own"]
    assert clashes({"a": "127.9.%d.0/24", "b": "127.9.$((1)).0/24"}) == []
    assert clashes({"a": "127.9.%d.0/24", "b": "127.9.3.0/24"}) == ["127.9 is in b, a: give each its own"]
    assert clashes({"a": "127.1.0.0/16", "b": "127.1.0.0/16"}) == []


def main():
    check_examples()
    texts = read_sources(sys.argv[1])
    used = sum(len(found) for text in texts.values() for found in subnets_of(text))
    assert used > 100, "only %d subnets: the patterns no longer find them" % used
    lines = clashes(texts)
    print("\n".join(lines) or "%d subnets, none shared" % used)
    sys.exit(bool(lines))


main()
