# SPDX-License-Identifier: BSD-3-Clause
"""A collective on its way through the network, and how its rest is made when it was cut off.

An incarnation (incarnation.py) drives it. Until it has ended on all ranks, each keeps what another may need: of an all-reduce the result, of all others
what it brought; in buffers of our own, for the user's memory is the user's again as soon as the operation has ended here.
"""

import threading

import torch

from . import capi, codec, memory

pool = memory.Pool()


def cut(size, parts=1):
    """The segments [a, b) in bytes: of the whole, or of each rank's part by itself (include/hawser/ina.h, ha_ina_op_segments())."""
    part = size // parts if parts > 1 else size
    return [(p + a, p + min(part, a + capi.SEGMENT)) for p in range(0, size, part or 1) for a in range(0, part, capi.SEGMENT)]


def runs(segments, wanted):
    """Ranges of bytes with one value of wanted(segment's number) that is not None, and the value; segments: (number, (a, b)) in order."""
    found = []
    for number, (a, b) in segments:
        value = wanted(number)
        if value is None:
            continue
        if found and found[-1][1] == a and found[-1][2] == value:
            found[-1] = (found[-1][0], b, value)
        else:
            found.append((a, b, value))
    return found


class Operation:
    """One of an incarnation, numbered in the order of the program, alike on all ranks."""

    coll = type = root = None
    size, parts = 0, 1
    source = result = kept = tensor = None  # bytes: brought, got, held for others; the user's

    def __init__(self, number):
        self.number = number
        self.ready = threading.Event()  # the user's call has come as far as posting
        self.over = threading.Event()  # the library, or the incarnation, has done with it
        self.finished = threading.Event()  # the result is in the user's memory, or `error` is set
        self.void = False  # all ranks found that it goes another way
        self.spoiled = None  # why this rank could not bring its part
        self.background = False
        self.place = None  # where its memory is, and the stream
        self.handle = self.rc = self.error = None
        self.done = []
        self._then, self._lock = [], threading.Lock()
        self.wake = None

    def segments(self):
        return list(enumerate(cut(self.size, self.parts)))

    def of_part(self, rank):
        """The segments of a rank's part."""
        each = len(self.segments()) // self.parts
        return self.segments()[rank * each : (rank + 1) * each]

    def library_ended(self, result):
        """From the library's thread."""
        self.rc = result
        self.over.set()
        if self.background and self.wake:
            self.wake.put(None)

    def request(self):
        memory_kind, stream = self.place
        r = capi.Request(coll=self.coll, type=self.type or 0, root=self.root or 0, bytes=self.size, memory=memory_kind, stream=stream)
        setattr(r, "in", self.source.data_ptr() if self.source is not None else None)
        r.out = self.result.data_ptr() if self.result is not None else None
        return r

    def finish(self, error=None):
        """Once: the result goes to the user."""
        if self.finished.is_set():
            return
        self.error = error
        if error is None and not self.void:
            device = self.tensor.device if self.tensor is not None and self.tensor.is_cuda else None
            with torch.no_grad():
                self.deliver()
            if device is not None:  # whichever thread this is, all streams may read
                torch.cuda.current_stream(device).synchronize()
        with self._lock:
            self.finished.set()
            then, self._then = self._then, []
        for call in then:
            call()

    def when_finished(self, call):
        with self._lock:
            if not self.finished.is_set():
                self._then.append(call)
                return
        call()

    def deliver(self):
        pass

    def release(self):
        """No rank needs it any more."""
        if self.kept is not None:
            pool.give(self.kept)
        self.source = self.result = self.kept = None

    def repair(self, link, done):
        """All ranks at once: what done[rank][segment] lacks is made over `link`. Results are then as if nothing had happened."""


class AllReduce(Operation):
    coll = capi.ALL_REDUCE

    def describe(self, tensor, how, divide):
        self.tensor, self.how, self.divide = tensor, how, divide
        self.type = how.type
        if how.type == capi.FLOAT32 and memory.plain(tensor):
            self.source = memory.flat_bytes(tensor)  # the user leaves it alone until the end
        else:
            self.source = how.encode(tensor, pool)
        self.size = self.source.numel()
        self.result = self.kept = pool.take(self.size, tensor.device)
        return self

    def deliver(self):
        value = self.how.decode(self.result).view(self.tensor.shape)
        self.tensor.data.copy_(value / self.divide if self.divide else value)
        self.tensor = self.source = None

    def repair(self, link, done):
        if all(all(d) for d in done):
            return

        def owner(s):
            have = [r for r, d in enumerate(done) if d[s]]
            return None if len(have) == len(done) else have[0] if have else -1

        for a, b, rank in runs(self.segments(), owner):
            if rank < 0:
                link.sum(self.source, self.result, a, b, self.type)
            else:
                link.broadcast(self.result, a, b, rank)


class Reduce(Operation):
    coll = capi.REDUCE

    def describe(self, tensor, how, divide, root, rank):
        self.tensor, self.how, self.divide, self.root = tensor, how, divide, root
        self.type = how.type
        self.source = self.kept = how.encode(tensor, pool)
        self.size = self.source.numel()
        if rank == root:
            self.result = torch.empty_like(self.source)
        return self

    def deliver(self):
        if self.result is not None:
            value = self.how.decode(self.result).view(self.tensor.shape)
            self.tensor.data.copy_(value / self.divide if self.divide else value)
        self.tensor = self.result = None

    def repair(self, link, done):
        for a, b, _ in runs(self.segments(), lambda s: None if done[self.root][s] else 0):
            link.sum(self.source, self.result, a, b, self.type, self.root)


class Broadcast(Operation):
    coll, type = capi.BROADCAST, capi.BYTES

    def describe(self, tensor, root, rank):
        self.tensor, self.root = tensor, root
        self.size = tensor.numel() * tensor.element_size()
        if rank == root:
            self.source = self.kept = pool.copy(tensor)
        elif memory.plain(tensor):
            self.result = memory.flat_bytes(tensor)
        else:
            self.result = torch.empty(self.size, dtype=torch.uint8, device=tensor.device)
        return self

    def deliver(self):
        if self.result is not None and not memory.plain(self.tensor):
            self.tensor.data.copy_(self.result.view(self.tensor.dtype).view(self.tensor.shape))
        self.tensor = self.result = None

    def repair(self, link, done):
        others = [d for r, d in enumerate(done) if r != self.root]
        memory_here = self.source if self.source is not None else self.result
        for a, b, _ in runs(self.segments(), lambda s: None if all(d[s] for d in others) else 0):
            link.broadcast(memory_here, a, b, self.root)


class AllGather(Operation):
    coll, type = capi.ALL_GATHER, capi.BYTES

    def describe(self, output, tensor):
        self.tensor = output
        self.size, self.parts = output.numel() * output.element_size(), output.numel() // tensor.numel()
        self.source = self.kept = pool.copy(tensor)
        if memory.plain(output):
            self.result = memory.flat_bytes(output)
        else:
            self.result = torch.empty(self.size, dtype=torch.uint8, device=output.device)
        return self

    def deliver(self):
        if not memory.plain(self.tensor):
            self.tensor.data.copy_(self.result.view(self.tensor.dtype).view(self.tensor.shape))
        self.tensor = self.result = None

    def repair(self, link, done):
        part = self.size // link.ranks
        for rank in range(link.ranks):
            for a, b, _ in runs(self.of_part(rank), lambda s: None if all(d[s] for d in done) else 0):
                link.gather(self.source, a - rank * part, self.result, a, b, rank)


class ReduceScatter(Operation):
    coll = capi.REDUCE_SCATTER

    def describe(self, output, tensor, how, divide):
        self.tensor, self.how, self.divide = output, how, divide
        self.type = how.type
        self.source = self.kept = how.encode(tensor, pool)
        self.size, self.parts = self.source.numel(), tensor.numel() // output.numel()
        self.result = torch.empty(output.numel() * 4, dtype=torch.uint8, device=output.device)
        return self

    def deliver(self):
        value = self.how.decode(self.result).view(self.tensor.shape)
        self.tensor.data.copy_(value / self.divide if self.divide else value)
        self.tensor = self.result = None

    def repair(self, link, done):
        part = self.size // link.ranks
        for rank in range(link.ranks):
            for a, b, _ in runs(self.of_part(rank), lambda s: None if done[rank][s] else 0):
                link.sum_to(self.source, self.result, a, b, a - rank * part, self.type, rank)


class Barrier(Operation):
    coll, type = capi.BARRIER, capi.BYTES

    def describe(self):
        return self

    def repair(self, link, done):
        link.barrier()
