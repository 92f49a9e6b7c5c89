"""Untraced runs give the same results as traced ones, whatever was fused for them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler import to_edge
from runtime import DebugLevel, EventTracer, Program, Runtime
from tests.runtime.samples import PORTABLE, assert_close, calls_of, load

pytestmark = pytest.mark.slow


def assert_same_runs(other: Program, program: Program, name: str, calls: list[list[Any]]) -> None:
    """The same calls in the same order, so that state shows; once with a trace among the others.

    The two programs must not be one: state that methods share would be counted twice.
    """
    traced, fused = other.fresh_method(name), program.fresh_method(name)
    traced.tracer = EventTracer(DebugLevel.INTERMEDIATE)
    for number, inputs in enumerate(calls):
        wanted = traced.execute(inputs)
        fused.tracer = EventTracer() if number == len(calls) - 2 else None
        assert_close(fused.execute(inputs), wanted, 2e-5)


@pytest.mark.parametrize("name", PORTABLE)
def test_sessions_run_fused_as_they_run_traced(name: str) -> None:
    program, other = load(name), load(name)
    calls = calls_of(program, rounds=4)
    for method in sorted(program.method_names):
        own = [inputs for called, inputs in calls if called == method]
        assert_same_runs(other, program, method, own)


class _Fills(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + torch.full((64,), 2.0), torch.arange(64) * x


def test_traced_run_after_fused_ones_has_all_tensors_in_planned_memory() -> None:
    x = torch.ones(64)
    program = to_edge(torch.export.export(_Fills(), (x,))).to_executorch()
    method = Runtime().load_program(program.buffer).load_method("forward")
    for _ in range(3):
        method.execute([x])
    planned = [slot for slot in method._table.slots.values() if slot.planned]
    assert any(slot.tensor.data_ptr() != slot.base.data_ptr() for slot in planned)
    method.tracer = EventTracer()
    assert_close(method.execute([x]), [x + 2, torch.arange(64) * x], 0)
    assert all(slot.tensor.data_ptr() == slot.base.data_ptr() for slot in planned)
