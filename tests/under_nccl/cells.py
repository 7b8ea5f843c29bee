# SPDX-License-Identifier: BSD-3-Clause
"""The matrix of runs under NCCL: its axes, which combinations exist and why the others do not, and a selection in which
every pair of values of two axes occurs at least once (pairwise testing)."""
import itertools
import random

AXES = {
    "version": ("2.29.7", "2.22.3"),
    "operation": ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv"),
    "algorithm": ("ring", "tree", "pat"),
    "protocol": ("simple", "ll", "ll128"),
    # How many ranks and where: w2 two hosts, w4 four hosts, t2 one process with two GPUs twice (threads), shm two hosts of
    # two ranks over shared memory, p2p the same over CUDA IPC, pxn the same with NVLink, so that traffic is passed on
    # by the GPU that is next to the NIC (the only way to grouped receives).
    "shape": ("w2", "w4", "t2", "shm", "p2p", "pxn"),
    "memory": ("host", "gdr", "dmabuf", "registered"),
    "rails": ("plain", "fused", "mpib0", "mpib1", "ack"),
    "fault": ("none", "cut"),
}
NAMES = tuple(AXES)
CUT_COST = 1.15  # a cell with cuts takes eight times as long: it is taken where it has so many times as many new pairs


def missing(cell):
    """Why this combination does not exist, or None."""
    operation, algorithm, protocol = cell["operation"], cell["algorithm"], cell["protocol"]
    if algorithm == "tree" and operation != "all_reduce":
        return "NCCL has trees for all-reduce only"
    if algorithm == "pat":
        if cell["version"] == "2.22.3":
            return "PAT came with NCCL 2.23"
        if operation not in ("all_gather", "reduce_scatter"):
            return "PAT is for all-gather and reduce-scatter"
        if protocol != "simple":
            return "PAT uses the Simple protocol only"
        if cell["shape"] not in ("w2", "w4"):
            return "PAT needs one GPU per host"
    if operation in ("alltoall", "sendrecv") and protocol == "ll128":
        return "point to point has no LL128"
    if cell["rails"] == "fused" and cell["version"] == "2.22.3":
        return "NCCL merges NICs since 2.23"
    if cell["shape"] == "pxn" and cell["memory"] == "host":
        return "PXN needs GPUDirect: without it NCCL leads the traffic of each GPU through the processor"
    if cell["memory"] == "registered" and protocol != "simple":
        return "registered buffers are used by the Simple protocol only"
    return None


def name_of(cell):
    return ".".join(cell[axis].replace(".", "_") for axis in NAMES)


def cell_of(name):
    values = [value.replace("_", ".") if i == 0 else value for i, value in enumerate(name.split("."))]
    cell = dict(zip(NAMES, values))
    if len(values) != len(NAMES) or any(cell[axis] not in AXES[axis] for axis in NAMES):
        raise ValueError("no such cell: %s" % name)
    return cell


def all_cells(versions):
    for values in itertools.product(*AXES.values()):
        cell = dict(zip(NAMES, values))
        if cell["version"] in versions and not missing(cell):
            yield cell


def pairs_of(cell):
    return set(itertools.combinations(cell.items(), 2))


def gain(cell, open_pairs):
    new = len(pairs_of(cell) & open_pairs)
    return new / CUT_COST if cell["fault"] == "cut" else new


def pairwise(versions, tries=60, seed=3):
    """Cells that together hold every pair of values that exists. Greedy: of some candidates the one with most new pairs;
    candidates are made around a pair that is still missing, so the selection always ends."""
    cells = list(all_cells(versions))
    by_pair = {}
    for cell in cells:
        for pair in pairs_of(cell):
            by_pair.setdefault(pair, []).append(cell)
    chance = random.Random(seed)
    open_pairs = set(by_pair)
    chosen = []
    while open_pairs:
        rarest = min(sorted(open_pairs), key=lambda pair: len(by_pair[pair]))
        candidates = [chance.choice(by_pair[rarest]) for _ in range(tries)]
        best = max(candidates, key=lambda cell: gain(cell, open_pairs))
        chosen.append(best)
        open_pairs -= pairs_of(best)
    return chosen
