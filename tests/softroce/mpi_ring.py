#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank of mpi.sh: messages around the ring, sums over all ranks, one-sided puts; every result is checked."""
import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
before, behind = (rank - 1) % ranks, (rank + 1) % ranks


def pattern(of, size):
    block = bytes((i * 7 + of * 31 + size) & 255 for i in range(257))
    return (block * (size // 257 + 1))[:size]


for size in (0, 1, 100, 8191, 65536, 1 << 20, 8 << 20):
    got = bytearray(size)
    world.Sendrecv([pattern(rank, size), MPI.BYTE], behind, recvbuf=[got, MPI.BYTE], source=before)
    assert got == pattern(before, size), f"{size} bytes from rank {before}"

for count in (1, 1000, 100000):
    mine = array.array("d", (rank + i for i in range(count)))
    total = array.array("d", bytes(8 * count))
    world.Allreduce(mine, total)
    assert all(total[i] == sum(r + i for r in range(ranks)) for i in range(count)), f"sum of {count}"

window = MPI.Win.Allocate(65536, comm=world)
window.Fence()
window.Put([pattern(rank, 65536), MPI.BYTE], behind)
window.Fence()
assert bytes(window.tomemory()) == pattern(before, 65536), "put"
window.Free()
print(f"rank {rank} of {ranks}: every byte right")
