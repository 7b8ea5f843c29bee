#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/check-functions: which structs are too large for it. Usage: check_functions.py SOURCE"""
import os
import shutil
import subprocess
import sys
import tempfile

NOTHING = "check-functions: 0 functions and 1 structs in 1 files"
INTS = "\n".join(f"int m{i};" for i in range(30))


def check(source, text):
    """The first line that it prints of a file with this text."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.h")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([os.path.join(source, "scripts/check-functions"), path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        line = done.stdout.splitlines()[0]
        assert (done.returncode == 1) == (": struct" in line), done
        return line.replace(path, "a.h")


def main():
    source = sys.argv[1]
    if not shutil.which("pmccabe"):
        print("SKIP: there is no pmccabe")
        return 77
    too_large = "a.h:2: struct large has %d members"
    for members, expected in (
            ("int a, *b;", NOTHING),
            ("int a, *b, c[2];", too_large % 33),
            ("int a : 1, b : 1; int c;", too_large % 33),
            ("int a, b; void (*call)(int x, int y);", NOTHING),
            ("int a; int b[2] __attribute__((aligned(64), unused));", NOTHING),
            ("int a, b; /* int c; */ // int d;", NOTHING),
            ("int a, b; static_assert(sizeof(int) == 4, \"\");", NOTHING),
            ("struct other a, b, c;", too_large % 33)):
        for attribute in ("", "__attribute__((packed)) "):
            line = check(source, f"\nstruct {attribute}large {{\n{INTS}\n{members}\n}};\n")
            assert line == expected, (members, line)
    line = check(source, f"\nstruct large {{\nint a;\nstruct {{\n{INTS}\nint a, b;\n}} part;\n}};\n")
    assert line == NOTHING.replace("1 structs", "2 structs"), line
    line = check(source, f"\nstruct large {{\nint a;\nunion part {{\n{INTS}\nint a, b, c;\n}} part;\n}};\n")
    assert line == "a.h:4: struct part has 33 members", line
    line = check(source, f"\ntypedef struct {{\n{INTS}\nint a, b, c;\n}} large;\n")
    assert line == "a.h:2: struct without a name has 33 members", line
    return 0


if __name__ == "__main__":
    sys.exit(main())
