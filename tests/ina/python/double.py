# SPDX-License-Identifier: BSD-3-Clause
"""A stand-in for libhawser-ina.so with a switch that can be made to die at a segment, after answering some of the ranks.

Double has the C functions' names and takes what ctypes would hand them; Adder is the switch and the controller, a thread of the test.
"""

import ctypes
import errno
import multiprocessing
import os
import pickle
import queue
import socket
import struct
import threading

import torch

from netccl import capi


def _send(s, what):
    data = pickle.dumps(what)
    s.sendall(struct.pack("<I", len(data)) + data)


def _receive(s):
    def exactly(n):
        data = b""
        while len(data) < n:
            more = s.recv(n - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    return pickle.loads(exactly(struct.unpack("<I", exactly(4))[0]))


class Adder:
    """`full` times it refuses a group. `plan`: by incarnation, (segments to serve, ranks that get the last one's answer)."""

    def __init__(self, path, full=0, plan=()):
        self.path, self.full, self.plan = path, full, list(plan)
        self.groups, self.lock = {}, threading.Lock()
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    @classmethod
    def start(cls, path, **how):
        """In a process of its own, which ends with this one."""
        ready = multiprocessing.Event()

        def serve():
            cls(path, **how)
            ready.set()
            threading.Event().wait()

        process = multiprocessing.get_context("fork").Process(target=serve, daemon=True)
        process.start()
        ready.wait(10)
        return process

    def _accept(self):
        while True:
            s, _ = self.server.accept()
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s):
        try:
            what = _receive(s)
            if what[0] == "create":
                return _send(s, self._create(what[1]))
            _, number, rank = what
            group = self.groups[number]
            with self.lock:
                group["sockets"][rank] = s
            while True:
                self._contribution(group, rank, _receive(s))
        except (EOFError, OSError):
            pass

    def _create(self, ranks):
        with self.lock:
            if self.full:
                self.full -= 1
                return None
            number = len(self.groups) + 1
            plan = self.plan.pop(0) if self.plan else (None, ())
            self.groups[number] = dict(ranks=ranks, sockets={}, slots={}, left=plan[0], lucky=plan[1], dead=False)
            return number

    def _contribution(self, group, rank, what):
        key, kind, coll, data = what
        with self.lock:
            if group["dead"]:
                raise EOFError
            slot = group["slots"].setdefault(key, {})
            slot[rank] = data
            if len(slot) < group["ranks"]:
                return
            del group["slots"][key]
            total = self._sum(slot, kind) if coll != capi.BARRIER else b""
            last = group["left"] == 1
            if group["left"]:
                group["left"] -= 1
            for r, s in group["sockets"].items():
                if not last or r in group["lucky"]:
                    _send(s, total)
            if last:
                group["dead"] = True
                for s in group["sockets"].values():
                    s.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _sum(slot, kind):
        parts = [torch.frombuffer(bytearray(slot[r]), dtype=torch.uint8) for r in sorted(slot) if slot[r]]
        if kind == capi.BYTES:
            return bytes(parts[0].numpy().tobytes())
        if kind == capi.INT32:
            total = sum(p.view(torch.int32).to(torch.int64) for p in parts).clamp(-(1 << 31), (1 << 31) - 1).to(torch.int32)
        else:
            total = sum(p.view(torch.float32).double() for p in parts).float()
        return total.numpy().tobytes()


class _Op:
    def __init__(self, request, ranks):
        self.request, self.result, self.call = request, None, None
        part = request.bytes // ranks if request.coll in (capi.REDUCE_SCATTER, capi.ALL_GATHER) else request.bytes
        starts = [(p, p + a) for p in range(0, request.bytes, part or 1) for a in range(0, part, capi.SEGMENT)]
        self.cut = [(a, min(p + part, a + capi.SEGMENT)) for p, a in starts]
        self.done = [False] * len(self.cut)


class Double:
    def __init__(self, path):
        self.path, self.things, self.lock = path, {}, threading.RLock()

    def _new(self, thing):
        number = len(self.things) + 1
        self.things[number] = thing
        return number

    def ha_ina_open(self, handle, options, why, size):
        if not os.path.exists(self.path):
            why.value = b"no backend at " + self.path.encode()
            return -errno.ENOTCONN
        handle._obj.value = self._new("ina")
        return 0

    def ha_ina_close(self, handle):
        pass

    def ha_ina_error(self, handle):
        return b"the double refuses"

    def ha_ina_address(self, handle):
        return 0x7F000001

    def _dial(self):
        s = socket.socket(socket.AF_UNIX)
        s.connect(self.path)
        return s

    def ha_ina_group_create(self, handle, members, ranks, name, ticket):
        s = self._dial()
        _send(s, ("create", ranks))
        number = _receive(s)
        if number is None:
            return -errno.EAGAIN
        ticket[0], ticket[1] = number, ranks
        return 0

    def ha_ina_group_join(self, handle, ticket, rank, group):
        s = self._dial()
        _send(s, ("join", ticket[0], rank))
        g = dict(socket=s, rank=rank, ranks=ticket[1], ops=queue.SimpleQueue(), failed=0, count=0)
        group._obj.value = self._new(g)
        g["thread"] = threading.Thread(target=self._work, args=(g,), daemon=True)
        g["thread"].start()
        return 0

    def ha_ina_group_leave(self, group):
        g = self.things[group.value]
        g["failed"] = g["failed"] or -errno.ECANCELED
        try:
            g["socket"].shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        g["ops"].put(None)

    def ha_ina_post(self, group, request, op):
        g = self.things[group.value]
        if g["failed"]:
            return g["failed"]
        copy = capi.Request()
        ctypes.memmove(ctypes.byref(copy), request, ctypes.sizeof(copy))
        o = _Op(copy, g["ranks"])
        op._obj.value = self._new(o)
        g["ops"].put(o)
        return 0

    def ha_ina_notify(self, op, call, arg):
        o = self.things[op.value]
        with self.lock:
            o.call = (call, arg)
            if o.result is not None:
                call(arg, o.result)
        return 0

    def ha_ina_op_segments(self, op):
        return len(self.things[op.value].done)

    def ha_ina_op_done(self, op, s):
        return self.things[op.value].done[s]

    def ha_ina_op_met(self, op):
        return 0

    def ha_ina_op_free(self, op):
        del self.things[op.value].request

    def _work(self, g):
        while True:
            o = g["ops"].get()
            if o is None:
                return
            if not g["failed"]:
                try:
                    self._segments(g, o)
                except (EOFError, OSError):
                    g["failed"] = -errno.ECANCELED
            with self.lock:
                o.result = g["failed"] if not all(o.done) or (g["failed"] and not o.done) else 0
                if o.call:
                    o.call[0](o.call[1], o.result)

    def _segments(self, g, o):
        r, rank = o.request, g["rank"]
        g["count"] += 1
        if r.coll == capi.BARRIER:
            _send(g["socket"], ((g["count"], 0), r.type, r.coll, b"x"))
            _receive(g["socket"])
            return
        parted = r.coll in (capi.REDUCE_SCATTER, capi.ALL_GATHER)
        part = r.bytes // g["ranks"] if parted else r.bytes
        for s, (a, b) in enumerate(o.cut):
            owner = a // part if parted else r.root if r.coll in (capi.REDUCE, capi.BROADCAST) else None
            _send(g["socket"], ((g["count"], s), r.type, r.coll, self._brought(r, rank, owner, a, b, part)))
            self._got(r, rank, owner, a, b, part, _receive(g["socket"]))
            o.done[s] = True

    @staticmethod
    def _brought(r, rank, owner, a, b, part):
        if r.coll in (capi.BROADCAST, capi.ALL_GATHER):
            return ctypes.string_at(getattr(r, "in") + a % part, b - a) if rank == owner else b""
        return ctypes.string_at(getattr(r, "in") + a, b - a)

    @staticmethod
    def _got(r, rank, owner, a, b, part, data):
        if r.coll in (capi.REDUCE, capi.REDUCE_SCATTER) and rank != owner or not r.out:
            return
        ctypes.memmove(r.out + (a % part if r.coll == capi.REDUCE_SCATTER else a), data, b - a)
