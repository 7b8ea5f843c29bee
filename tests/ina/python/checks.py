# SPDX-License-Identifier: BSD-3-Clause
"""Every function, type, size and shape through netccl, compared with what gloo's own functions make of the same tensors."""

import torch
import torch.distributed as dist

import netccl

SEGMENT = 2 << 20
CUT = 2 * SEGMENT // 4 + 1000
MOVED = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64,
    torch.int32, torch.int16, torch.uint8, torch.bool, torch.complex64,
]
SIZES = [1, 63, 64, 65, 1000, SEGMENT // 4, SEGMENT // 4 + 1, 3 * SEGMENT // 4 + 17]


def some(size, dtype, rank, seed=0):
    g = torch.Generator().manual_seed(1000 * seed + 10 * size + rank)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(size, generator=g).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 100, (size,), generator=g).to(dtype)


def everyones(size, dtype, ranks, seed=0):
    return [some(size, dtype, r, seed) for r in ranks]


def near(got, parts, mode, divide=1):
    """Within the stated error of the sum: docs/ina.md, and float32's own rounding in whatever order the ranks are added."""
    exact = sum(p.double() for p in parts) / divide
    room = sum(p.double().abs() for p in parts) / divide
    n = len(parts)
    if mode == "factor":
        unit = sum(float(p.abs().max()) for p in parts) / (2**31 - 2**7) / divide
        slack = (n + 1) * unit + 4e-7 * room
    else:
        largest = max(float(p.abs().max()) for p in parts) / divide
        slack = 2.0 ** -(31 - 5) * largest * (n + 1) + (n + 1) * 6e-8 * room
    wrong = (got.double() - exact).abs() > slack + 1e-30
    assert not wrong.any(), "%d elements of %d are off, the first by %g" % (
        int(wrong.sum()), got.numel(), float((got.double() - exact).abs()[wrong][0]))


def same_everywhere(tensor, group=None):
    """All ranks have the same bytes."""
    mine = tensor.detach().contiguous().reshape(-1).view(torch.uint8).clone()
    first = mine.clone()
    netccl.fallback_broadcast(first, netccl.groups.ranks_of(group)[0], group)
    assert torch.equal(mine, first), "the ranks have different bytes"


def reductions(group, ranks, mode, sizes=SIZES):
    me, n, rank = dist.get_rank(), len(ranks), dist.get_rank(group)
    for size in sizes:
        parts = everyones(size, torch.float32, ranks)
        for op, divide in ((dist.ReduceOp.SUM, 1), (dist.ReduceOp.AVG, n)):
            t = some(size, torch.float32, me)
            assert dist.all_reduce(t, op, group) is None
            near(t, parts, mode, divide)
            same_everywhere(t, group)
            t = some(size, torch.float32, me)
            dist.reduce(t, ranks[-1], op, group)
            if me == ranks[-1]:
                near(t, parts, mode, divide)
            whole = everyones(size * n, torch.float32, ranks, 1)
            out = torch.full((size,), 7.0)
            dist.reduce_scatter_tensor(out, some(size * n, torch.float32, me, 1), op, group)
            near(out, [w[rank * size : (rank + 1) * size] for w in whole], mode, divide)


def moves(group, ranks, sizes=SIZES):
    me, n = dist.get_rank(), len(ranks)
    for size in sizes:
        for dtype in MOVED if size < 2000 else MOVED[:1] + MOVED[-2:]:
            t = some(size, dtype, me)
            dist.broadcast(t, ranks[1], group)
            assert torch.equal(t, some(size, dtype, ranks[1])), (size, dtype)
            out = torch.zeros(size * n).to(dtype)
            dist.all_gather_into_tensor(out, some(size, dtype, me), group)
            assert torch.equal(out, torch.cat(everyones(size, dtype, ranks))), (size, dtype)


def shapes(group, ranks, mode):
    """0-dim, none, not contiguous, in place, stacked; with gradients wanted."""
    me, n, rank = dist.get_rank(), len(ranks), dist.get_rank(group)
    t = torch.tensor(float(me + 1))
    dist.all_reduce(t, group=group)
    assert float(t) == sum(r + 1 for r in ranks)
    for empty in (torch.ones(0), torch.ones(3, 0)):
        assert dist.all_reduce(empty, group=group) is None
        assert dist.broadcast(empty, ranks[0], group, async_op=True).wait()
        dist.reduce(empty, ranks[0], group=group)
        dist.all_gather_into_tensor(torch.ones(0), empty, group)
        dist.reduce_scatter_tensor(torch.ones(0), empty, group=group)
    big = some(24, torch.float32, me).view(4, 6)
    t, untouched = big[:, ::2], big[:, 1::2].clone()
    dist.all_reduce(t, group=group)
    near(t, [p.view(4, 6)[:, ::2] for p in everyones(24, torch.float32, ranks)], mode)
    assert torch.equal(big[:, 1::2], untouched)
    t = some(24, torch.float32, me).view(4, 6).t()
    dist.broadcast(t, ranks[0], group)
    assert torch.equal(t, some(24, torch.float32, ranks[0]).view(4, 6).t())
    out = torch.zeros(5, n).t()  # a stack, not contiguous
    dist.all_gather_into_tensor(out, some(5, torch.float32, me), group)
    assert torch.equal(out, torch.stack(everyones(5, torch.float32, ranks)))
    whole = torch.zeros(7 * n)
    part = whole[7 * rank : 7 * (rank + 1)]
    part.copy_(some(7, torch.float32, me))
    dist.all_gather_into_tensor(whole, part, group)  # in place
    assert torch.equal(whole, torch.cat(everyones(7, torch.float32, ranks)))
    whole = some(7 * n, torch.float32, me)
    dist.reduce_scatter_tensor(whole[7 * rank : 7 * (rank + 1)], whole, group=group)  # in place
    near(whole[7 * rank : 7 * (rank + 1)], [p[7 * rank : 7 * (rank + 1)] for p in everyones(7 * n, torch.float32, ranks)], mode)
    p = torch.nn.Parameter(some(9, torch.float32, me))
    loss = (p * p).sum()
    dist.all_reduce(p, group=group)  # neither autograd nor its version counter sees it, as with gloo's
    loss.backward()
    near(p.detach(), everyones(9, torch.float32, ranks), mode)


def asynchronous(group, ranks, mode):
    me = dist.get_rank()
    works = []
    for size in (10, SEGMENT // 4 + 5, 100, 1000, 17):
        t = some(size, torch.float32, me)
        works.append((dist.all_reduce(t, group=group, async_op=True), t, size))
    gathered = torch.zeros(3 * len(ranks))
    gather = dist.all_gather_into_tensor(gathered, some(3, torch.float32, me), group, async_op=True)
    futures = [w.get_future().then(lambda f: float(f.value()[0].double().sum())) for w, _, _ in works]
    for (work, t, size), future in zip(works, futures):
        assert work.wait() is True and work.is_completed()
        if isinstance(work, netccl.work.Work):  # torch warns of its own
            assert work.is_success() and work.exception() is None
        near(t, everyones(size, torch.float32, ranks), mode)
        assert abs(future.wait() - float(t.double().sum())) < 1e-6
        assert work.result()[0] is t
    gather.get_future().wait()
    assert torch.equal(gathered, torch.cat(everyones(3, torch.float32, ranks)))
    late = dist.barrier(group, async_op=True)
    late.wait()
    assert late.is_completed()


def others(group, ranks):
    """What the network cannot: the original functions' results, with what gloo lacks made of what it has."""
    me, n, rank = dist.get_rank(), len(ranks), dist.get_rank(group)
    before = netccl.status(group)
    for dtype in (torch.float64, torch.int64, torch.int32):
        t = some(100, dtype, me)
        dist.all_reduce(t, group=group)
        assert torch.allclose(t, sum(everyones(100, dtype, ranks)))
        out = torch.zeros(5, dtype=dtype)
        dist.reduce_scatter_tensor(out, some(5 * n, dtype, me), group=group)
        assert torch.allclose(out, sum(everyones(5 * n, dtype, ranks))[5 * rank : 5 * rank + 5])
    t = some(50, torch.float64, me)
    dist.all_reduce(t, dist.ReduceOp.AVG, group)
    assert torch.allclose(t, sum(everyones(50, torch.float64, ranks)) / n)
    for op, expected in ((dist.ReduceOp.MAX, torch.max), (dist.ReduceOp.MIN, torch.min)):
        t = some(100, torch.float32, me)
        work = dist.all_reduce(t, op, group, async_op=True)
        work.wait()
        assert torch.equal(t, expected(torch.stack(everyones(100, torch.float32, ranks)), 0)[0])
    view = some(20, torch.float64, me).view(4, 5)[:, ::2]
    dist.all_reduce(view, group=group)
    assert torch.allclose(view, sum(p.view(4, 5)[:, ::2] for p in everyones(20, torch.float64, ranks)))
    out = torch.zeros(4, dtype=torch.float32)
    work = dist.reduce_scatter_tensor(out, some(4 * n, torch.float32, me), dist.ReduceOp.MAX, group, async_op=True)
    assert work.get_future().wait()[0] is out
    assert torch.equal(out, torch.stack(everyones(4 * n, torch.float32, ranks)).max(0)[0][4 * rank : 4 * rank + 4])
    assert netccl.status(group)["network"] == before["network"], "something of this went through the network"


def refused(group, ranks):
    """One clear line, on every rank alike, and the group incarnations on."""
    n = len(ranks)
    for call, wanted in (
        (lambda: dist.all_gather_into_tensor(torch.zeros(2 * n + 1), torch.zeros(2), group), "ranks times"),
        (lambda: dist.reduce_scatter_tensor(torch.zeros(2), torch.zeros(2 * n, dtype=torch.float64), group=group), "one type"),
        (lambda: dist.all_reduce([torch.zeros(2)], group=group), "tensor"),
        (lambda: dist.broadcast(torch.zeros(2), group=group), "root"),
    ):
        try:
            call()
        except (ValueError, TypeError, RuntimeError) as e:
            assert wanted in str(e), e
        else:
            raise AssertionError("was not refused: " + wanted)
    t = torch.ones(3)
    dist.all_reduce(t, group=group)
    assert float(t[0]) == n


def all_of_them(group, ranks, mode, sizes=SIZES):
    reductions(group, ranks, mode, sizes)
    moves(group, ranks, sizes)
    shapes(group, ranks, mode)
    asynchronous(group, ranks, mode)
    others(group, ranks)
    refused(group, ranks)
    dist.barrier(group)


def calls(rank, n, mode, size=CUT):
    """Each collective of the whole world as a function that makes its tensors and checks its results; of three segments."""
    everyone = list(range(n))
    parts = everyones(size, torch.float32, everyone)

    def all_reduce():
        t = some(size, torch.float32, rank)
        dist.all_reduce(t)
        near(t, parts, mode)
        same_everywhere(t)

    def reduce():
        t = some(size, torch.float32, rank)
        dist.reduce(t, 1)
        if rank == 1:
            near(t, parts, mode)

    def broadcast():
        t = some(size, torch.float32, rank)
        dist.broadcast(t, n - 1)
        assert torch.equal(t, parts[n - 1])

    def gather():
        few = size // n
        t = torch.zeros(few * n)
        dist.all_gather_into_tensor(t, some(few, torch.float32, rank))
        assert torch.equal(t, torch.cat(everyones(few, torch.float32, everyone)))

    def scatter():
        few = size // n
        t = torch.zeros(few)
        dist.reduce_scatter_tensor(t, some(few * n, torch.float32, rank))
        near(t, [p[rank * few : (rank + 1) * few] for p in everyones(few * n, torch.float32, everyone)], mode)

    return all_reduce, reduce, broadcast, gather, scatter
