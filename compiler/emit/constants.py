"""Segments of tensor bytes: equal contents are stored once, and nothing is copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from compiler.edge.dim_order import dim_order_of

_SAMPLE = 64


def raw_bytes(tensor: torch.Tensor) -> memoryview:
    """Return the bytes of a tensor in memory order, without a copy where it is dense."""
    tensor = tensor.detach()
    if not tensor.is_contiguous():
        tensor = tensor.permute(dim_order_of(tensor)).contiguous()
    if tensor.numel() == 0:
        return memoryview(b"")
    flat: Any = tensor.reshape(-1).view(torch.uint8).numpy()
    return memoryview(flat)


class Segment:
    """Collects the bytes of tensors; entry 0 is the placeholder the format asks for.

    Attributes:
        offsets: where each entry starts
        parts: buffers to write one behind the other
        nbytes: their sum
    """

    def __init__(self, alignment: int) -> None:
        self.offsets = [0]
        self.parts: list[memoryview | bytes] = []
        self.nbytes = 0
        self._alignment = alignment
        self._by_place: dict[Any, int] = {}
        self._by_sample: dict[Any, list[tuple[int, memoryview]]] = {}
        self._held: list[torch.Tensor] = []  # places stay theirs only while they live

    def add(self, tensor: torch.Tensor, *, share: bool = True) -> int:
        """Return the entry that holds a tensor's bytes."""
        place = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
        if share and place in self._by_place:
            return self._by_place[place]
        self._held.append(tensor)
        data = raw_bytes(tensor)
        entry = self._equal(data) if share else None
        if entry is None:
            entry = self._append(data)
        self._by_place[place] = entry
        return entry

    def _equal(self, data: memoryview) -> int | None:
        """Return the entry of the same content; a few bytes tell almost all others apart."""
        middle = data.nbytes // 2
        samples = (data[:_SAMPLE], data[middle : middle + _SAMPLE], data[-_SAMPLE:])
        key = (data.nbytes, *(bytes(sample) for sample in samples))
        same = self._by_sample.setdefault(key, [])
        for entry, other in same:
            if np.array_equal(np.frombuffer(other, np.uint8), np.frombuffer(data, np.uint8)):
                return entry
        same.append((len(self.offsets), data))
        return None

    def _append(self, data: memoryview) -> int:
        self.offsets.append(self.nbytes)
        self.parts.append(data)
        padding = -data.nbytes % self._alignment
        if padding:
            self.parts.append(bytes(padding))
        self.nbytes += data.nbytes + padding
        return len(self.offsets) - 1
