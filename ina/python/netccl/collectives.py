# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed's collectives: through the network where that can be, else as they were."""

import torch
import torch.distributed as dist

from . import capi, codec, fallback, operation as ops
from .groups import c10d, get_group_ctx, member, resolve
from .work import Done, Work


def check_inc_requirement(reduce_like, tensor, op, group):
    """Whether the network can do it: alike on all ranks, from what they must give alike.

    Sums of float32 (ReduceOp.AVG is made of one); anything else that only moves. An empty tensor needs no network, a sparse or a
    quantised one has no plain memory.
    """
    if get_group_ctx(group) is None:
        return False
    if reduce_like and not (fallback.is_op(op, "SUM") or fallback.is_op(op, "AVG")):
        return False
    if tensor is None:  # barrier
        return True
    if reduce_like and tensor.dtype != torch.float32:
        return False
    return tensor.layout == torch.strided and not tensor.is_quantized and tensor.device.type in ("cpu", "cuda")


def _goes(kind, reduce_like, tensor, op, group):
    """(context, operation) when it goes through the network, else (None, None)."""
    if not check_inc_requirement(reduce_like, tensor, op, group):
        return None, None
    context = get_group_ctx(group)
    operation = context.reserve(kind)
    return (context, operation) if operation is not None else (None, None)


def _codec(context, operation, tensor, group):
    """How the words are made; None: all ranks go another way with this one, and the operation is void."""
    if context.quant == "block":
        return codec.Block()
    try:
        largest = tensor.detach().abs().max()
        fallback.original["all_reduce"](largest, dist.ReduceOp.SUM, group)
        how = codec.factor_of(float(largest))
    except BaseException as e:
        context.spoil(operation, e)
        raise
    if how is None:
        operation.void = True
        context.submit(operation)
    return how


def _send(context, operation, describe, value, async_op):
    """describe() says what the operation is about: from reserve() to submit() nothing may get lost."""
    try:
        describe()
    except BaseException as e:
        context.spoil(operation, e)
        raise
    operation.background = async_op
    context.submit(operation)
    work = Work(context, operation, value)
    if async_op:
        return work
    work.wait()
    return None


def _nothing(value, async_op):
    return Done(value) if async_op else None


def _single(name, tensor):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError("%s: give a tensor, not a %s" % (name, type(tensor).__name__))


def _divide(op, group):
    return dist.get_world_size(group) if fallback.is_op(op, "AVG") else None


def _root(name, root, group_root, group):
    """The global rank from torch's two ways to name one."""
    if (root is None) == (group_root is None):
        raise ValueError("%s: give the root either as a rank of all or as one of the group" % name)
    if root is None:
        return group_root if resolve(group) is dist.GroupMember.WORLD else c10d.get_global_rank(group, group_root)
    return root


def _group_rank(group, root):
    return root if resolve(group) is dist.GroupMember.WORLD else c10d.get_group_rank(group, root)


def all_reduce(tensor, op=dist.ReduceOp.SUM, group=None, async_op=False):
    if not member(group):
        return fallback.original["all_reduce"](tensor, op, group, async_op)
    _single("all_reduce", tensor)
    if tensor.layout == torch.strided and tensor.numel() == 0:
        return _nothing([tensor], async_op)
    context, operation = _goes(ops.AllReduce, True, tensor, op, group)
    if operation is not None:
        how = _codec(context, operation, tensor, group)
        if how is not None:
            return _send(context, operation, lambda: operation.describe(tensor, how, _divide(op, group)), [tensor], async_op)
    return fallback.all_reduce(tensor, op, group, async_op)


def reduce(tensor, dst=None, op=dist.ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    if not member(group):
        return fallback.original["reduce"](tensor, dst, op, group, async_op)
    _single("reduce", tensor)
    dst = _root("reduce", dst, group_dst, group)
    if tensor.layout == torch.strided and tensor.numel() == 0:
        return _nothing([tensor], async_op)
    root = _group_rank(group, dst)
    context, operation = _goes(ops.Reduce, True, tensor, op, group)
    if operation is not None:
        how = _codec(context, operation, tensor, group)
        if how is not None:
            describe = lambda: operation.describe(tensor, how, _divide(op, group), root, dist.get_rank(group))
            return _send(context, operation, describe, [tensor], async_op)
    return fallback.reduce(tensor, dst, op, group, async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    if not member(group):
        return fallback.original["broadcast"](tensor, src, group, async_op)
    _single("broadcast", tensor)
    src = _root("broadcast", src, group_src, group)
    if tensor.layout == torch.strided and tensor.numel() == 0:
        return _nothing([tensor], async_op)
    root = _group_rank(group, src)
    context, operation = _goes(ops.Broadcast, False, tensor, None, group)
    if operation is not None:
        return _send(context, operation, lambda: operation.describe(tensor, root, dist.get_rank(group)), [tensor], async_op)
    return fallback.broadcast(tensor, src, group, async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    if not member(group):
        return fallback.original["all_gather_into_tensor"](output_tensor, input_tensor, group, async_op)
    _single("all_gather_into_tensor", output_tensor)
    _single("all_gather_into_tensor", input_tensor)
    fallback.check_parts("all_gather_into_tensor", output_tensor, input_tensor, dist.get_world_size(group))
    if input_tensor.numel() == 0:
        return _nothing([output_tensor], async_op)
    context, operation = _goes(ops.AllGather, False, input_tensor, None, group)
    if operation is not None:
        return _send(context, operation, lambda: operation.describe(output_tensor, input_tensor), [output_tensor], async_op)
    return fallback.all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


def reduce_scatter_tensor(output, input, op=dist.ReduceOp.SUM, group=None, async_op=False):
    if not member(group):
        return fallback.original["reduce_scatter_tensor"](output, input, op, group, async_op)
    _single("reduce_scatter_tensor", output)
    _single("reduce_scatter_tensor", input)
    fallback.check_parts("reduce_scatter_tensor", input, output, dist.get_world_size(group))
    if output.numel() == 0:
        return _nothing([output], async_op)
    context, operation = _goes(ops.ReduceScatter, True, input, op, group)
    if operation is not None:
        how = _codec(context, operation, input, group)
        if how is not None:
            return _send(context, operation, lambda: operation.describe(output, input, how, _divide(op, group)), [output], async_op)
    return fallback.reduce_scatter_tensor(output, input, op, group, async_op)


def barrier(group=None, async_op=False, device_ids=None):
    if not member(group) or device_ids is not None:
        return fallback.barrier(group, async_op, device_ids)
    context, operation = _goes(ops.Barrier, False, None, None, group)
    if operation is None:
        return fallback.barrier(group, async_op, device_ids)
    if torch.cuda.is_initialized():
        torch.cuda.current_stream().synchronize()
    return _send(context, operation, lambda: operation.describe(), [], async_op)
