# SPDX-License-Identifier: BSD-3-Clause
"""The lab itself is killed, or told to end, while its machines run: none of them is left behind.

    lab/run quiet  --  a, b         a lab of its own; SIGKILL, then SIGTERM to its first process only

Its QEMUs are gone within a moment; after SIGTERM its folder is gone too.
"""
import glob
import os
import signal
import subprocess
import sys
import tempfile
import time

from machine import ROOT

SET = "core"
LIMIT = 60


def run(lab):
    for number in (signal.SIGKILL, signal.SIGTERM):
        with tempfile.TemporaryDirectory(prefix="lab.") as folder:
            hurt(lab, number, folder)


def hurt(lab, number, folder):
    other = subprocess.Popen([sys.executable, os.path.join(ROOT, "lab/run"), "--results", folder, "quiet"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder})
    try:
        lab.wait(lambda: len(machines_of(other.pid)) == 2 or other.poll() is not None, "the other lab has no machines", LIMIT)
        left = machines_of(other.pid)
        lab.must(len(left) == 2 and other.poll() is None, "the other lab has two machines (%s)" % left)
        time.sleep(0.5)  # they boot
    finally:
        other.send_signal(number)
        other.wait(LIMIT)
    lab.wait(lambda: not any(alive(p) for p in left), "machines are left: %s" % left, LIMIT)
    lab.must(not any(alive(p) for p in left), "no machine survives %s" % number.name)
    if number == signal.SIGTERM:
        lab.must(not glob.glob(folder + "/lab.*"), "and no folder: %s" % os.listdir(folder))


def status(pid):
    """Name, state and parent of a process; nothing when there is none."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
            text = f.read()
    except OSError:
        return "", "", 0
    name, _, rest = text[text.index("(") + 1:].rpartition(")")
    state, parent = rest.split()[:2]
    return name, state, int(parent)


def alive(pid):
    return status(pid)[0].startswith("qemu") and status(pid)[1] not in "ZX"


def machines_of(parent):
    return [int(p) for p in os.listdir("/proc") if p.isdigit() and status(int(p))[0].startswith("qemu")
            and status(int(p))[2] == parent]
