"""Programs with jumps run faster once each instruction has run, and give the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops.map import map as over_rows

from compiler import to_edge
from runtime import DebugLevel, EventTracer, Method, Runtime
from runtime.execution.fused import BasicBlock
from runtime.execution.fused.resolved import ResolvingCall
from tests.runtime.samples import assert_close

pytestmark = pytest.mark.slow


class _Branches(torch.nn.Module):
    """One branch has layers that are laid out ahead, the other works in place on a state."""

    count: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.wide = torch.nn.Linear(80, 96)
        self.narrow = torch.nn.Linear(96, 80, bias=False)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, which: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)

        def layers(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
            return self.narrow(torch.relu(self.wide(x))) * count

        def other(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)) - count

        return torch.cond(which, layers, other, (x, self.count.clone())) + 1


class _Rows(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(64, 72)

    def forward(self, rows: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return over_rows(lambda row, y: torch.sigmoid(self.layer(row)) * y, rows, y)


def _method(model: torch.nn.Module, inputs: tuple[Any, ...]) -> Method:
    program = torch.export.export(model.eval(), inputs)
    return Runtime().load_program(to_edge(program).to_executorch().buffer).load_method("forward")


def _waiting(method: Method) -> int:
    found: list[Any] = []
    for call in [call for calls in method._runner.plan.calls for call in calls]:
        found += call.calls if isinstance(call, BasicBlock) else [call]
    return len({id(one) for one in found if isinstance(one, ResolvingCall) and one.is_waiting})


def test_branches_settle_one_by_one_and_give_what_eager_gives() -> None:
    torch.manual_seed(0)
    model, x = _Branches(), torch.randn(4, 80)
    yes, no = torch.tensor(True), torch.tensor(False)
    method = _method(model, (yes, x))
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    waiting: list[int] = []
    rounds = [(yes, x), (yes, x), (yes, -x), (no, x.abs()), (no, -x.abs()), (no, x.abs()), (yes, x)]
    for number, inputs in enumerate([*rounds, *rounds]):
        method.tracer = tracer if number == 9 else None
        with torch.no_grad():
            wanted = [model(*inputs)]
        assert_close(method.execute(inputs), wanted, 2e-6)
        waiting.append(_waiting(method))
    assert waiting[1] > waiting[3] > waiting[4]  # other branches run for the first time
    assert waiting[-1] == 0
    assert max(waiting) >= 4


def test_loop_over_rows_settles_and_stays_within_its_budget() -> None:
    torch.manual_seed(0)
    model = _Rows()
    inputs = (torch.randn(5, 3, 64), torch.randn(72))
    method = _method(model, inputs)
    for seed in range(4):
        torch.manual_seed(seed)
        rows = torch.randn(5, 3, 64)
        with torch.no_grad():
            wanted = [model(rows, inputs[1])]
        assert_close(method.execute((rows, inputs[1])), wanted, 2e-6)
    assert method._runner.plan.fused is None
    assert _waiting(method) == 0
    method.instruction_budget = 10
    with pytest.raises(RuntimeError, match="exceeded 10 instructions"):
        method.execute(inputs)
