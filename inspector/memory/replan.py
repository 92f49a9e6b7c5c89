"""The values of a memory plan as blocks for a planner, and the plan of its offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from inspector.memory.plan import Arena, MemoryPlan, PlannedValue, placed_arena

_CALLERS = ("input", "output")


@dataclass(frozen=True, slots=True)
class ValueBlock:
    """Values on the same bytes at the same time, which stay together.

    Attributes:
        name: of its largest value
        nbytes: from the first to the last of its bytes
        first: instruction that needs it first
        last: instruction that needs it last
        members: (value, byte in the block)
    """

    name: str
    nbytes: int
    first: int
    last: int
    members: tuple[tuple[int, int], ...]


def blocks_of(arena: Arena, *, lent: bool = False) -> tuple[ValueBlock, ...]:
    """Return the blocks of a planned buffer.

    Args:
        arena: the buffer
        lent: whether the caller lends the memory of inputs and outputs, which are left out
    """
    groups: dict[int, list[PlannedValue]] = {}
    for value in arena.values:
        if value.first >= 0 and value.nbytes:
            groups.setdefault(value.storage, []).append(value)
    kept = (
        group
        for group in groups.values()
        if not (lent and all(value.role in _CALLERS for value in group))
    )
    return tuple(_block(group) for group in kept)


def _block(group: list[PlannedValue]) -> ValueBlock:
    low = min(value.offset for value in group)
    largest = max(group, key=lambda value: value.nbytes)
    return ValueBlock(
        largest.name,
        max(value.offset + value.nbytes for value in group) - low,
        min(value.first for value in group),
        max(value.last for value in group),
        tuple((value.value, value.offset - low) for value in group),
    )


@dataclass(frozen=True, slots=True)
class ReplannedBuffer:
    """A planned buffer by another planner.

    Attributes:
        mem_id: of the buffer
        planner: its name
        nbytes: size, alignment included
        offsets: value -> first byte; values of the caller are left out
    """

    mem_id: int
    planner: str
    nbytes: int
    offsets: Mapping[int, int]


def replanned(plan: MemoryPlan, buffers: Mapping[int, ReplannedBuffer]) -> MemoryPlan:
    """Return a plan with values at other offsets, by number of the buffer."""
    arenas = [
        _replanned(arena, buffers[arena.mem_id], max(plan.instruction_count, 1))
        if arena.mem_id in buffers
        else arena
        for arena in plan.arenas
    ]
    return replace(plan, arenas=tuple(arenas), issues=())


def _replanned(arena: Arena, other: ReplannedBuffer, moments: int) -> Arena:
    values = [
        replace(value, offset=other.offsets[value.value], peak_bytes=0, shares_with=())
        for value in arena.values
        if value.value in other.offsets
    ]
    return placed_arena(arena.mem_id, other.nbytes, values, moments)


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """How well a planned buffer is used.

    Attributes:
        planned_bytes: its size
        peak_bytes: largest number of bytes in use at once
        hole_bytes: free at the peak
        fragmentation: share of the buffer that is free at the peak
        reuse: bytes of all values by those of the buffer: 1 without reuse
    """

    planned_bytes: int
    peak_bytes: int
    hole_bytes: int
    fragmentation: float
    reuse: float


def plan_figures(arena: Arena) -> PlanFigures:
    """Return how well a planned buffer is used."""
    whole = sum(block.nbytes for block in blocks_of(arena))
    size = arena.planned_bytes
    return PlanFigures(
        size,
        arena.peak_bytes,
        arena.hole_bytes,
        arena.hole_bytes / size if size else 0.0,
        whole / size if size else 0.0,
    )
