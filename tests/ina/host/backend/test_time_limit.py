#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The demo's time limit (scripts/demo-ina): time in which one of its processes waited for a processor is no sign of a hang, time in which all slept is."""
import importlib.machinery
import importlib.util
import os
import signal
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 4))
SPIN = [sys.executable, "-c", "while True: pass"]


def demo():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("demo_ina", os.path.join(ROOT, "scripts", "demo-ina"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("demo_ina", loader))
    loader.exec_module(module)
    return module


def look(time_limit, seconds):
    """What counted of so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time_limit.over()
        time.sleep(0.02)
    return time_limit.seconds


def starved(d, cpu):
    """One processor for it and a dozen others: there is no news of it for far longer than the threshold, and nobody says that it hangs. Nor when it is stopped."""
    d.HANG_S = 0.75
    spinners = [subprocess.Popen(SPIN, preexec_fn=lambda: os.sched_setaffinity(0, {cpu})) for _ in range(13)]
    try:
        time.sleep(0.5)  # all have begun
        for what in "starved", "stopped":
            if what == "stopped":
                spinners[0].send_signal(signal.SIGSTOP)
            time_limit = d.TimeLimit({"mine": spinners[0]})
            counted = look(time_limit, 1.5)
            print("%s: %.2f s of 1.5 count" % (what, counted))
            assert counted < d.HANG_S and not time_limit.over()
    finally:
        for p in spinners:
            p.kill()
            p.wait()


def asleep(d):
    """It waits for nothing that the machine gives: that is a hang, and is seen, sooner or later on a busy machine."""
    d.HANG_S = 1
    mine = subprocess.Popen(["sleep", "1000"])
    try:
        time_limit = d.TimeLimit({"mine": mine})
        began = time.monotonic()
        while not time_limit.over():
            time.sleep(0.02)
        assert time_limit.seconds > 1 and time.monotonic() - began > 1
        time_limit.begin()
        assert not time_limit.over()
        d.HANG_S, d.HANG_WALL_S = 1e9, 1
        while not time_limit.over():
            time.sleep(0.02)
    finally:
        mine.kill()
        mine.wait()


def main():
    d = demo()
    starved(d, min(os.sched_getaffinity(0)))
    asleep(d)


if __name__ == "__main__":
    main()
