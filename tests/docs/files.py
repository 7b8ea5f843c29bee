#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A folder whose README.md has a table of its files names each source file there: by its name without the ending, by a pattern
(`test_engine_*.c`), or as one of several that differ in a number (`net_v6.h` ... `net_v12.h`)."""

import fnmatch
import os
import re
import sys

import links
import translations

SOURCE = re.compile(r"\.(c|h|cuh?|py|p4)$")
TABLE = re.compile(r"^\| file", re.M)


def stem_of(path):
    """Without folder, ending and the numbers in it."""
    return re.sub(r"\d+", "#", os.path.splitext(os.path.basename(path))[0])


def patterns_of(readme):
    """Of what stands in backquotes."""
    return {stem_of(word) for quoted in re.findall(r"`([^`\n]+)`", readme) for word in quoted.split()}


def is_named(path, patterns):
    stem = stem_of(path)
    return stem in patterns or any("*" in pattern and fnmatch.fnmatch(stem, pattern) for pattern in patterns)


def unnamed(names, readme):
    """Of a folder's source files those that its README does not name."""
    patterns = patterns_of(readme)
    return [name for name in sorted(names) if SOURCE.search(name) and not is_named(name, patterns)]


def main():
    example = "| file | what |\n|---|---|\n| `a.[ch]`, `b_v6.c` ... `b_v9.c` | x |\n| `test_*.c` | y |\n"
    assert unnamed(["a.c", "b_v7.c", "test_x.c", "c.c"], example) == ["c.c"]  # the check finds what is wrong
    missing = looked = 0
    for readme in links.documents():
        text, folder = translations.read(readme), os.path.dirname(readme)
        if os.path.basename(readme) != "README.md" or not TABLE.search(text):
            continue
        looked += 1
        for name in unnamed(os.listdir(os.path.join(translations.ROOT, folder)), text):
            print("%s/%s is not in the table of %s" % (folder, name, readme))
            missing += 1
    assert looked > 50, looked
    print("%d tables of files name each file" % looked if not missing else "%d files are missing" % missing)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
