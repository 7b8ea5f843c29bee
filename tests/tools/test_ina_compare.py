#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""bench/ina-compare counts the daemons' processor time of the measured operations, all of it and nothing else. Usage: test_ina_compare.py PROGRAM"""
import importlib.machinery
import importlib.util
import json
import queue
import sys
import time

OPERATION, RANK, PREPARING = 0.25, 0.125, 3.0  # processor seconds: of the daemons, of a rank, of filling and verifying
IDLE = 0.2  # that filling takes without the daemons


class Daemons:
    def __init__(self):
        self.seconds = 0.0

    def cpu(self):
        return self.seconds

    def show(self):
        raise AssertionError("a rank is said to have died")


class Rank:
    """Does what a rank is told: either "fill BYTES" and "run N", or "BYTES N", both in one."""

    def __init__(self, daemons):
        self.daemons, self.lines, self.stdin, self.stdout = daemons, queue.SimpleQueue(), self, self

    def fill(self):
        time.sleep(IDLE)
        if self.daemons:
            self.daemons.seconds += PREPARING
        return {"wrong": 0}

    def run(self, n):
        if self.daemons:
            self.daemons.seconds += n * OPERATION
        return {"s": n * 0.001, "cpu": n * RANK}

    def write(self, line):
        first, second = (line + " 0").split()[:2]
        if first == "fill":
            said = self.fill()
        elif first == "run":
            said = self.run(int(second))
        else:
            said = {**self.fill(), **self.run(int(second))}
        self.lines.put(json.dumps(said))

    def flush(self):
        pass

    def readline(self):
        return self.lines.get_nowait()


def load(path):
    loader = importlib.machinery.SourceFileLoader("ina_compare", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("ina_compare", loader))
    loader.exec_module(module)
    return module


def main():
    sys.dont_write_bytecode = True
    program = load(sys.argv[1])
    ways = object.__new__(program.Ways)
    ways.daemons = Daemons()
    ways.ina = object.__new__(program.Crew)
    ways.ina.way, ways.ina.ranks, ways.ina.daemons = "ina", 2, ways.daemons
    ways.ina.rank = [Rank(ways.daemons), Rank(None)]  # the first stands for the daemons' work of both
    bandwidth, cpu = ways.measure("ina", 10**9, 10)
    assert abs(bandwidth - 1000) < 1e-6, bandwidth
    want = OPERATION + 2 * RANK
    assert abs(cpu - want) < 1e-6, "%.6f processor seconds an operation, not %.6f" % (cpu, want)
    print("all right")


if __name__ == "__main__":
    main()
