# SPDX-License-Identifier: BSD-3-Clause
"""Starts a test's ranks as processes and waits for them; a rank that fails fails the test with what it said."""

import multiprocessing
import os
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "ina", "python"))

LIMIT = 240  # seconds: for what hangs. ctest's is a little longer; a busy machine takes a minute for what is done in five seconds


def _rank(function, rank, ranks, folder, arguments, failures):
    try:
        import torch

        torch.set_num_threads(1)
        function(rank, ranks, folder, *arguments)
        failures.put((rank, None))
    except BaseException:
        failures.put((rank, traceback.format_exc()))
        failures.close()
        failures.join_thread()
        os._exit(1)


def run(function, ranks, *arguments, seconds=LIMIT, folder=None, dying=()):
    """function(rank, ranks, folder, *arguments) in `ranks` forked processes (torch is loaded once); `dying` ranks end themselves."""
    folder = folder or tempfile.mkdtemp(prefix="netccl-test-")
    context = multiprocessing.get_context("fork")
    failures = context.Queue()
    running = [context.Process(target=_rank, args=(function, r, ranks, folder, arguments, failures)) for r in range(ranks)]
    for p in running:
        p.start()
    end, said = time.monotonic() + seconds, {}
    while len(said) < ranks - len(dying) and time.monotonic() < end:
        try:
            rank, failure = failures.get(timeout=0.2)
            said[rank] = failure
            if failure:
                break
        except Exception:
            if all(p.exitcode is not None for p in running) and failures.empty():
                break
    for p in running:
        p.join(max(0.1, min(15, end - time.monotonic())) if not any(said.values()) else 1)
        if p.exitcode is None:
            p.kill()
    wrong = ["rank %d: %s" % (r, f) for r, f in said.items() if f]
    if not wrong:
        wrong = ["rank %d: did not end within %d s" % (r, seconds) for r in range(ranks) if r not in said and r not in dying]
    wrong += ["rank %d: exit status %s" % (r, p.exitcode) for r, p in enumerate(running) if p.exitcode and r not in said and r not in dying]
    if wrong:
        raise SystemExit("\n".join(wrong))
