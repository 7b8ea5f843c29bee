# SPDX-License-Identifier: BSD-3-Clause
"""Flat views of tensors, and buffers that are used again."""

import threading

import torch

from . import capi


def flat_bytes(tensor):
    """The bytes of a contiguous tensor, as one that shares its memory and has no history."""
    return tensor.detach().reshape(-1).view(torch.uint8)


def plain(tensor):
    """Whether its memory is its elements, one after the other."""
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def where(tensor):
    """capi.HOST or capi.CUDA, and the current stream of the tensor's device."""
    if tensor is not None and tensor.is_cuda:
        return capi.CUDA, torch.cuda.current_stream(tensor.device).cuda_stream
    return capi.HOST, None


class Pool:
    """Buffers of bytes by size and device. At most `keep` idle bytes are kept."""

    def __init__(self, keep=256 << 20):
        self._lock = threading.Lock()
        self._idle = {}
        self._bytes, self._keep = 0, keep

    def take(self, size, device):
        """`size` bytes with whatever is in them."""
        with self._lock:
            idle = self._idle.get((size, device))
            if idle:
                self._bytes -= size
                return idle.pop()
        return torch.empty(size, dtype=torch.uint8, device=device)

    def copy(self, tensor):
        """A buffer with the bytes of a tensor, contiguous or not, in the order of its elements."""
        buffer = self.take(tensor.numel() * tensor.element_size(), tensor.device)
        buffer.view(tensor.dtype).view(tensor.shape).copy_(tensor.detach())
        return buffer

    def give(self, buffer):
        with self._lock:
            if buffer is not None and self._bytes + buffer.numel() <= self._keep:
                self._bytes += buffer.numel()
                self._idle.setdefault((buffer.numel(), buffer.device), []).append(buffer)
