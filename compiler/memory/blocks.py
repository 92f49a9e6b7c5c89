"""Blocks of memory with a size and a lifetime, and their offsets in planned buffers."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from compiler.errors import PlanError


class Role(str, Enum):
    """The purpose of a block."""

    INPUT = "input"
    OUTPUT = "output"
    BUFFER = "buffer"
    TEMPORARY = "temporary"


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """Memory of one or more values that share it.

    Attributes:
        name: of its first value
        nbytes: at the upper bound of its shape, before alignment
        first: instruction that writes it, from 1; 0 for inputs, which exist before
        last: last instruction that uses it, inclusive
        role: what it stores
        planned: whether it is part of the plan; the caller supplies memory for the others
    """

    name: str
    nbytes: int
    first: int
    last: int
    role: Role = Role.TEMPORARY
    planned: bool = True


@dataclass(frozen=True, slots=True)
class BlockPlacement:
    """Locations of blocks in planned buffers.

    Attributes:
        offsets: bytes from the start of the planned buffer, one per block; -1 if unplanned
        nbytes: size of all planned buffers
        lower_bound: largest number of bytes live at one instruction: no plan can be smaller
        planner: name of the planner
        arenas: planned buffer of each block, from 1; empty if all are in the first
        sizes: bytes of each planned buffer from the first; empty for a single one
    """

    offsets: tuple[int, ...]
    nbytes: int
    lower_bound: int
    planner: str
    arenas: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()

    def place(self, block: int) -> tuple[int, int]:
        """Return planned buffer and offset of a block."""
        return (self.arenas[block] if self.arenas else 1), self.offsets[block]

    @property
    def arena_sizes(self) -> tuple[int, ...]:
        """Return the bytes of each planned buffer; the first has index 1."""
        return self.sizes or (self.nbytes,)


def aligned(nbytes: int, alignment: int) -> int:
    """Return a size rounded up to a multiple of the alignment."""
    return -(-nbytes // alignment) * alignment


def lower_bound(blocks: Sequence[MemoryBlock], alignment: int) -> int:
    """Return the largest number of bytes live at one instruction, alignment included."""
    changes: dict[int, int] = {}
    for block in blocks:
        if block.planned:
            size = aligned(block.nbytes, alignment)
            changes[block.first] = changes.get(block.first, 0) + size
            changes[block.last + 1] = changes.get(block.last + 1, 0) - size
    alive = most = 0
    for time in sorted(changes):
        alive += changes[time]
        most = max(most, alive)
    return most


def verify(blocks: Sequence[MemoryBlock], plan: BlockPlacement, alignment: int) -> None:
    """Check that no two blocks overlap in time and space, and that all are aligned in their buffer.

    Raises: PlanError naming both blocks
    """
    events: dict[int, list[tuple[int, int, int]]] = {}
    for index, block in enumerate(blocks):
        if not block.planned:
            continue
        arena, offset = plan.place(index)
        size = plan.arena_sizes[arena - 1] if 0 < arena <= len(plan.arena_sizes) else 0
        if offset % alignment:
            raise PlanError(f"{block.name} at {offset} does not start at a multiple of {alignment}")
        if offset < 0 or offset + block.nbytes > size:
            raise PlanError(
                f"{block.name} at {offset} lies outside {size} bytes of planned buffer {arena}"
            )
        if block.nbytes:
            here = events.setdefault(arena, [])
            here += ((block.first, 1, index), (block.last + 1, 0, index))
    for here in events.values():
        _sweep(blocks, plan.offsets, sorted(here))


def _sweep(
    blocks: Sequence[MemoryBlock], offsets: Sequence[int], events: list[tuple[int, int, int]]
) -> None:
    alive: list[tuple[int, int]] = []  # (offset, block), by offset: neighbours are enough
    for _, starts, index in events:
        entry = (offsets[index], index)
        at = bisect.bisect_left(alive, entry)
        if not starts:
            del alive[at]
            continue
        for other in (*alive[max(at - 1, 0) : at], *alive[at : at + 1]):
            if _overlap(blocks, offsets, index, other[1]):
                names = f"{blocks[index].name} and {blocks[other[1]].name}"
                raise PlanError(f"{names} overlap in time and in memory at {offsets[index]}")
        alive.insert(at, entry)


def _overlap(blocks: Sequence[MemoryBlock], offsets: Sequence[int], a: int, b: int) -> bool:
    return offsets[a] < offsets[b] + blocks[b].nbytes and offsets[b] < offsets[a] + blocks[a].nbytes
