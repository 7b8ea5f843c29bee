#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the tests under NCCL look at a job with. Usage: test_job.py BUILD CASE"""
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from job import Run, Wrong, expect, read_events  # noqa: E402

LINES = 20000
# As a file system shows a line that crosses a page: its beginning first.
WRITER = """
import os, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
for i in range(%d):
    os.write(file, b'{"event": "failed_')
    os.write(file, b'over"}\\n')
""" % LINES
# Two processes that share a file of NCCL's, as ranks of one host do, and would go on for ever.
HOLDER = """
import mmap, os, time
path = "/dev/shm/nccl-test%d" % os.getpid()
file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(file, 4096)
page = mmap.mmap(file, 4096)
os.fork()
print(path, flush=True)
time.sleep(86400)
"""


def half_lines():
    """Events are read while they are written."""
    with tempfile.TemporaryDirectory(prefix="under-nccl-") as folder:
        path = os.path.join(folder, "events")
        expect(read_events(path) == [], "there are events without a file")
        open(path, "w", encoding="utf-8").close()
        with subprocess.Popen([sys.executable, "-c", WRITER, path]) as writer:
            seen = 0
            while writer.poll() is None:
                events = read_events(path)
                expect(all(one == {"event": "failed_over"} for one in events), "an event is not as it was written")
                expect(len(events) >= seen, "%d events after %d", len(events), seen)
                seen = len(events)
            expect(writer.returncode == 0, "the writer failed")
        expect(len(read_events(path)) == LINES, "%d events of %d", len(read_events(path)), LINES)


def killed():
    """A job that a test gives up leaves nothing in /dev/shm."""
    with Run(sys.argv[1], lambda folder: [sys.executable, "-c", HOLDER]) as run:
        run.wait("both hold the file", lambda: run.printed().count("\n") == 2)
        path = run.printed().split()[0]
        expect(os.path.exists(path), "%s is not there", path)
    expect(not os.path.exists(path), "%s is left", path)
    expect(run.process.returncode == -signal.SIGKILL, "it has ended by itself")


if __name__ == "__main__":
    try:
        {"half_lines": half_lines, "killed": killed}[sys.argv[2]]()
    except Wrong as wrong:
        sys.exit("%s: %s" % (sys.argv[2], wrong))
