"""Planners: no overlap in time and space, never above the sum, never below the bound."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compiler.dialect.dim_order import is_dense
from compiler.errors import PlanError
from compiler.memory.blocks import BlockPlacement, MemoryBlock, aligned, lower_bound, verify
from compiler.memory.planners import PLANNERS, Planner, plan_blocks
from compiler.memory.planners.by_size import greedy, objects

_BLOCK = st.builds(
    lambda size, first, length, planned: MemoryBlock(
        "v", size, first, first + length, planned=planned
    ),
    st.integers(0, 200),
    st.integers(0, 30),
    st.integers(0, 12),
    st.booleans(),
)


@given(
    st.lists(_BLOCK, max_size=40),
    st.sampled_from([1, 16, 64]),
    st.sampled_from([*PLANNERS.values(), objects]),
)
def test_plan_of_any_blocks_is_sound(
    blocks: list[MemoryBlock], alignment: int, planner: Planner
) -> None:
    plan = plan_blocks(blocks, alignment, [planner])
    placed = [(b, o) for b, o in zip(blocks, plan.offsets, strict=True) if b.planned]
    for index, (a, at) in enumerate(placed):
        assert at % alignment == 0
        for b, other in placed[:index]:
            apart = a.last < b.first or b.last < a.first
            assert apart or at + a.nbytes <= other or other + b.nbytes <= at
    total = sum(aligned(block.nbytes, alignment) for block, _ in placed)
    assert lower_bound(blocks, alignment) <= plan.nbytes <= total


def test_objects_are_not_shared_by_blocks_alive_at_the_same_time() -> None:
    blocks = [
        MemoryBlock("large", 128, 0, 1),
        MemoryBlock("a", 64, 2, 3),
        MemoryBlock("b", 64, 3, 4),
    ]
    assert plan_blocks(blocks, 16, [greedy]).offsets == (0, 0, 64)
    assert plan_blocks(blocks, 16, [objects]).offsets == (0, 0, 128)


def test_unplanned_block_has_no_place() -> None:
    blocks = [MemoryBlock("a", 16, 0, 3), MemoryBlock("b", 64, 0, 3, planned=False)]
    assert plan_blocks(blocks).offsets == (0, -1)


def test_blocks_that_follow_each_other_share_memory() -> None:
    blocks = [MemoryBlock("a", 100, 0, 1), MemoryBlock("b", 100, 2, 3), MemoryBlock("c", 100, 4, 4)]
    plan = plan_blocks(blocks)
    assert plan.nbytes == plan.lower_bound == 112
    assert plan_blocks(blocks, 16, [PLANNERS["naive"]]).nbytes == 3 * 112


def test_verifier_names_both_of_two_blocks_that_overlap() -> None:
    blocks = [MemoryBlock("first", 32, 0, 2), MemoryBlock("second", 32, 2, 4)]
    with pytest.raises(PlanError, match="second and first overlap"):
        verify(blocks, BlockPlacement((0, 16), 48, 64, "by hand"), 16)
    verify([blocks[0], replace(blocks[1], first=3)], BlockPlacement((0, 16), 48, 32, "by hand"), 16)


def test_verifier_refuses_a_block_outside_the_arena() -> None:
    with pytest.raises(PlanError, match="lies outside 16 bytes"):
        verify([MemoryBlock("a", 32, 0, 2)], BlockPlacement((0,), 16, 32, "by hand"), 16)


def test_planner_that_overlaps_is_refused() -> None:
    blocks = [MemoryBlock("a", 32, 0, 2), MemoryBlock("b", 32, 1, 2)]
    with pytest.raises(PlanError):
        plan_blocks(blocks, 16, [lambda given, _: [0 for _ in given]])


@pytest.mark.slow
def test_twenty_thousand_values_are_planned_in_time() -> None:
    draw = random.Random(0)
    starts = [draw.randrange(20_000) for _ in range(20_000)]
    blocks = [MemoryBlock("v", draw.randrange(1, 9999), s, s + draw.randrange(12)) for s in starts]
    before = time.process_time()
    plan = plan_blocks(blocks)
    assert time.process_time() - before < 6  # 1 s alone on a machine; minutes if it were quadratic
    assert plan.nbytes < 1.25 * plan.lower_bound


def test_tensor_with_gaps_or_repeats_is_not_dense() -> None:
    tensor = torch.randn(4, 3, 2)
    assert is_dense(tensor.permute(2, 0, 1))
    assert is_dense(tensor[:, :0])
    assert is_dense(tensor[:1])
    assert not is_dense(tensor[:, :2])
    assert not is_dense(tensor[:1].expand(4, 3, 2))
