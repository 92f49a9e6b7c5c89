"""Planners that place blocks one by one, by size, where memory is free during their lifetime."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from compiler.memory.blocks import MemoryBlock, aligned

# Time slots of the calendar; a block that spans more than 64 of them is kept in a common list.
_BUCKETS = 1024


def greedy(blocks: Sequence[MemoryBlock], alignment: int) -> list[int]:
    """Return offsets with the largest blocks placed first."""
    return _place(blocks, alignment, lambda block: -block.nbytes)


def interval(blocks: Sequence[MemoryBlock], alignment: int) -> list[int]:
    """Return offsets with blocks placed by decreasing bytes times lifetime."""
    return _place(blocks, alignment, lambda block: -block.nbytes * (block.last - block.first + 1))


def objects(blocks: Sequence[MemoryBlock], alignment: int) -> list[int]:
    """Return offsets where blocks that are live at the same time never share an object.

    An object is a range of bytes as large as its first, largest block; all its
    blocks start at its beginning.
    """
    offsets = [0] * len(blocks)
    shared: list[tuple[int, list[MemoryBlock]]] = []
    end = 0
    for index in sorted(range(len(blocks)), key=lambda i: (-blocks[i].nbytes, blocks[i].first)):
        block = blocks[index]
        free = (
            (offset, members)
            for offset, members in shared
            if all(other.last < block.first or other.first > block.last for other in members)
        )
        offset, members = next(free, (end, list[MemoryBlock]()))
        if not members:
            shared.append((offset, members))
            end += aligned(block.nbytes, alignment)
        members.append(block)
        offsets[index] = offset
    return offsets


def _place(
    blocks: Sequence[MemoryBlock], alignment: int, rank: Callable[[MemoryBlock], int]
) -> list[int]:
    offsets = [0] * len(blocks)
    sizes = [aligned(block.nbytes, alignment) for block in blocks]
    calendar = _Calendar(max((block.last for block in blocks), default=0) + 1)
    for index in sorted(range(len(blocks)), key=lambda i: (rank(blocks[i]), blocks[i].first)):
        block, size = blocks[index], sizes[index]
        if size == 0:
            continue
        taken = sorted(
            (offsets[other], offsets[other] + sizes[other])
            for other in calendar.near(block)
            if blocks[other].first <= block.last and blocks[other].last >= block.first
        )
        offsets[index] = _lowest_gap(taken, size)
        calendar.add(index, block)
    return offsets


def _lowest_gap(taken: Iterable[tuple[int, int]], size: int) -> int:
    at = 0
    for start, end in taken:
        if start - at >= size:
            break
        at = max(at, end)
    return at


class _Calendar:
    """Placed blocks by time slot, to search only those live at about the same time.

    Blocks with long lifetimes are in one common list instead of every slot.
    """

    def __init__(self, length: int) -> None:
        self._width = max(1, length // _BUCKETS)
        self._slots: dict[int, list[int]] = {}
        self._long: list[int] = []

    def add(self, index: int, block: MemoryBlock) -> None:
        slots = self._range(block)
        if len(slots) > 64:
            self._long.append(index)
            return
        for slot in slots:
            self._slots.setdefault(slot, []).append(index)

    def near(self, block: MemoryBlock) -> Iterable[int]:
        found = set(self._long)
        for slot in self._range(block):
            found.update(self._slots.get(slot, ()))
        return found

    def _range(self, block: MemoryBlock) -> range:
        return range(block.first // self._width, block.last // self._width + 1)
