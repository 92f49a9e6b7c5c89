"""Segments of tensor bytes: equal contents are stored once, and nothing is copied."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from compiler.errors import UnsupportedError
from compiler.memory.specs import raw_bytes

_PIECE = 1 << 20  # bytes
_SAMPLE = 64  # bytes at start, middle and end: a cheap key before contents are compared


def on_cpu(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """Return a tensor whose values can be written.

    Raises: UnsupportedError if its values are on another device, or do not exist
    """
    if tensor.device.type == "cpu":
        return tensor
    what = "has no values" if tensor.is_meta else "cannot be written"
    raise UnsupportedError(
        f"{name} is on the device {tensor.device} and {what}: load it, or move the module to the"
        " CPU before it is exported"
    )


class TensorSegment:
    """Collects the bytes of tensors; entry 0 is the placeholder of the format.

    Attributes:
        offsets: where each entry starts
        parts: buffers to concatenate
        nbytes: their sum
    """

    def __init__(self, alignment: int) -> None:
        self.offsets = [0]
        self.parts: list[memoryview | bytes] = []
        self.nbytes = 0
        self._alignment = alignment
        self._data: list[memoryview] = []
        self._steps: dict[int, int] = {}  # required alignment by entry
        self._by_place: dict[Any, int] = {}
        self._by_sample: dict[Any, list[tuple[int, memoryview]]] = {}
        self._held: list[torch.Tensor] = []  # addresses are unique only while the tensors are alive

    def add(self, tensor: torch.Tensor) -> int:
        """Return the entry that holds a tensor's bytes."""
        place = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
        if place in self._by_place:
            return self._by_place[place]
        self._held.append(tensor)
        data = raw_bytes(tensor)
        entry = self._equal(data)
        if entry is None:
            entry = self._append(data)
        self._by_place[place] = entry
        return entry

    def held(self, data: memoryview) -> int | None:
        """Return the entry with this content, None if not found."""
        same = self._by_sample.get(_samples(data), [])
        return next((entry for entry, other in same if _equal(other, data)), None)

    def occupy(self) -> None:
        """Give a segment of empty tensors some bytes.

        The stock runtime takes a program without them for one of the time before segments.
        """
        if len(self.offsets) > 1 and not self.nbytes:
            self.parts.append(bytes(self._alignment))
            self.nbytes = self._alignment

    def align(self, entry: int, step: int) -> None:
        """Align the start of an entry; later entries move."""
        self._steps[entry] = math.lcm(step, self._steps.get(entry, 1))
        if self.offsets[entry] % step == 0:
            return
        data, self._data = self._data, []
        self.offsets, self.parts, self.nbytes = [0], [], 0
        for each in data:
            self._append(each)

    def _equal(self, data: memoryview) -> int | None:
        """Return the entry with equal content, or register it as the next entry."""
        found = self.held(data)
        if found is None:
            self._by_sample.setdefault(_samples(data), []).append((len(self.offsets), data))
        return found

    def _append(self, data: memoryview) -> int:
        entry = len(self.offsets)
        self._data.append(data)
        self._pad(self._steps.get(entry, 1))
        self.offsets.append(self.nbytes)
        self.parts.append(data)
        self.nbytes += data.nbytes
        self._pad(self._alignment)
        return entry

    def _pad(self, step: int) -> None:
        padding = -self.nbytes % step
        if padding:
            self.parts.append(bytes(padding))
        self.nbytes += padding


def _samples(data: memoryview) -> tuple[object, ...]:
    """Return a sample of the bytes, for a quick comparison of contents."""
    middle = data.nbytes // 2
    samples = (data[:_SAMPLE], data[middle : middle + _SAMPLE], data[-_SAMPLE:])
    return (data.nbytes, *(bytes(sample) for sample in samples))


def _equal(one: memoryview, other: memoryview) -> bool:
    """Return whether bytes are equal, by pieces: a comparison has a byte for each of them."""
    if one.nbytes != other.nbytes:
        return False
    mine, theirs = np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8)
    pieces = (slice(at, at + _PIECE) for at in range(0, len(mine), _PIECE))
    return all(np.array_equal(mine[piece], theirs[piece]) for piece in pieces)
