#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program that makes NCCL communicators in turn, as elastic jobs do: each sums over all ranks, every element is compared.

Usage: incarnations.py LIBRARIES RANKS PLAN        LIBRARIES: the folder of libnccl.so.2, with libcudart.so.12 above it
PLAN is a word per step, the same in all ranks: `make` a communicator, `end` the oldest, `sum` over all that there are, `wait` until
the file named by INCARNATIONS_GO exists and remove it (rank 0 looks; the others wait in the next step). Prints "rank R: step N PLAN" per step.
"""
import ctypes
import os
import sys
import time

FLOAT, SUM, TO_DEVICE, TO_HOST = 7, 0, 1, 2
COUNT = 300000
LIMIT_S = 600


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class Rank:
    def __init__(self, libraries, rank, ranks, folder):
        self.rank, self.ranks, self.folder, self.made = rank, ranks, folder, 0
        self.cuda = ctypes.CDLL(os.path.join(libraries, "..", "libcudart.so.12"), mode=ctypes.RTLD_GLOBAL)
        self.nccl = ctypes.CDLL(os.path.join(libraries, "libnccl.so.2"))
        self.nccl.ncclGetLastError.restype = ctypes.c_char_p
        self.comms, self.stream = [], ctypes.c_void_p()
        self.buffers = [ctypes.c_void_p(), ctypes.c_void_p()]
        self.cuda_call("cudaSetDevice", 0)
        self.cuda_call("cudaStreamCreate", ctypes.byref(self.stream))
        for buffer in self.buffers:
            self.cuda_call("cudaMalloc", ctypes.byref(buffer), ctypes.c_size_t(COUNT * 4))

    def cuda_call(self, name, *args):
        status = getattr(self.cuda, name)(*args)
        if status:
            raise SystemExit("rank %d: %s returns %d" % (self.rank, name, status))

    def nccl_call(self, name, *args):
        status = getattr(self.nccl, name)(*args)
        if status:
            raise SystemExit("rank %d: %s returns %d: %s" % (self.rank, name, status, self.nccl.ncclGetLastError(None)))

    def unique_id(self):
        """Rank 0's, by a file that appears complete."""
        path = os.path.join(self.folder, "id%d" % self.made)
        unique = UniqueId()
        if not self.rank:
            self.nccl_call("ncclGetUniqueId", ctypes.byref(unique))
            with open(path + ".new", "wb") as file:
                file.write(bytes(unique))
            os.rename(path + ".new", path)
            return unique
        end = time.monotonic() + LIMIT_S
        while not os.path.exists(path):
            if time.monotonic() > end:
                raise SystemExit("rank %d: rank 0 gives no id" % self.rank)
            time.sleep(0.01)
        with open(path, "rb") as file:
            return UniqueId.from_buffer_copy(file.read())

    def make(self):
        comm = ctypes.c_void_p()
        self.nccl_call("ncclCommInitRank", ctypes.byref(comm), self.ranks, self.unique_id(), self.rank)
        self.made += 1
        self.comms.append(comm)

    def end(self):
        self.nccl_call("ncclCommDestroy", self.comms.pop(0))

    def sum(self):
        for number, comm in enumerate(self.comms):
            data = (ctypes.c_float * COUNT)(*((i + number) % 1000 + self.rank for i in range(COUNT)))
            size = ctypes.c_size_t(COUNT * 4)
            self.cuda_call("cudaMemcpy", self.buffers[0], data, size, TO_DEVICE)
            self.nccl_call("ncclAllReduce", self.buffers[0], self.buffers[1], ctypes.c_size_t(COUNT), FLOAT, SUM, comm, self.stream)
            self.cuda_call("cudaStreamSynchronize", self.stream)
            self.cuda_call("cudaMemcpy", data, self.buffers[1], size, TO_HOST)
            more = self.ranks * (self.ranks - 1) // 2
            wrong = sum(data[i] != (i + number) % 1000 * self.ranks + more for i in range(COUNT))
            if wrong:
                raise SystemExit("rank %d: %d wrong elements" % (self.rank, wrong))

    def wait(self):
        end = time.monotonic() + LIMIT_S
        while not self.rank and not os.path.exists(os.environ["INCARNATIONS_GO"]):
            if time.monotonic() > end:
                raise SystemExit("nobody says go on")
            time.sleep(0.01)
        if not self.rank:
            os.unlink(os.environ["INCARNATIONS_GO"])

    def run(self, plan):
        for number, step in enumerate(plan):
            {"make": self.make, "end": self.end, "sum": self.sum, "wait": self.wait}[step]()
            print("rank %d: step %d %s" % (self.rank, number, step), flush=True)


def main():
    libraries, ranks, plan = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    folder = os.environ["INCARNATIONS_FOLDER"]
    children = []
    for rank in range(ranks):
        pid = os.fork()
        if not pid:
            os.environ["NCCL_HOSTID"] = "incarnations-%d" % rank
            Rank(libraries, rank, ranks, folder).run(plan)
            sys.stdout.flush()
            os._exit(0)
        children.append(pid)
    bad = 0
    while children:
        pid, status = os.wait()
        children.remove(pid)
        if status and not bad:
            bad = 1
            for other in children:
                os.kill(other, 9)
    sys.exit(bad)


main()
