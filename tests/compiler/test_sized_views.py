"""Views of sizes that may change share memory: instructions, arenas, numbers on both runtimes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from compiler import ExecutorchBackendConfig, MemoryPlanningPass, to_edge
from runtime import Runtime
from schema import program as pte
from tests.compiler.compare import assert_equal
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow

ROWS, BATCH = torch.export.Dim("rows", min=2, max=12), torch.export.Dim("batch", min=1, max=4)
VIEW = "executorch_prim::et_view.default"


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.into, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows, _ = x.shape
        q, k, v = self.into(x).view(batch, rows, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = (q @ k.transpose(-1, -2)).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, rows, 8))


class Called(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def _read_later(x: torch.Tensor) -> Any:
    """Keep a view while its memory would be free for others."""
    made = x * 2
    shown = made.view(-1)
    other = (x + 1).sin().cos()
    return other.view(-1, 8) * 3, shown + 1


def _one_after_the_other(x: torch.Tensor) -> Any:
    batch, rows, _ = x.shape
    made = x.relu().view(batch * rows, 8).unsqueeze(0).squeeze(0)
    return (made.view(batch * rows, 2, 4) * 2).view(batch, rows, 8) + 1


def _left_as_they_are(x: torch.Tensor) -> Any:
    batch, rows, _ = x.shape
    return x.view(batch * rows, 8), (x * 2).view(-1)


def _looped(x: torch.Tensor) -> Any:
    def body(count: torch.Tensor, y: torch.Tensor) -> Any:
        return count + 1, (y.view(-1) * 2).view(y.shape) + 1

    return torch.while_loop(
        lambda count, _: count < 3, body, (torch.zeros((), dtype=torch.int64), x)
    )


CASES: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "attention": (Attention, 8),
    "read_later": (lambda: Called(_read_later), 2),
    "one_after_the_other": (lambda: Called(_one_after_the_other), 5),
    "left_as_they_are": (lambda: Called(_left_as_they_are), 0),
    "looped": (lambda: Called(_looped), 1),
}
CALLS = [(1, 2), (4, 12), (2, 7), (4, 2), (1, 12)]


def _exported(name: str) -> tuple[nn.Module, Any]:
    module = CASES[name][0]().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        shapes = ({0: BATCH, 1: ROWS},)
        return module, torch.export.export(module, (torch.ones(2, 6, 8),), dynamic_shapes=shapes)


def _names(buffer: bytes) -> list[str]:
    plan = pte.decode(buffer).table.execution_plan[0]
    calls = [one.instr_args for one in plan.chains[0].instructions]
    found = [plan.operators[c.op_index] for c in calls if isinstance(c, pte.model.KernelCall)]
    return [one.full_name for one in found]


@pytest.mark.interop
@pytest.mark.parametrize("name", CASES)
def test_views_share_memory_and_numbers_are_right(name: str, stock: Stock) -> None:
    module, program = _exported(name)
    made = to_edge(program).to_executorch()
    assert _names(made.buffer).count(VIEW) >= CASES[name][1]
    torch.manual_seed(1)
    inputs = [torch.randn(batch, rows, 8) for batch, rows in CALLS]
    wanted = [torch.utils._pytree.tree_leaves(module(one)) for one in inputs]
    found = stock.run(made.buffer, [("forward", [one]) for one in inputs])
    assert_equal(found, wanted, 1e-4)
    method = Runtime().load_program(made.buffer).load_method("forward")
    ours = [[v.clone() for v in method.execute([copy.deepcopy(one)])] for one in inputs]
    assert_equal(ours, wanted, 1e-4)


@pytest.mark.interop
@pytest.mark.parametrize("name", [name for name in CASES if name != "looped"])
def test_arena_is_no_larger_than_that_of_the_stock_compiler(name: str, stock: Stock) -> None:
    _, program = _exported(name)
    plan = to_edge(program).to_executorch().memory_plans["forward"]
    assert plan.nbytes <= stock.about("arena", program)["forward"]


def test_copies_stay_where_they_were_asked_for_or_memory_is_the_callers() -> None:
    _, program = _exported("attention")
    copying = ExecutorchBackendConfig(remove_view_copy=False)
    assert VIEW not in _names(to_edge(program).to_executorch(copying).buffer)
    lent = ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False))
    assert VIEW not in _names(_of_input(lent))
    assert VIEW in _names(_of_input(ExecutorchBackendConfig()))


def _of_input(config: ExecutorchBackendConfig) -> bytes:
    module = Called(lambda x: x.view(-1) * 2)
    shapes = ({0: BATCH, 1: ROWS},)
    program = torch.export.export(module, (torch.ones(2, 6, 8),), dynamic_shapes=shapes)
    return to_edge(program).to_executorch(config).buffer
