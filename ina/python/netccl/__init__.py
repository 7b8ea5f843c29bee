# SPDX-License-Identifier: BSD-3-Clause
"""netccl: torch.distributed's collectives, reduced in the network where there is a switch that adds.

    import torch.distributed as dist
    import netccl
    dist.init_process_group("gloo", enable_inc=True)
    dist.all_reduce(tensor)

Importing replaces init_process_group, new_group, all_reduce, all_gather_into_tensor, reduce_scatter_tensor, broadcast, reduce and
barrier (and destroy_process_group, which leaves the network first) in torch.distributed and torch.distributed.distributed_c10d.
The originals are netccl.fallback_<name>. docs/ina.md, "torch", says what goes where.
"""

import functools

import torch.distributed as dist

from . import fallback
from .collectives import all_gather_into_tensor, all_reduce, barrier, broadcast, check_inc_requirement, reduce, reduce_scatter_tensor
from .ddp import allreduce_hook
from .groups import destroy_process_group, get_group_ctx, init_process_group, new_group
from .version import VERSION as __version__

__all__ = fallback.NAMES + ["allreduce_hook", "check_inc_requirement", "destroy_process_group", "get_group_ctx", "status"]


def status(group=None):
    """What has become of a group's operations: a dictionary. in_network, why (not), counts of network, fallback, recovered, incarnations."""
    context = get_group_ctx(group)
    return context.status() if context else {"in_network": False, "why": "the group has no context", "network": 0}


def _replace(name, function):
    original = fallback.original[name]
    function.__doc__ = (function.__doc__ or "Through the network where that can be.") + "\n\n" + (original.__doc__ or "")
    for module in (dist, dist.distributed_c10d):
        if hasattr(module, name):
            setattr(module, name, function)


for _name in fallback.NAMES + fallback.ALSO:
    globals()["fallback_" + _name] = fallback.original[_name]
    _replace(_name, globals()[_name])


def _alias(new):
    """torch's private name for the same, which says so in a warning, as before."""
    function = globals()[new]
    return functools.wraps(function)(lambda *args, **kwargs: function(*args, **kwargs))


for _name, _new in fallback.ALIASES.items():
    if _name in fallback.original:
        _replace(_name, _alias(_new))
