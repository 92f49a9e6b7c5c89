"""Planners: each maps blocks and an alignment to one offset per block; one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.memory.blocks import BlockPlacement, MemoryBlock, aligned, lower_bound, verify
from compiler.memory.planners.by_size import greedy, interval
from compiler.memory.planners.naive import naive
from schema.objects.cyclic_gc import gc_suspended

Planner = Callable[[Sequence[MemoryBlock], int], list[int]]

PLANNERS: dict[str, Planner] = {"naive": naive, "greedy": greedy, "interval": interval}
DEFAULT_PLANNERS: tuple[Planner, ...] = (greedy, interval, naive)


@gc_suspended()
def plan_blocks(
    blocks: Sequence[MemoryBlock],
    alignment: int = 16,
    planners: Sequence[Planner] = DEFAULT_PLANNERS,
) -> BlockPlacement:
    """Return the smallest verified plan; planners after one that reached the bound are skipped.

    Raises: PlanError if the blocks of a plan overlap
    """
    bound = lower_bound(blocks, alignment)
    best: BlockPlacement | None = None
    planned = [block for block in blocks if block.planned]
    for planner in planners:
        places = iter(planner(planned, alignment))
        offsets = tuple(next(places) if block.planned else -1 for block in blocks)
        ends = [
            place + aligned(block.nbytes, alignment)
            for block, place in zip(blocks, offsets, strict=True)
            if block.planned
        ]
        plan = BlockPlacement(offsets, max(ends, default=0), bound, planner.__name__)
        verify(blocks, plan, alignment)
        if best is None or plan.nbytes < best.nbytes:
            best = plan
        if best.nbytes == bound:
            break
    assert best is not None  # the list is never empty
    return best
