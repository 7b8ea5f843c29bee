# SPDX-License-Identifier: BSD-3-Clause
"""What each test's ranks begin with: torch's group over gloo, and netccl over the stand-in (double.py) or a backend process."""

import datetime
import os
import subprocess
import sys
import tempfile
import time

import ranks
import torch.distributed as dist

import double
import netccl.client

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "base"))
from held_port import free_port


def start(rank, n, folder, seconds=ranks.LIMIT, port=None, init_method=None, **how):
    """init_process_group() as a user would."""
    if "NETCCL_BACKEND" not in os.environ:
        netccl.client.find = lambda: double.Double(os.path.join(folder, "adder"))
    dist.init_process_group("gloo", init_method=init_method or "tcp://127.0.0.1:%d" % port, rank=rank, world_size=n,
                            timeout=datetime.timedelta(seconds=seconds), **how)


def serve(command, folder):
    """A backend that is killed with its standard input; it says "ready"."""
    os.environ["NETCCL_BACKEND"] = os.path.join(folder, "backend")
    backend = subprocess.Popen([*command, "--socket", os.environ["NETCCL_BACKEND"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    os.environ["TEST_BACKEND"] = str(backend.pid)
    line = backend.stdout.readline().strip()
    assert line == b"ready", line
    return backend


def go(function, n, *arguments, adder=None, backend=None, seconds=ranks.LIMIT, dying=()):
    """function(rank, n, folder, port, *arguments) on n ranks, with a double.Adder(**adder) or the command of a backend."""
    with tempfile.TemporaryDirectory(prefix="netccl-test-") as folder:
        helper = double.Adder.start(os.path.join(folder, "adder"), **adder) if adder is not None else None
        helper = serve(backend, folder) if backend else helper
        began = time.monotonic()
        try:
            ranks.run(function, n, free_port(), *arguments, folder=folder, seconds=seconds, dying=dying)
        finally:
            if helper:
                helper.kill()
        print("%s, %d ranks, %s: %.1f s" % (function.__name__, n, " ".join(map(str, arguments)), time.monotonic() - began), flush=True)
