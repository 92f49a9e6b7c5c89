"""Plans of the memory of a program by other planners, as a job for a worker."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.memory.plan import MemoryPlan
from inspector.memory.replan import ReplannedBuffer, replanned
from schema.objects.identity_cache import identity_cache

PLANNERS = ("greedy", "interval", "naive")
ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class PlanJob:
    """A request to place the values of a program as other planners do, without a compile.

    Attributes:
        program: path of the program
        method: whose memory; empty for the only one
        planners: names of planners
        alignment: of each value, in bytes
        lent: whether the caller lends the memory of inputs and outputs
    """

    program: str
    method: str = ""
    planners: tuple[str, ...] = PLANNERS
    alignment: int = ALIGNMENT
    lent: bool = False


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """A planned buffer by a planner.

    Attributes:
        planner: name
        mem_id: number of the buffer
        nbytes: its size, alignment included
        values: the values in it
        offsets: first byte of each
    """

    planner: str
    mem_id: int
    nbytes: int
    values: tuple[int, ...]
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlannerResult:
    """The result: one entry for each planner and buffer."""

    buffers: tuple[PlannedBuffer, ...] = ()


@identity_cache
def plans_of(plan: MemoryPlan, found: PlannerResult) -> dict[str, MemoryPlan]:
    """Return planner -> plan of the values of a plan by it."""
    by_planner: dict[str, dict[int, ReplannedBuffer]] = {}
    for one in found.buffers:
        offsets = dict(zip(one.values, one.offsets, strict=True))
        buffer = ReplannedBuffer(one.mem_id, one.planner, one.nbytes, offsets)
        by_planner.setdefault(one.planner, {})[one.mem_id] = buffer
    return {name: replanned(plan, buffers) for name, buffers in by_planner.items()}
