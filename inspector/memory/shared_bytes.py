"""Bytes shared by several values at the same time: counted once, and the values that share them.

A box is a range of addresses and of instructions: low, high (exclusive), first, last (inclusive).
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Box = tuple[int, int, int, int]


def storages(boxes: Sequence[Box]) -> list[int]:
    """Return an id for each box; boxes with common bytes at a common time have the same id."""
    found: list[Box] = []
    parent: dict[int, int] = {}
    active: list[tuple[int, int]] = []  # (low address, storage), disjoint
    numbers = [0] * len(boxes)
    for index in sorted(range(len(boxes)), key=lambda index: (boxes[index][2], boxes[index][0])):
        box = boxes[index]
        active = [entry for entry in active if found[entry[1]][3] >= box[2] >= 0]
        number = len(found)
        for entry in _overlapping(active, found, box):
            active.remove(entry)
            parent[entry[1]] = number
            box = _around(box, found[entry[1]])
        found.append(box)
        bisect.insort(active, (box[0], number))
        numbers[index] = number
    return [_root(parent, number) for number in numbers]


def _overlapping(
    active: list[tuple[int, int]], found: list[Box], box: Box
) -> list[tuple[int, int]]:
    start = bisect.bisect_left(active, (box[0], -1))
    if start > 0 and found[active[start - 1][1]][1] > box[0]:
        start -= 1
    over: list[tuple[int, int]] = []
    for entry in active[start:]:
        if found[entry[1]][0] >= box[1]:
            break
        over.append(entry)
    return over


def _around(one: Box, other: Box) -> Box:
    return (
        min(one[0], other[0]),
        max(one[1], other[1]),
        min(one[2], other[2]),
        max(one[3], other[3]),
    )


def _root(parent: dict[int, int], number: int) -> int:
    while number in parent:
        number = parent[number]
    return number


def live_bytes(boxes: Sequence[Box], numbers: Sequence[int], steps: int) -> NDArray[np.int64]:
    """Return how many bytes are live at each instruction, each address once.

    Args:
        boxes: live ranges; a first instruction of -1 means never
        numbers: storage of each
        steps: number of instructions
    """
    groups: defaultdict[int, list[Box]] = defaultdict(list)
    for box, number in zip(boxes, numbers, strict=True):
        if box[2] >= 0 and box[1] > box[0]:
            groups[number].append(box)
    change = np.zeros(steps + 1, dtype=np.int64)
    for group in groups.values():
        for step, delta in _changes(group):
            change[step] += delta
    return np.cumsum(change)[:-1]


def _changes(group: list[Box]) -> list[tuple[int, int]]:
    if len(group) == 1:
        low, high, first, last = group[0]
        return [(first, high - low), (last + 1, low - high)]
    union = _Union(group)
    events = sorted(
        event
        for low, high, first, last in group
        for event in ((first, 1, low, high), (last + 1, -1, low, high))
    )
    found: list[tuple[int, int]] = []
    for step, sign, low, high in events:
        before = union.nbytes
        union.add(low, high, sign)
        found.append((step, union.nbytes - before))
    return found


class _Union:
    """The length of a changing union of ranges: a segment tree over their ends."""

    def __init__(self, boxes: Sequence[Box]) -> None:
        self.ends = sorted({end for box in boxes for end in box[:2]})
        leaves = len(self.ends) - 1
        self.counts = [0] * (4 * leaves)
        self.covered = [0] * (4 * leaves)

    @property
    def nbytes(self) -> int:
        """Return the bytes covered now."""
        return self.covered[1]

    def add(self, low: int, high: int, sign: int) -> None:
        """Add or remove a range."""
        start, end = bisect.bisect_left(self.ends, low), bisect.bisect_left(self.ends, high)
        self._add(1, 0, len(self.ends) - 1, start, end, sign)

    def _add(self, node: int, left: int, right: int, start: int, end: int, sign: int) -> None:
        if start >= right or end <= left:
            return
        if start <= left and right <= end:
            self.counts[node] += sign
        else:
            middle = (left + right) // 2
            self._add(2 * node, left, middle, start, end, sign)
            self._add(2 * node + 1, middle, right, start, end, sign)
        if self.counts[node]:
            self.covered[node] = self.ends[right] - self.ends[left]
        elif right - left == 1:
            self.covered[node] = 0
        else:
            self.covered[node] = self.covered[2 * node] + self.covered[2 * node + 1]


def counted_once(ranges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the bytes of each range that no range before it has."""
    lows: list[int] = []
    highs: list[int] = []
    found: list[int] = []
    for low, high in ranges:
        start = bisect.bisect_left(highs, low)  # ranges that touch become one
        end = bisect.bisect_right(lows, high)
        here = range(start, end)
        known = sum(max(0, min(highs[at], high) - max(lows[at], low)) for at in here)
        found.append(max(high - low, 0) - known)
        if high <= low:
            continue
        merged = (min([low, *lows[start:end]]), max([high, *highs[start:end]]))
        lows[start:end], highs[start:end] = [merged[0]], [merged[1]]
    return found
