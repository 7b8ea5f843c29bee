# SPDX-License-Identifier: BSD-3-Clause
"""After a failure in the middle: all ranks end with the same bytes.

A rank that finds its group ended raises an alarm in torch's store; the agents of the others see it within POLL seconds, whatever
their users are doing. Each stops its incarnation, and they send each other, over a gloo group of their own, how far they are and which
segments of each operation they have. Then, operation by operation: what anybody has, its owner broadcasts; what nobody has is made
from the contributions, which are still in place. Operations that some rank had begun are finished this way on all, also where the
user's call comes only later; all after them go to the original functions. No rank waits longer than torch's time limit for the
group; a rank that died ends it with an error at once, or then.
"""

import torch
import torch.distributed as dist

from . import capi, fallback

POLL = 0.2  # seconds


class Alarm:
    """A counter in torch's store, over a connection of our own: torch holds its own for as long as somebody waits in it."""

    def __init__(self, store):
        self.store = store

    @staticmethod
    def connect(store):
        while hasattr(store, "underlying_store"):
            store = store.underlying_store
        if isinstance(store, dist.TCPStore):
            return dist.TCPStore(store.host, store.port, is_master=False, wait_for_workers=False, timeout=store.timeout)
        return None

    def ring(self, name):
        try:
            self.store.add("netccl/%s/alarm" % name, 1)
        except RuntimeError:
            pass  # the store's host has gone; the exchange will say so

    def rung(self, name):
        try:
            return self.store.add("netccl/%s/alarm" % name, 0) > 0
        except RuntimeError:
            return False

    def leaving(self, name, step):
        """How many ranks are about to leave; None: the store's host has left."""
        try:
            return self.store.add("netccl/%s/leaving" % name, step)
        except RuntimeError:
            return None


class Link:
    """The gloo group over which ranks agree and repair. Ranges are of bytes."""

    def __init__(self, group, ranks, rank):
        self.group, self.members, self.rank, self.ranks = group, ranks, rank, len(ranks)

    def everyone(self, mine):
        """What each rank says, by rank."""
        said = [None] * self.ranks
        dist.all_gather_object(said, mine, group=self.group)
        return said

    def barrier(self):
        fallback.original["barrier"](group=self.group)

    def _broadcast(self, cpu, owner):
        fallback.original["broadcast"](cpu, self.members[owner], group=self.group)

    def broadcast(self, memory, a, b, owner):
        """memory None: this rank has it already."""
        piece = memory[a:b].cpu() if self.rank == owner else torch.empty(b - a, dtype=torch.uint8)
        self._broadcast(piece, owner)
        if self.rank != owner and memory is not None:
            memory[a:b].copy_(piece)

    def gather(self, part, start, whole, a, b, owner):
        piece = part[start : start + b - a].cpu() if self.rank == owner else torch.empty(b - a, dtype=torch.uint8)
        self._broadcast(piece, owner)
        if whole is not None:
            whole[a:b].copy_(piece)

    def _summed(self, memory, a, b, kind, root):
        """What the switch would have given: integers are held at the ends."""
        words = memory[a:b].view(torch.int32 if kind == capi.INT32 else torch.float32).cpu()
        words = words.to(torch.int64) if kind == capi.INT32 else words.clone()
        if root is None:
            fallback.original["all_reduce"](words, group=self.group)
        else:
            fallback.original["reduce"](words, self.members[root], group=self.group)
        if kind == capi.INT32:
            words = words.clamp_(-(1 << 31), (1 << 31) - 1).to(torch.int32)
        return words.view(torch.uint8)

    def sum(self, source, result, a, b, kind, root=None):
        words = self._summed(source, a, b, kind, root)
        if root is None or root == self.rank:
            result[a:b].copy_(words)

    def sum_to(self, source, result, a, b, to, kind, root):
        words = self._summed(source, a, b, kind, root)
        if root == self.rank:
            result[to : to + b - a].copy_(words)


def recover(incarnation, alarm, link, agreed, time_limit):
    """From the agent's thread. What each rank says of the cause.

    agreed(limit): called when it is known how many operations the incarnation had. time_limit(): raises when the group is being destroyed.
    RuntimeError: a rank has gone.
    """
    alarm.ring(incarnation.name)
    incarnation.stop()
    mine = {
        "reserved": incarnation.reserved,
        "ended": incarnation.ended,
        "posted": incarnation.posted,
        "confirmed": incarnation.confirmed,
        "done": {n: bytes(o.done) for n, o in incarnation.operations.items() if incarnation.ended <= n < incarnation.posted},
        "spoiled": {n: o.spoiled for n, o in incarnation.operations.items() if o.spoiled},
        "why": incarnation.failure,
    }
    everyone = link.everyone(mine)
    limit = max(e["reserved"] for e in everyone)
    with incarnation.changed:
        incarnation.limit = limit
        agreed(limit)
        incarnation.changed.notify_all()
    for number in range(max(e["confirmed"] for e in everyone), limit):
        operation = _awaited(incarnation, number, time_limit)
        spoiled = {r: e["spoiled"][number] for r, e in enumerate(everyone) if number in e["spoiled"]}
        if operation.spoiled and not spoiled:  # the others wait for what will not come
            raise RuntimeError(operation.spoiled)
        if not operation.void and not spoiled:
            operation.repair(link, [_have(e, number, len(operation.segments())) for e in everyone])
        with incarnation.changed:
            operation.finish(_errors(spoiled))
            incarnation.changed.notify_all()
    return [e["why"] for e in everyone]


def _errors(spoiled):
    said = "; ".join("rank %d could not bring its part: %s" % s for s in spoiled.items())
    return RuntimeError("netccl: " + said) if said else None


def _awaited(incarnation, number, time_limit):
    with incarnation.changed:
        while True:
            operation = incarnation.operations.get(number)
            if operation is not None and operation.ready.is_set():
                return operation
            time_limit()
            incarnation.changed.wait(POLL)


def _have(said, number, count):
    if number < said["ended"]:
        return [True] * count
    done = said["done"].get(number, b"")
    return [bool(d) for d in done] if len(done) == count else [False] * count
