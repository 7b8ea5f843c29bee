#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank is killed while it joins its group: what started it reads in its output which group that was, and starts it again with the next.

The controller is stopped meanwhile, so that nobody can have joined when the rank is killed. The hosts, the daemons and the
launcher are those of scripts/demo-ina.

Usage: test_joining.py BUILD (root)
"""
import os
import signal
import sys
import time
from importlib.machinery import SourceFileLoader

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
sys.dont_write_bytecode = True
demo = SourceFileLoader("demo", os.path.join(ROOT, "scripts", "demo-ina")).load_module()
RANK = 2


def wait_for(what, world, holds):
    """The controller is stopped at times, which is no excuse for the others."""
    limit = demo.TimeLimit({name: process for name, process in world.processes.items() if name != "controller"})
    while not holds():
        if limit.over():
            raise RuntimeError("it never came that %s" % what)
        time.sleep(0.02)


def kill_while_joining(world, part):
    """Its request is on its way: nobody answers before it is gone."""
    part.rank_start(0)
    wait_for("rank 0 has made the group", world, lambda: "group 0\n" in part.log(0))
    controller = world.processes["controller"]
    controller.send_signal(signal.SIGSTOP)
    try:
        part.rank_start(RANK)
        wait_for("rank %d says which group it joins" % RANK, world, lambda: "group 0\n" in part.log(RANK))
        world.kill(part.name(RANK))
    finally:
        controller.send_signal(signal.SIGCONT)


def main():
    demo.BUILD = os.path.abspath(sys.argv[1])
    world = demo.World(demo.folder("hawser-joining-"))
    try:
        world.open()
        world.set_fault("")
        part = demo.Part(world, 0, "", [], 1)
        part.from_ = [0] * demo.RANKS
        kill_while_joining(world, part)
        for i in set(range(demo.RANKS)) - {0, RANK}:
            part.rank_start(i)
        part.rank_start_again(RANK)
        part.watch(time.monotonic())
        if part.failure:
            sys.exit("%s: %s" % (part.failure, part.log(RANK)))
    finally:
        world.close()
    print("rank %d, killed while it joined, is in the next group, and all work" % RANK)


if __name__ == "__main__":
    main()
