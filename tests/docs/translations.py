#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""translations.py: the Chinese documents' commands, variables, quoted lines and links are those of the English ones.

A line of a code block counts without its comment. All of the Chinese README's blocks are in the English one and the other way round; of
operations, which is shorter in Chinese, each line and each `quoted` piece of the Chinese is in the English page."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAIRS = [("README.zh.md", "README.md", True), ("docs/zh/operations.md", "docs/operations.md", False)]
# A comment begins with a # that has a space before and after it.
COMMENT = re.compile(r"\s+# .*$")
ENGLISH_WORD = re.compile(r"[A-Za-z]")


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def commands(text):
    fenced = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return [COMMENT.sub("", line).strip() for line in re.findall(r"^    (.*)$", fenced, re.M) if line.strip()]


def quoted(text):
    return re.findall(r"`([^`\n]+)`", re.sub(r"^    .*$", "", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), flags=re.M))


def links(name, text):
    """Links to files that are not there, and to headings that their page has not."""
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+://", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
        if not os.path.exists(os.path.join(ROOT, path)):
            yield "%s: nothing is at %s" % (name, target)
        elif anchor and path.endswith(".md"):
            heads = re.findall(r"^#+ (.*)$", read(path), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}
            if anchor not in slugs:
                yield "%s: %s has no heading %s" % (name, path, anchor)


def faults():
    for chinese, english, whole in PAIRS:
        zh, en = read(chinese), read(english)
        there = commands(en)
        for command in commands(zh):
            if command not in there:
                yield "%s: not in %s: %s" % (chinese, english, command)
        for command in there if whole else []:
            if command not in commands(zh):
                yield "%s: missing from %s: %s" % (english, chinese, command)
        for piece in quoted(zh):
            if ENGLISH_WORD.search(piece) and piece not in en:
                yield "%s: not in %s: `%s`" % (chinese, english, piece)
        yield from links(chinese, zh)


def main():
    assert COMMENT.sub("", "a --b   # c") == "a --b" and COMMENT.sub("", "a '#b'") == "a '#b'"
    found = list(faults())
    print("\n".join(found) or "the translations' commands, quotations and links are in the tree")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
