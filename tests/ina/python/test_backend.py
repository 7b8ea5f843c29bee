#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""netccl over libhawser-ina.so (NETCCL_LIBRARY) and a backend process that adds. test_backend.py ADDING-BACKEND NAME"""

import os
import subprocess
import sys
import tempfile
import threading
import time

from job import go, serve, start
import checks
import netccl
import test_netccl
import test_training
import torch
import torch.distributed as dist

BACKEND, SEGMENT = sys.argv[1], checks.SEGMENT


def library():
    """Each function, type, size and shape."""
    sizes = checks.SIZES
    go(test_netccl._everything, 2, "block", True, sizes[::2], backend=[BACKEND])
    go(test_netccl._everything, 4, "factor", True, sizes[1:7:2], backend=[BACKEND])


def _faulty(rank, n, folder, port, fault):
    """Each collective in turn; the fault comes in the middle of one of them."""
    os.environ["NETCCL_RETRY_OPS"] = "4096"
    start(rank, n, folder, port=port)
    for call in checks.calls(rank, n, "block"):
        call()
    dist.barrier()
    test_netccl._settled(n, False, recovered=1)  # the last result comes before the agent's word that it was the last
    assert netccl.status()["why"]
    dist.destroy_process_group()


# Collectives and their segments: 1 and 2 are in all-reduce, 3 to 5 in reduce, 6 to 8 broadcast, 9 to 11 all-gather, 12 to 14
# reduce-scatter, 15 is the barrier.
def _faults(*plan):
    for at, fault in plan:
        go(_faulty, 3, fault, backend=[BACKEND, fault, str(at), "--peer-ms", "300"])


def faults():
    """The backend dies, or ends the group, at a segment of a collective; no rank has a wrong byte, and all go on without."""
    _faults((5, "--die-at"), (4, "--cancel-at"), (10, "--silent-at"), (13, "--timeout-at"))


def more_faults():
    """The same: it dies at a segment of each of the others."""
    _faults((1, "--die-at"), (8, "--die-at"), (11, "--die-at"), (14, "--die-at"))


def _back(rank, n, folder, port):
    """The backend is killed and started again: operations go on all the while, and through the new one in the end."""
    os.environ["NETCCL_RETRY_OPS"] = "3"
    start(rank, n, folder, port=port)
    backend = None
    for i in range(60):
        if i == 5 and rank == 0:
            os.kill(int(os.environ["TEST_BACKEND"]), 9)
        if i == 20 and rank == 0:
            backend = serve([BACKEND], folder)
        t = torch.full((1000,), float(rank))
        dist.all_reduce(t)
        assert torch.equal(t, torch.full((1000,), n * (n - 1) / 2)), i
    s = netccl.status()
    assert s["in_network"] and s["incarnations"] == 2 and s["recovered"] == 1 and s["fallback"] >= 3, s
    dist.destroy_process_group()
    if backend:
        backend.kill()


def back():
    go(_back, 3, backend=[BACKEND])


def _overlapping(rank, n, folder, port):
    """Groups that share ranks, operations of all of them in flight, and the backend dies: each is repaired by itself."""
    os.environ["NETCCL_RETRY_OPS"] = "4096"
    start(rank, n, folder, port=port)
    groups = [(None, list(range(n)))] + [(dist.new_group(r), r) for r in ([0, 1, 2], [1, 2, 3], [0, 3])]
    mine = [(g, r) for g, r in groups if rank in r]
    assert all(netccl.status(g)["in_network"] for g, _ in mine)
    for round_ in range(30):
        flying = []
        for group, members in mine if round_ % 2 else reversed(mine):
            t = torch.full((70000,), float(rank + round_))
            flying.append((dist.all_reduce(t, group=group, async_op=True), t, sum(m + round_ for m in members)))
        for work, t, total in flying:
            work.wait()
            assert torch.equal(t, torch.full((70000,), float(total))), (round_, float(t[0]), total)
    assert all(netccl.status(g)["recovered"] == 1 for g, _ in mine), [netccl.status(g) for g, _ in mine]
    dist.destroy_process_group()


def _late(rank, n, folder, port):
    """A rank that is busy for longer than the backend waits for peers, all in torch and Python."""
    start(rank, n, folder, port=port)
    for i in range(3):
        if rank == 1 and i == 1:
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                torch.ones(100).sum()
        t = torch.full((SEGMENT // 2,), float(rank))
        dist.all_reduce(t)
        assert torch.equal(t, torch.full((SEGMENT // 2,), 3.0))
        checks.same_everywhere(t)
    test_netccl._settled(n, False, recovered=1)
    dist.destroy_process_group()


def _killed(rank, n, folder, port):
    """A rank is killed with operations in flight: the others get an error, and not by torch's time limit."""
    start(rank, n, folder, port=port)
    dist.all_reduce(torch.ones(1000))
    began = time.monotonic()
    t = torch.ones(3 * SEGMENT)
    work = dist.all_reduce(t, async_op=True)
    if rank == 1:
        os.kill(os.getpid(), 9)
    try:
        work.wait()
        dist.all_reduce(torch.ones(10))  # rank 1 may have brought all of its part before it died
    except RuntimeError as e:
        assert time.monotonic() - began < 120, "the error came late"
        print("rank %d: %s" % (rank, e))
    else:
        raise AssertionError("a sum of the dead")
    assert not netccl.status()["in_network"]
    dist.destroy_process_group()


def groups():
    """Several groups at once; a rank that comes late, one that is killed."""
    go(_overlapping, 4, backend=[BACKEND, "--die-at", "11"])
    go(_overlapping, 4, backend=[BACKEND, "--cancel-at", "7"])
    go(_late, 3, backend=[BACKEND, "--peer-ms", "400"])
    go(_killed, 3, backend=[BACKEND], dying=[1])


def _eagain(rank, n, folder, port):
    start(rank, n, folder, port=port)
    assert not netccl.status()["in_network"] and netccl.status()["why"], netccl.status()
    for call in checks.calls(rank, n, "none", 1000):
        call()
    dist.destroy_process_group()


def eagain():
    go(_eagain, 3, backend=[BACKEND, "--eagain"])


def _asking():
    """A program that ends while a thread of its own waits for a controller that hangs."""
    client = netccl.client.shared()
    threading.Thread(target=client.create, args=([client.address()] * 2, "never"), daemon=True).start()
    while not client.asking:
        time.sleep(0.01)
    time.sleep(0.1)  # and not on its way there only
    print("ends", flush=True)


def exits():
    """Its end waits for nobody; the backend's answer would be waited for for a minute."""
    if "ending" in sys.argv:
        return _asking()
    with tempfile.TemporaryDirectory(prefix="netccl-test-") as folder:
        backend = serve([BACKEND, "--mute"], folder)
        try:
            ending = subprocess.Popen([sys.executable, __file__, BACKEND, "exits", "ending"], stdout=subprocess.PIPE)
            assert ending.stdout.readline() == b"ends\n"
            assert ending.wait(40) == 0
        finally:
            ending.kill()
            backend.kill()


def training():
    go(test_training._train, 4, "spirals", "block", backend=[BACKEND])
    go(test_training._train, 3, "spirals", "factor", backend=[BACKEND])


if __name__ == "__main__":
    for name in [a for a in sys.argv[2:] if a != "ending"] or ["library", "faults", "more_faults", "groups", "back", "eagain", "exits", "training"]:
        began = time.monotonic()
        globals()[name]()
        print("%s: %.1f s" % (name, time.monotonic() - began), flush=True)
