# SPDX-License-Identifier: BSD-3-Clause
"""Which process groups are in the network: one context each, made when torch makes the group."""

import atexit
import datetime
import os
import threading

import torch.distributed as dist

from . import capi, client, fallback, recovery, say
from .context import Context

c10d = dist.distributed_c10d
_contexts = {}  # process group -> Context
_parents = []  # in a forked child: what must not be taken apart here, its threads are elsewhere
_lock = threading.Lock()
_enable = True  # what init_process_group() was given


def member(group):
    """Whether this rank is in the group that a caller of torch names; None is all ranks."""
    return group is None or group is dist.GroupMember.WORLD or not c10d._rank_not_in_group(group)


def resolve(group):
    return dist.GroupMember.WORLD if group is None else group


def get_group_ctx(group=None):
    """The group's Context; None: it goes without the network."""
    return _contexts.get(resolve(group))


def ranks_of(group):
    """The global ranks of a group in the order of their ranks in it."""
    return list(c10d.get_process_group_ranks(resolve(group)))


def _shadow(ranks, arguments):
    """A gloo group of the same ranks, over which they agree and repair. All call it who called new_group()."""
    if arguments.get("timeout") is None:
        arguments.pop("timeout", None)
    return fallback.original["new_group"](ranks, backend="gloo", **arguments)


def _begin(group, arguments):
    """All ranks of torch's job, or of the group alone, as for new_group()."""
    ranks = ranks_of(group) if member(group) else arguments.pop("members", None)
    arguments.pop("members", None)
    if not 2 <= len(ranks) <= capi.RANKS:
        return
    shadow = _shadow(ranks, arguments)
    if not member(group):
        return
    link = recovery.Link(shadow, ranks, ranks.index(dist.get_rank()))
    context = Context(link, c10d._get_default_store())
    with _lock:
        _contexts[resolve(group)] = context
    context.attempt()


def _possible():
    if dist.is_gloo_available() if hasattr(dist, "is_gloo_available") else True:
        return True
    say.once("gloo", "torch without gloo: ranks cannot agree beside the backend, so all goes without the network")
    return False


def init_process_group(*args, enable_inc=True, **kwargs):
    """torch's, and enable_inc: whether groups are to be reduced in the network; the same on all ranks."""
    global _enable
    fallback.original["init_process_group"](*args, **kwargs)
    _enable = bool(enable_inc)
    if _enable and _possible() and dist.get_backend() != "mpi":
        timeout = kwargs.get("timeout") or next((a for a in args if isinstance(a, datetime.timedelta)), None)
        _begin(None, {"timeout": timeout})


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, *, enable_inc=None, **kwargs):
    """torch's, and enable_inc: as for init_process_group(), whose word is the default."""
    given = dict(kwargs, ranks=ranks, backend=backend, pg_options=pg_options)
    if timeout is not None:
        given["timeout"] = timeout
    group = fallback.original["new_group"](**given)
    if (_enable if enable_inc is None else enable_inc) and _possible() and dist.get_backend() != "mpi":
        every = sorted(ranks) if ranks is not None else list(range(dist.get_world_size()))
        local = {k: kwargs[k] for k in ("use_local_synchronization",) if k in kwargs}
        if member(group) or not local.get("use_local_synchronization"):
            _begin(group, dict(local, timeout=timeout, members=every))
    return group


def destroy_process_group(group=None):
    """torch's, after the group has left the network."""
    everything = group is None or group is dist.GroupMember.WORLD
    with _lock:
        leaving = list(_contexts) if everything else [g for g in _contexts if g is group]
        contexts = [_contexts.pop(g) for g in leaving]
    for context in contexts:
        context.close()
        if not everything:
            fallback.original["destroy_process_group"](context.link.group)
    fallback.original["destroy_process_group"](group)


def _forked():
    """The child has no agent, and its parent's groups are not its own: at its end it must not say that a rank leaves."""
    global _lock
    _lock = threading.Lock()
    _parents.append(dict(_contexts))
    _contexts.clear()
    client.forked()


os.register_at_fork(after_in_child=_forked)


@atexit.register
def _exit():
    with _lock:
        contexts = list(_contexts.values())
        _contexts.clear()
    client.give_up()
    for context in contexts:
        context.close()
    client.shut()
