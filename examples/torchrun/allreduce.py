#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""All-reduces for a time and checks each result: something to pull a cable under.

torchrun ... allreduce.py [SECONDS] [MEGABYTES]; without CUDA over gloo, which does not use hawser."""

import os
import sys
import time

import torch
import torch.distributed as dist


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    count = int(float(sys.argv[2] if len(sys.argv) > 2 else 64) * 2**20 / 4)
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    done, longest, wrong, end = 0, 0.0, 0, time.monotonic() + seconds
    go = torch.ones(1, device=device)
    while go.item():
        tensor = torch.full((count,), float(rank + 1), device=device)
        begin = time.monotonic()
        dist.all_reduce(tensor)
        if cuda:
            torch.cuda.synchronize()
        longest = max(longest, time.monotonic() - begin)
        wrong += int((tensor != size * (size + 1) / 2).sum().item())
        done += 1
        go.fill_(1.0 if time.monotonic() < end else 0.0)
        dist.broadcast(go, 0)  # all end after the same one
    print("rank %d: %d all-reduces, longest %.3f s, %d elements wrong" % (rank, done, longest, wrong), flush=True)
    dist.destroy_process_group()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
