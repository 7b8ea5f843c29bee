# SPDX-License-Identifier: BSD-3-Clause
"""DistributedDataParallel: its reducer is C++ and calls the process group itself, past every Python function. The hook brings it here."""

import torch.distributed as dist

from .collectives import all_reduce


def allreduce_hook(state, bucket):
    """model.register_comm_hook(group or None, netccl.allreduce_hook): the mean of each bucket of gradients, through the network."""
    work = all_reduce(bucket.buffer(), dist.ReduceOp.AVG, state, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])
