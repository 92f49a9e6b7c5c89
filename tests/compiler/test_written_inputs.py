"""Modules that write to their inputs have outputs of their own; the write reaches the caller."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler import ExecutorchBackendConfig, MemoryPlanningPass, to_edge
from runtime import Runtime
from tests.compiler.programs import Apply
from tests.compiler.stock import Stock


def _two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.mul_(2)
    y.sub_(x)
    return x + y


def _view(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.view(-1)[1:3].mul_(3)
    return x.sum() + y


def _before_and_behind(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    early = x * 2
    x.add_(1)
    return early + x + y


def _in_branches(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.copy_(torch.cond(y.sum() > 0, lambda a: a * 2, lambda a: a - 1, (x,)))
    return x + y


CASES: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "read_later": lambda x, y: (x.add_(y), y * 2)[1],
    "returned": lambda x, y: x.add_(y),
    "returned_twice": lambda x, y: (x.add_(y), x * 1, y),
    "two": _two,
    "view": _view,
    "before_and_behind": _before_and_behind,
    "in_branches": _in_branches,
}


@pytest.mark.interop
@pytest.mark.parametrize("name", CASES)
def test_outputs_are_the_module_s_and_inputs_are_written(name: str, stock: Stock) -> None:
    module = Apply(CASES[name])
    calls = [(torch.randn(2, 3), torch.randn(2, 3)) for _ in range(2)]
    for planned in (True, False):  # a planned input is a copy of the caller's
        memory = MemoryPlanningPass(alloc_graph_input=planned)
        exported = torch.export.export(module, copy.deepcopy(calls[0]))
        config = ExecutorchBackendConfig(memory_planning_pass=memory)
        made = to_edge(exported).to_executorch(config)
        method = Runtime().load_program(made.buffer).load_method("forward")
        theirs = stock.run(made.buffer, [("forward", copy.deepcopy(given)) for given in calls])
        for given, found in zip(calls, theirs, strict=True):
            own, eager = copy.deepcopy(given), copy.deepcopy(given)
            wanted = module(*eager)
            wanted = list(wanted) if isinstance(wanted, tuple) else [wanted]
            torch.testing.assert_close([one.clone() for one in method.execute(list(own))], wanted)
            torch.testing.assert_close(found, wanted)
            torch.testing.assert_close(own, given if planned else eager)
