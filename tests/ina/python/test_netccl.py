#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""netccl over a stand-in for the library: everything around it, and failures in the middle at chosen places. test_netccl.py NAME"""

import errno
import os
import subprocess
import sys
import tempfile
import threading
import time

from job import free_port, go, start
import checks
import double
import netccl
import torch
import torch.distributed as dist

SEGMENT = checks.SEGMENT


def _everything(rank, n, folder, port, mode, network, sizes):
    os.environ["NETCCL_QUANT"] = mode
    start(rank, n, folder, port=port, enable_inc=network)
    everyone = list(range(n))
    assert netccl.status()["in_network"] == network, netccl.status()
    checks.all_of_them(None, everyone, mode if network else "none", sizes)
    if n > 2:
        few = everyone[1:]
        group = dist.new_group(few)
        if rank in few:
            assert netccl.status(group)["in_network"] == network
            checks.all_of_them(group, few, mode, checks.SIZES[2:4])
            if network:
                assert netccl.status(group)["network"] > 0
        else:
            assert dist.all_reduce(torch.ones(3), group=group) is None  # not in the group: torch's warning, nothing else
        dist.barrier()
    s = netccl.status()
    assert (s["network"] > 30) == network, s
    dist.destroy_process_group()
    assert netccl.groups._contexts == {}


def everything():
    """Each function, type, size, shape; groups that are a part; with the network and without."""
    worlds = ((3, "block", True, [65, SEGMENT // 4 + 1]), (3, "factor", True, [1000]), (3, "block", False, [65, 1000]))
    for n, mode, network, sizes in worlds:
        go(_everything, n, mode, network, sizes, adder={})


def _settled(n, wanted, **counts):
    """All ranks say the same of the group; the agent may still be at work."""
    end = time.monotonic() + 60
    while True:
        s = netccl.status()
        if s["in_network"] == wanted and all(s[name] == value for name, value in counts.items()):
            return
        assert time.monotonic() < end, s
        time.sleep(0.01)


def _cut(rank, n, folder, port, mode, times):
    """Each collective is cut at its second segment of three, after the answer to some of the ranks; then come the original functions."""
    os.environ.update(NETCCL_QUANT=mode, NETCCL_RETRY_OPS="2")
    start(rank, n, folder, port=port)
    incarnations = 1
    for call in checks.calls(rank, n, mode):
        for lucky in range(times):
            _settled(n, True, incarnations=incarnations, recovered=incarnations - 1)
            if rank == lucky % n:  # they do not come at the same time
                time.sleep(0.05)
            call()
            pause = netccl.get_group_ctx().pause
            _settled(n, False, recovered=incarnations)
            fell = netccl.status()["fallback"]
            for _ in range(pause.length):
                call()
            assert netccl.status()["fallback"] == fell + pause.length
            pause.length = 2
            incarnations += 1
            dist.barrier()  # begins the next incarnation
    dist.destroy_process_group()


def _plans():
    """Of each incarnation: the barrier that began it, and two segments; the answer to the last is for rank 0 alone, or for nobody."""
    lucky = [(2, (0,)), (2, ())]
    return [(count + (incarnation > 0), ranks_) for incarnation, (count, ranks_) in enumerate(lucky * 5)]


def cut():
    """Any collective cut in the middle: the right bytes, the same on all ranks; the group goes on without, and later with the network."""
    go(_cut, 3, "factor", 1, adder={"plan": _plans()[::2] + [(None, ())]})


def cut_twice():
    """The same, each of them twice, with a factor for each block."""
    go(_cut, 3, "block", 2, adder={"plan": _plans() + [(None, ())]})


def _last_answer(rank, n, folder, port):
    """Only rank 0 receives the answer. It goes on to what it needs the others for, in which netccl has no part."""
    start(rank, n, folder, port=port)
    t = torch.full((1000,), float(rank))
    dist.all_reduce(t)
    mine = t.clone()
    t.zero_()  # the caller's memory is the caller's
    parts = [torch.zeros(1000) for _ in range(n)]
    dist.all_gather(parts, mine)  # gloo's, in rank 0 long before the others
    assert all(torch.equal(p, torch.full((1000,), 3.0)) for p in parts)
    _settled(n, False, recovered=1)
    dist.destroy_process_group()


def _last_of_each(rank, n, folder, port):
    """The same with each collective, of which that rank keeps nothing but what the others may lack."""
    os.environ["NETCCL_RETRY_OPS"] = "1"
    start(rank, n, folder, port=port)
    few = 1000
    incarnations = 0
    for call in checks.calls(rank, n, "block", few):
        incarnations += 1
        _settled(n, True, incarnations=incarnations, recovered=incarnations - 1)
        call()
        _settled(n, False, recovered=incarnations)
        netccl.get_group_ctx().pause.length = 1
        dist.barrier()
        dist.barrier()  # begins the next incarnation
    dist.destroy_process_group()


def last_answer():
    """The answer that only one rank gets: it goes on, its agent gives the others what they lack."""
    go(_last_answer, 3, adder={"plan": [(1, (0,))]})
    # of each incarnation: the barrier that began it, and the call's segments
    go(_last_of_each, 3, adder={"plan": [(1, (0,)), (2, (1,)), (2, (0,)), (4, (1,)), (4, (0,)), (None, ())]})


def _begun(rank, n, folder, port):
    """Rank 0 has three operations under way when the network fails; rank 1 has begun one of them, rank 2 none."""
    start(rank, n, folder, port=port)
    t = [torch.full((5,), float(rank + i)) for i in range(4)]
    works = []
    if rank == 2:
        time.sleep(1.5)
    for i in range(3):
        works.append(dist.all_reduce(t[i], async_op=True))
        if i == 0 and rank == 1:
            time.sleep(1.0)
        if i == 0 and rank == 0:
            time.sleep(0.3)
            netccl.get_group_ctx().incarnation.client.leave(netccl.get_group_ctx().incarnation.handle)  # as if the switch had gone
    dist.all_reduce(t[3])  # the original function's, in the same order on all ranks
    others = torch.zeros(5) + rank
    netccl.fallback_all_reduce(others)
    for w in works:
        w.wait()
    for i in range(4):
        assert torch.equal(t[i], torch.full((5,), 3.0 + 3 * i)), (i, t[i])
    assert torch.equal(others, torch.full((5,), 3.0))
    dist.destroy_process_group()


def begun():
    """Operations that only some ranks had begun are finished on all, in order, apart from torch's own traffic."""
    go(_begun, 3, adder={})


def _full(rank, n, folder, port):
    os.environ["NETCCL_RETRY_OPS"] = "3"
    start(rank, n, folder, port=port)
    s = netccl.status()
    assert not s["in_network"] and "controller" in s["why"], s
    for i in range(3 + 6 + 1):
        t = torch.ones(4)
        dist.all_reduce(t)
        assert float(t[0]) == n
        assert netccl.status()["in_network"] == (i >= 9), i  # after 3: refused again; after 6 more: there is room
    dist.destroy_process_group()


def full():
    """A controller that has nothing free: all ranks go without, alike, and try again at the same operation."""
    go(_full, 3, adder={"full": 2})


def _lone(rank, n, folder, port):
    if rank == 1:
        os.environ["NETCCL_LIBRARY"] = "/nonexistent.so"
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%d" % port, rank=rank, world_size=n)
    else:
        start(rank, n, folder, port=port)
    s = netccl.status()
    assert not s["in_network"] and "rank 1" in s["why"] and "NETCCL_LIBRARY" in s["why"], s
    checks.all_of_them(None, list(range(n)), "none", [64])
    dist.destroy_process_group()


def lone():
    """One rank has no library: nobody uses the network, and why is said."""
    go(_lone, 3, adder={})


def _dies(rank, n, folder, port):
    start(rank, n, folder, port=port, seconds=120)
    t = torch.ones(SEGMENT)
    dist.all_reduce(t)
    dist.barrier()
    if rank == 2:
        os._exit(0)
    began = time.monotonic()
    try:
        time.sleep(0.2)
        netccl.get_group_ctx().incarnation.client.leave(netccl.get_group_ctx().incarnation.handle)
        dist.all_reduce(t)
    except RuntimeError as e:
        assert time.monotonic() - began < 100, "the error came late"
        assert "netccl" in str(e) or "onnection" in str(e), e
    else:
        raise AssertionError("a dead rank's sum")
    dist.destroy_process_group()


def dies():
    """A rank dies, the network fails: an error on the others, within torch's time limit."""
    go(_dies, 3, adder={}, dying=[2])


def _spoilt(rank, n, folder, port):
    """Rank 1 has no memory for its part: an error on all ranks, in the first case in flight; then they go on together."""
    os.environ["NETCCL_RETRY_OPS"] = "2"
    start(rank, n, folder, port=port)
    t = torch.ones(100)
    if rank == 1:
        copy, netccl.operation.pool.take = netccl.operation.pool.take, lambda *_: [][0]
    try:
        dist.all_reduce(t)
    except (RuntimeError, IndexError) as e:
        assert rank == 1 or "rank 1 could not bring its part: IndexError" in str(e), e
    else:
        raise AssertionError("a sum without rank 1's part")
    assert torch.equal(t, torch.ones(100))
    if rank == 1:
        netccl.operation.pool.take = copy
    for i in range(6):
        t = torch.ones(100)
        dist.all_reduce(t)
        assert float(t[7]) == n
    _settled(n, True, recovered=1, incarnations=2)
    dist.destroy_process_group()


def spoilt():
    go(_spoilt, 3, adder={})


def _factor(rank, n, folder, port):
    """What one factor cannot carry goes another way on all ranks; saturation is held, and said once."""
    os.environ["NETCCL_QUANT"] = "factor"
    start(rank, n, folder, port=port)
    for value in (float("inf"), float("nan"), 1e-36):
        t = torch.full((10,), 1e-36 if value == 1e-36 else 1.0)
        if rank == 1:
            t[3] = value
        dist.all_reduce(t)
        small = value == 1e-36
        got, expected = float(t[3]), n * value if small else value
        assert (got != got) if value != value else got == expected or abs(got - expected) <= 1e-6 * expected, (value, t)
        assert abs(float(t[0]) - (n * value if small else n)) <= 1e-6 * (n * value if small else n)
    z = torch.zeros(5)
    dist.all_reduce(z)
    assert torch.equal(z, torch.zeros(5))
    works = [(torch.full((10,), float("inf") if i == 1 and rank == 0 else 1.0)) for i in range(4)]
    for t, w in [(t, dist.all_reduce(t, async_op=True)) for t in works]:
        w.wait()
        assert float(t[0]) in (n, float("inf"))
    said = []
    netccl.say.log.warning = lambda form, text: said.append(text)
    for seed in range(200):  # largest elements in one place: the sum passes the end now and then
        parts = [torch.rand(64, generator=torch.Generator().manual_seed(seed * 8 + r)) for r in range(n)]
        t = parts[rank].clone()
        t[0] = parts[rank].max() + 1
        top = sum(float(p.max()) + 1 for p in parts)
        dist.all_reduce(t)
        assert abs(float(t[0]) - top) < 1e-6 * top, (seed, float(t[0]), top)
    dist.destroy_process_group()


def factor():
    go(_factor, 3, adder={})


def _encode(*_):
    """As ina/frame/quant.h: cut off towards zero, held at the ends."""
    from netccl import codec, memory

    how = codec.factor_of(3.0)
    assert float(how.factor) == float(torch.tensor((2.0**31 - 2**7) / 3.0, dtype=torch.float64).float())
    x = torch.tensor([1.0, -1.0, 3.0, -3.0, 1e-12, 3.0000002, -3.0000002, 7e-10, -7e-10])
    words = how.encode(x, memory.Pool()).view(torch.int32)
    exact = (x * how.factor).double()
    for got, e in zip(words.tolist(), exact.tolist()):
        assert got == int(max(-(2**31), min(2**31 - 1, e))), (got, e)
    for bad in (float("inf"), float("nan"), 1e-30):
        assert codec.factor_of(bad) is None
    assert float(codec.factor_of(0.0).factor) == 1.0


def encode():
    go(_encode, 1)


def replaced():
    """Importing puts ours where torch has its own, keeps the originals, and takes torch's old names along."""
    for name in netccl.fallback.NAMES:
        ours = getattr(netccl, name)
        assert getattr(dist, name) is ours and getattr(dist.distributed_c10d, name) is ours, name
        assert getattr(netccl, "fallback_" + name).__module__ == "torch.distributed.distributed_c10d"
    assert dist._all_gather_base.__wrapped__ is netccl.all_gather_into_tensor
    assert dist._reduce_scatter_base.__wrapped__ is netccl.reduce_scatter_tensor


def _leaves(rank, n, folder, port):
    """Only rank 0 receives the answer, and its program ends there."""
    start(rank, n, folder, port=port)
    t = torch.full((SEGMENT // 4,), float(rank + 1))
    dist.all_reduce(t)
    assert torch.equal(t, torch.full((SEGMENT // 4,), 3.0))


def leaves():
    """Programs that end without destroy_process_group(): none ends before all have their results, and the interpreter ends in order."""
    if len(sys.argv) > 3:
        return _leaves(int(sys.argv[2]), 2, sys.argv[3], int(sys.argv[4]))
    with tempfile.TemporaryDirectory(prefix="netccl-test-") as folder:
        port = free_port()
        adder = double.Adder.start(os.path.join(folder, "adder"), plan=[(1, (0,))])
        running = [subprocess.Popen([sys.executable, __file__, "leaves", str(r), folder, str(port)]) for r in range(2)]
        try:
            ends = [p.wait(60) for p in running]
        finally:
            for p in running:
                p.kill()
            adder.kill()
    assert ends == [0, 0], ends


def _forked(rank, n, folder, port):
    """Each rank forks: the end of the child, which runs what atexit has, is not the end of a rank."""
    start(rank, n, folder, port=port)
    t = torch.full((1000,), float(rank))
    dist.all_reduce(t)
    child = os.fork()
    if not child:
        assert netccl.groups._contexts == {} and netccl.client._client is None
        netccl.groups._exit()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    incarnation = netccl.get_group_ctx().incarnation
    assert not incarnation.idle()  # so a child that took the group for its own would have said that it leaves
    assert netccl.get_group_ctx().alarm.leaving(incarnation.name, 0) == 0
    dist.barrier()
    assert netccl.status()["in_network"]
    dist.destroy_process_group()


def forked():
    go(_forked, 2, adder={})


class _Slow:
    """A library whose controller has not answered yet."""

    def __init__(self):
        self.answer, self.asked, self.calls = threading.Event(), threading.Event(), []

    def ha_ina_open(self, handle, options, why, size):
        handle._obj.value = 1
        return 0

    def ha_ina_group_create(self, *_):
        self.asked.set()
        self.answer.wait(60)
        return -errno.EAGAIN

    def ha_ina_error(self, handle):
        return b"full"

    def ha_ina_close(self, handle):
        assert self.answer.is_set(), "closed while somebody asks"
        self.calls.append("close")

    def ha_ina_post(self, *_):
        return -errno.ECANCELED


def waiting():
    """While one thread waits for a group, the others' operations go on; nobody closes under it."""
    library = _Slow()
    c = netccl.client.Client(library)
    c.open()
    said = []
    asker = threading.Thread(target=lambda: said.append(c.create([1, 2], "slow")))
    asker.start()
    assert library.asked.wait(20)
    poster = threading.Thread(target=lambda: said.append(c.post(None, netccl.capi.Request(), None)))
    poster.start()
    poster.join(20)
    assert said == [(-errno.ECANCELED, "full")], said
    closer = threading.Thread(target=c.close)
    closer.start()
    time.sleep(0.05)
    assert not library.calls
    library.answer.set()
    for thread in (asker, closer):
        thread.join(20)
    assert said[1:] == [(-errno.EAGAIN, "full")] and library.calls == ["close"], (said, library.calls)


class _Hung(_Slow):
    """A library whose controller never answers. It gives the caller back when it is told to, as the real one does."""

    def ha_ina_open(self, handle, options, why, size):
        self.give_up = options.contents.give_up
        return super().ha_ina_open(handle, options, why, size)

    def ha_ina_group_create(self, *_):
        self.asked.set()
        while not self.give_up.contents.value:
            time.sleep(0.01)
        self.answer.set()
        return -errno.ECANCELED

    def ha_ina_error(self, handle):
        return b"given up"


def hung():
    """Who closes does not wait for a controller that hangs: the thread that asks it is given back, first of all. Afterwards there can be another connection."""
    library = _Hung()
    c = netccl.client.Client(library)
    for n in (1, 2):
        library.asked.clear()
        library.answer.clear()
        c.open()
        said = []
        asker = threading.Thread(target=lambda: said.append(c.create([1, 2], "hung")), daemon=True)
        asker.start()
        assert library.asked.wait(20)
        closer = threading.Thread(target=c.close, daemon=True)
        closer.start()
        for thread in (closer, asker):
            thread.join(20)
        assert said == [(-errno.ECANCELED, "given up")] and library.calls == ["close"] * n, (said, library.calls)


class _Away:
    """A library whose backend is there once, and then no more. Whoever calls without a connection would end the process."""

    def __init__(self):
        self.opened = 0

    def ha_ina_open(self, handle, options, why, size):
        self.opened += 1
        handle._obj.value = 1 if self.opened == 1 else None
        return 0 if self.opened == 1 else -errno.ENOTCONN

    def ha_ina_close(self, handle):
        pass

    def _need(self, handle, *_):
        raise AssertionError("called without a connection")

    ha_ina_address = ha_ina_group_create = ha_ina_group_join = _need


def away():
    """Between being attached and asking, another thread's attempt finds the backend gone: that is an error, and no crash."""
    c = netccl.client.Client(_Away())
    c.open()
    c.stale = True
    for call in (c.open, c.address):
        try:
            call()
            raise SystemExit("%s went well" % call)
        except netccl.client.Unavailable:
            pass
    assert c.create([1, 2], "away")[0] == -errno.ENOTCONN
    assert c.join(bytes(netccl.capi.Ticket()), 0)[0] == -errno.ENOTCONN


def _files(rank, n, folder, port):
    """A store that is no TCP; a second job in the same process; new_group() with and without the network."""
    for name in ("one", "two"):
        start(rank, n, folder, init_method="file://%s/%s" % (folder, name), enable_inc=name == "two")
        assert netccl.status()["in_network"] == (name == "two")
        inside = dist.new_group([0, 1], enable_inc=True)
        outside = dist.new_group([0, 1], enable_inc=False)
        for group in (inside, outside):
            t = torch.ones(10)
            dist.all_reduce(t, group=group)
            assert float(t[0]) == n
        assert netccl.status(inside)["network"] == 1 and netccl.get_group_ctx(outside) is None
        dist.destroy_process_group(inside)
        assert netccl.get_group_ctx(inside) is None
        alone = dist.new_group([1])  # too few for a switch
        assert netccl.get_group_ctx(alone) is None
        things = [None, "said"] if rank == 0 else [None, None]
        dist.broadcast_object_list(things, 0)  # calls broadcast()
        assert things[1] == "said"
        dist.destroy_process_group()


def files():
    go(_files, 2, adder={})


def small():
    for test in (last_answer, begun, full, lone, dies, spoilt, factor, encode, replaced, leaves, forked, waiting, hung, away, files):
        began = time.monotonic()
        test()
        print("%s: %.1f s" % (test.__name__, time.monotonic() - began), flush=True)


tests = [everything, cut, cut_twice, small, last_answer, begun, full, lone, dies, spoilt, factor, encode, replaced, leaves, forked, waiting, away, files]

if __name__ == "__main__":
    named = {f.__name__: f for f in tests}
    for name in sys.argv[1:2] or ["everything", "cut", "cut_twice", "small"]:
        named[name]()
