#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_defects_off CC SOURCE TABLE HEADER: `ha doctor --fabric` and the tools of sums in the network run the simulator's copy of the
products' sources, outside of a simulation. There it is the products' code: compiled with all defects known to be off, each file
gives the same instructions as the product's.

HEADER declares the defects: PREFIX_MUTATION(id) and the variable prefix_mutation, which is as it is initialised."""
import os
import re
import subprocess
import sys
import tempfile

cc, source, table, header = sys.argv[1:]
# A line that the table adds moves the lines behind it, whose numbers are in the log.
FLAGS = ["-w", "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-D__LINE__=0"]


def read(name):
    with open(os.path.join(source, name), encoding="utf-8") as file:
        return file.read()


def instructions(folder, *words):
    """What a file compiles to."""
    out = os.path.join(folder, "out.o")
    subprocess.run([cc, *FLAGS, *words, "-c", "-o", out], check=True, cwd=source)
    text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", out], check=True, capture_output=True, text=True).stdout
    return text.split("Disassembly", 1)[-1]


def users(file):
    """The product's .c files that include a header."""
    room = file.split("/")[0]
    found = subprocess.run(["grep", "-rlF", "--include=*.c", '#include "%s"' % file, room], cwd=source, capture_output=True, text=True,
                           check=True)
    return found.stdout.split()


def main():
    changed = re.findall(r"^in (.*)$", read(table), re.M)
    macro = re.search(r"#define (\w+_MUTATION)\(id\)", read(header))[1]
    begins = re.search(r"^enum \w+ \w+ = (\w+);", read(re.sub(r"h$", "c", header)), re.M)
    begins = begins[1] if begins else "0"
    with tempfile.TemporaryDirectory() as work:
        off, copies = os.path.join(work, "off.h"), os.path.join(work, "copies")
        with open(off, "w", encoding="utf-8") as file:
            file.write('#include "%s"\n#undef %s\n#define %s(id) 0\n#define %s %s\n' % (header, macro, macro, macro.lower(), begins))
        for name in changed:
            os.makedirs(os.path.dirname(os.path.join(copies, name)), exist_ok=True)
            with open(os.path.join(copies, name), "w", encoding="utf-8") as file:
                subprocess.run(["awk", "-v", "file=" + name, "-v", "header=" + header, "-f", "sim/kit/defects.awk", table, name],
                               stdout=file, check=True, cwd=source)
        looked = 0
        for name in changed:
            for unit in users(name) if name.endswith(".h") else [name]:
                copy = os.path.join(copies, unit) if unit in changed else unit
                product = instructions(work, "-iquote", ".", unit)
                simulated = instructions(work, "-iquote", copies, "-iquote", ".", "-include", off, copy)
                if ">:" not in product:
                    sys.exit("no instructions in " + unit)
                if product != simulated:
                    sys.exit("%s: the simulator's copy does something else while no defect is on" % unit)
                looked += 1
    print("%d files: the same instructions" % looked)


main()
