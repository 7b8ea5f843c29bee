# SPDX-License-Identifier: BSD-3-Clause
"""The original functions, and what the installed backend lacks made of what it has.

gloo of torch 1.13 has no all_gather_into_tensor, no reduce_scatter_tensor and no ReduceOp.AVG, and moves only some types; it gets
them here. Other backends get what the caller said, untouched.
"""

import torch
import torch.distributed as dist

from . import memory

NAMES = [
    "init_process_group", "new_group", "all_reduce", "all_gather_into_tensor",
    "reduce_scatter_tensor", "broadcast", "reduce", "barrier",
]
ALSO = ["destroy_process_group"]  # so that a group is left before it is gone
ALIASES = {"_all_gather_base": "all_gather_into_tensor", "_reduce_scatter_base": "reduce_scatter_tensor"}
original = {name: getattr(dist, name) for name in NAMES + ALSO}
original.update((name, getattr(dist, name)) for name in ALIASES if hasattr(dist, name))

GLOO_TYPES = {torch.float32, torch.float64, torch.float16, torch.int8, torch.uint8, torch.int32, torch.int64}


class Then:
    """A torch work, and what is to be done once when it has ended. `value` is what its future holds."""

    def __init__(self, work, after, value):
        self._work, self._value, self._after = work, value, after
        self._future = work.get_future().then(self._finish)

    def _finish(self, future):
        future.wait()  # an error goes on
        if self._after:
            with torch.no_grad():
                self._after()
        return self._value

    def wait(self, timeout=None):
        self._work.wait(*([timeout] if timeout else []))  # an error in its own words
        self._future.wait()
        return True

    synchronize = wait

    def is_completed(self):
        return self._future.done()

    def is_success(self):
        return self.is_completed() and self.exception() is None

    def exception(self):
        if self.is_completed():
            try:
                self._future.wait()
            except Exception as e:
                return e
        return None

    def result(self):
        self.wait()
        return self._value

    def get_future(self):
        return self._future


def is_gloo(group, tensor):
    """Whether gloo does it; in torch 2 a group may have a backend for each kind of device."""
    try:
        kind = getattr(dist.GroupMember.WORLD if group is None else group, "_get_backend", None)
        return kind(tensor.device).name() == "gloo" if kind else dist.get_backend(group) == "gloo"
    except Exception:  # not a member, no group yet: the original function says what is wrong
        return False


def is_op(op, name):
    """Whether op is dist.ReduceOp.<name>; torch's comparison refuses what is no ReduceOp."""
    try:
        return bool(op == getattr(dist.ReduceOp, name))
    except (TypeError, AttributeError):
        return False


def _run(call, after, value, async_op):
    work = call()
    if work is None:
        return None
    work = Then(work, after, value)
    if async_op:
        return work
    work.wait()
    return None


def _movable(tensor):
    """(what gloo can move and write, what to do afterwards): a contiguous tensor of one of its types."""
    if memory.plain(tensor) and tensor.dtype in GLOO_TYPES:
        return tensor, None
    copy = tensor.detach().contiguous().resolve_conj().resolve_neg()
    moved = copy if copy.dtype in GLOO_TYPES else memory.flat_bytes(copy)
    if memory.plain(tensor):
        return moved, None  # the same memory
    return moved, lambda: tensor.data.copy_(copy)


def _sparse(tensor):
    return tensor.layout != torch.strided


def broadcast(tensor, src, group=None, async_op=False):
    if not is_gloo(group, tensor) or _sparse(tensor):
        return original["broadcast"](tensor, src, group, async_op)
    moved, after = _movable(tensor)
    if moved is tensor:
        return original["broadcast"](tensor, src, group, async_op)
    return _run(lambda: original["broadcast"](moved, src, group, True), after, [tensor], async_op)


def _reduced(call, tensor, op, group, async_op, mine=True):
    """call(tensor, op, async_op) on a contiguous tensor, with the mean made of the sum; mine: this rank gets the result."""
    average = is_op(op, "AVG")
    if _sparse(tensor) or (memory.plain(tensor) and not average):
        return call(tensor, op, async_op)
    copy = tensor.detach().contiguous().resolve_conj().resolve_neg()

    def after():
        if average and mine:
            copy.div_(dist.get_world_size(group))
        if copy.data_ptr() != tensor.data_ptr():
            tensor.data.copy_(copy)

    return _run(lambda: call(copy, dist.ReduceOp.SUM if average else op, True), after, [tensor], async_op)


def all_reduce(tensor, op=dist.ReduceOp.SUM, group=None, async_op=False):
    function = original["all_reduce"]
    if not is_gloo(group, tensor):
        return function(tensor, op, group, async_op)
    return _reduced(lambda t, o, a: function(t, o, group, a), tensor, op, group, async_op)


def reduce(tensor, dst, op=dist.ReduceOp.SUM, group=None, async_op=False):
    function = original["reduce"]
    if not is_gloo(group, tensor):
        return function(tensor, dst, op, group, async_op)
    return _reduced(lambda t, o, a: function(t, dst, o, group, a), tensor, op, group, async_op, dist.get_rank() == dst)


def all_gather_into_tensor(output, tensor, group=None, async_op=False):
    """Parts of the output may be reached through a list of tensors: all_gather()."""
    if not is_gloo(group, tensor):
        return original["all_gather_into_tensor"](output, tensor, group, async_op)
    ranks = dist.get_world_size(group)
    check_parts("all_gather_into_tensor", output, tensor, ranks)
    whole = torch.empty_like(output, memory_format=torch.contiguous_format) if not memory.plain(output) else output.detach()
    bring = memory.flat_bytes(tensor.detach().contiguous().resolve_conj().resolve_neg())
    parts = list(memory.flat_bytes(whole).chunk(ranks))

    def after():
        if not memory.plain(output):
            output.data.copy_(whole)

    return _run(lambda: dist.all_gather(parts, bring, group, True), after, [output], async_op)


def reduce_scatter_tensor(output, tensor, op=dist.ReduceOp.SUM, group=None, async_op=False):
    """All is reduced everywhere and each rank takes its part: gloo has nothing closer."""
    if not is_gloo(group, tensor):
        return original["reduce_scatter_tensor"](output, tensor, op, group, async_op)
    ranks = dist.get_world_size(group)
    check_parts("reduce_scatter_tensor", tensor, output, ranks)
    average = is_op(op, "AVG")
    whole = tensor.detach().clone(memory_format=torch.contiguous_format).reshape(-1)

    def after():
        part = whole.chunk(ranks)[dist.get_rank(group)].view(output.shape)
        output.data.copy_(part / ranks if average else part)

    call = lambda: original["all_reduce"](whole, dist.ReduceOp.SUM if average else op, group, True)
    return _run(call, after, [output], async_op)


def barrier(group=None, async_op=False, device_ids=None):
    return original["barrier"](group, async_op, device_ids)


def check_parts(name, whole, part, ranks):
    """ValueError: what every backend of torch refuses, too."""
    if whole.dtype != part.dtype:
        raise ValueError("%s: the two tensors are of %s and %s; give one type" % (name, whole.dtype, part.dtype))
    if whole.numel() != part.numel() * ranks:
        raise ValueError("%s: %d elements are not %d ranks times %d" % (name, whole.numel(), ranks, part.numel()))
