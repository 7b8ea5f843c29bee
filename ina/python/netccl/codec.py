# SPDX-License-Identifier: BSD-3-Clause
"""How float32 becomes what is added in the network (NETCCL_QUANT).

block   float32 is handed to the library, which gives each 64 elements an exponent (docs/ina.md, "The numbers")
factor  one factor for a tensor, as NetCCL has it: (2^31 - 2^7) / the sum of all ranks' largest |x|, in double, then float32;
        words are cut off towards zero and held at the ends of int32, results divided in float32. As ina/frame/quant.h.
"""

import os

import torch

from . import capi, say

FACTOR = float(0x7FFFFF80)
LEAST = 6.32e-30  # below it float32 has no factor (ina_quant_factor())
CHUNK = 1 << 20  # elements that pass through float64 at once


def mode():
    """ValueError: a line for the user."""
    name = os.environ.get("NETCCL_QUANT") or "block"
    if name not in ("block", "factor"):
        raise ValueError("NETCCL_QUANT=%s: use block or factor" % name)
    return name


class Block:
    """Elements travel as they are."""

    type = capi.FLOAT32

    def encode(self, tensor, pool):
        return pool.copy(tensor)

    def decode(self, words):
        return words.view(torch.float32)


class Factor:
    type = capi.INT32

    def __init__(self, factor):
        self.factor = torch.tensor(factor, dtype=torch.float64).to(torch.float32)

    def encode(self, tensor, pool):
        values = tensor.detach().contiguous().reshape(-1)
        buffer = pool.take(values.numel() * 4, tensor.device)
        words, factor, held = buffer.view(torch.int32), self.factor.to(tensor.device), 0
        for start in range(0, values.numel(), CHUNK):
            scaled = (values[start : start + CHUNK] * factor).double()
            inside = scaled.clamp(-(2.0**31), 2.0**31 - 1)
            held += int((scaled.trunc() != inside.trunc()).sum())
            words[start : start + CHUNK] = inside.to(torch.int32)
        if held:
            saturated()
        return buffer

    def decode(self, words):
        return words.view(torch.int32).to(torch.float32).div_(self.factor.to(words.device))


def saturated():
    say.once(
        "saturated",
        "NETCCL_QUANT=factor: words or sums passed the end of int32 and were held there; such elements are slightly too small. "
        "It is said once. NETCCL_QUANT=block has no such case",
    )


def factor_of(total):
    """The codec for the sum of all ranks' largest |x|; None: the tensor must go another way."""
    if total == 0:
        return Factor(1.0)
    if total != total or total in (float("inf"), float("-inf")) or total < LEAST:
        return None
    return Factor(FACTOR / total)
