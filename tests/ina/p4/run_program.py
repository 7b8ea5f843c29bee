#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run packet tests (STF) on a P4 program without a P4 compiler: p4run/ reads the program, checks its types and does what it says.

Usage: run_program.py [--headers=FOLDER]... [--define=NAME=VALUE] v1model|tna PROGRAM.p4 FILE.stf...
--headers: where core.p4 and the architecture's header are (default: model/, beside this file; with p4c's own the program is held against those)
"""
import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "p4run"), os.path.join(HERE, "../../../ina/p4")]
import stf  # noqa: E402
from controller import ForTna, ForV1model  # noqa: E402
from program import Compiler  # noqa: E402
from syntax import Grammar, Wrong, preprocess, tokens_of  # noqa: E402
from tna import RUNT, Tna  # noqa: E402
from v1model import V1model  # noqa: E402

ARCHITECTURES = {"v1model": (V1model, ForV1model, 0), "tna": (Tna, ForTna, RUNT)}


class Rig:
    """A switch with its controller, empty. shortest: frames are made that long, going in and coming out, as Ethernet does."""

    def __init__(self, architecture, parts):
        kind, controller, self.shortest = ARCHITECTURES[architecture]
        self.switch = kind()
        compiler = Compiler(self.switch)
        compiler.program(parts)
        self.switch.build(compiler)
        self.controller = controller(self.switch)

    def run_file(self, path):
        packets = answers = 0
        for s in stf.read(path):
            if isinstance(s, stf.Entry):
                self.controller.entry(s.table, s.keys, s.action, s.arguments)
            elif isinstance(s, stf.Multicast):
                self.controller.multicast(s.verb, s.numbers)
            else:
                s.expected = [(port, data.ljust(self.shortest, b"\0")) for port, data in s.expected]
                got = self.switch.send(s.port, s.data)
                stf.compare(s, got)
                packets, answers = packets + 1, answers + len(got)
        return packets, answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headers", action="append")
    parser.add_argument("--define", action="append", default=[])
    parser.add_argument("architecture", choices=sorted(ARCHITECTURES))
    parser.add_argument("program")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    wrong = 0
    try:
        text = preprocess(arguments.program, arguments.headers or [os.path.join(HERE, "model")], arguments.define)
        parts = Grammar(tokens_of(text)).program()
        Rig(arguments.architecture, parts)
    except Wrong as why:
        print(why)
        return 1
    for path in arguments.files:
        try:
            print("passed %s: %d packets in, %d out" % ((os.path.basename(path),) + Rig(arguments.architecture, parts).run_file(path)))
        except (Wrong, stf.Failed) as why:
            print("failed %s: %s" % (os.path.basename(path), why))
            wrong += 1
    print("%d of %d files passed" % (len(arguments.files) - wrong, len(arguments.files)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
