"""Branches and loops: what is emitted, planned, and run on the stock runtime."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from compiler import to_edge
from schema import program as pte
from schema.program import model as m
from tests.compiler.compare import assert_equal, calls_of, eager_outputs, exported, flat, module_of
from tests.compiler.control_flow import SAMPLES, map_rows
from tests.compiler.stock import Stock
from tests.compiler.walk import Walk

pytestmark = pytest.mark.slow


@pytest.mark.interop
@pytest.mark.parametrize("name", SAMPLES)
def test_control_flow_on_the_stock_runtime_equals_eager(name: str, stock: Stock) -> None:
    sample = SAMPLES[name]
    module = module_of(sample)
    wanted = eager_outputs(module, calls_of(sample))
    program = to_edge(exported(sample, module)).to_executorch()
    found = stock.run(program.buffer, [("forward", flat(inputs)) for inputs in calls_of(sample)])
    assert_equal(found, wanted, sample.tolerance)


def test_branch_is_jumped_over_and_moved_to_one_result() -> None:
    sample = SAMPLES["cond"]
    buffer = to_edge(exported(sample, module_of(sample))).to_executorch().buffer
    (chain,) = pte.decode(buffer).plan("forward").chains
    calls = [instruction.instr_args for instruction in chain.instructions]
    jumps = [(at, call) for at, call in enumerate(calls) if isinstance(call, m.JumpFalseCall)]
    moves = [call for call in calls if isinstance(call, m.MoveCall)]
    assert len(jumps) == len(moves) == 2
    (first, to_else), (second, to_end) = jumps
    assert to_else.destination_instruction == second + 1
    assert first < second < to_end.destination_instruction <= len(calls)
    assert moves[0].move_to == moves[1].move_to


@pytest.mark.parametrize("name", SAMPLES)
def test_no_value_is_overwritten_before_it_is_read_whichever_way_jumps_go(name: str) -> None:
    sample = SAMPLES[name]
    buffer = to_edge(exported(sample, module_of(sample))).to_executorch().buffer
    plan = pte.decode(buffer).plan("forward")
    for seed in range(16):
        draw = random.Random(seed)
        assert Walk(plan).run(draw.random() < 0.5 for _ in itertools.count()) > 0


def test_values_of_both_branches_share_memory() -> None:
    def branches(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda a: (a * 2).exp(), lambda a: (a * 3).exp(), (x,))

    sample = SAMPLES["cond"]
    program = torch.export.export(type(module_of(SAMPLES["scan"]))(branches), sample.inputs)
    plan = to_edge(program).to_executorch().memory_plans["forward"]
    # The input, the sum, the test, one value inside a branch, the result: 48 bytes are one tensor.
    assert plan.nbytes <= 3 * 48 + 16


def test_what_only_a_loop_reads_gives_its_memory_to_what_is_behind_it() -> None:
    def looped(rows: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return map_rows(lambda row, with_it: (row + with_it).exp(), rows, other).relu()

    inputs = torch.randn(8, 16), torch.randn(16)
    program = torch.export.export(type(module_of(SAMPLES["scan"]))(looped), inputs)
    plan = to_edge(program).to_executorch().memory_plans["forward"]
    # Rows, the stack of results, the other operand, a row and one more value of the body.
    assert plan.nbytes == plan.lower_bound == 2 * 8 * 64 + 3 * 64
