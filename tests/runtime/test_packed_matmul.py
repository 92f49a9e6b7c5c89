"""Matmuls with packed weights give the same results as without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler import to_edge
from runtime import EventTracer, Runtime
from runtime.execution.fused.matmul import PackedBudget, PackedMatmuls
from tests.runtime.samples import assert_close

pytestmark = pytest.mark.slow


class _Chain(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(96, 80)
        self.second = torch.nn.Linear(80, 96, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(torch.relu(self.first(x)))) + 1


class _Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(128, 64)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.table(tokens) @ self.table.weight.t()


class _Moving(torch.nn.Module):
    """Weights that are no constant are not laid out ahead."""

    weight: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(80, 80))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.weight.add_(1.0)
        return x @ self.weight


class _Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(80, 64))
        self.bias = torch.nn.Parameter(torch.randn(64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias, x, self.weight, alpha=0.5)


CASES: list[tuple[Callable[[], torch.nn.Module], tuple[int, ...], int]] = [
    (_Chain, (5, 96), 2),
    (_Chain, (2, 3, 96), 2),
    (_Tied, (7,), 1),
    (_Moving, (4, 80), 0),
    (_Scaled, (6, 80), 0),
    (lambda: torch.nn.Linear(8, 8), (3, 8), 0),
]


@pytest.mark.parametrize(("make", "sizes", "count"), CASES)
def test_products_are_those_of_the_plain_kernels(
    make: Callable[[], torch.nn.Module],
    sizes: tuple[int, ...],
    count: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[bool] = []
    plain = PackedMatmuls.at
    monkeypatch.setattr(PackedMatmuls, "at", lambda *given: _noted(found, plain(*given)))
    torch.manual_seed(0)
    data = _program(make(), sizes)
    method = Runtime.get().load_program(data).load_method("forward")
    calls = [[_input(sizes)] for _ in range(4)]
    made = [[one.clone() for one in method.execute(inputs)] for inputs in calls]
    assert sum(found) == count
    traced = Runtime.get().load_program(data, tracer=EventTracer()).load_method("forward")
    for inputs, results in zip(calls, made, strict=True):
        assert_close(results, traced.execute(inputs), 2e-6)


def test_budget_is_kept() -> None:
    budget = PackedBudget(100)
    assert budget.take(60)
    assert not budget.take(60)
    assert budget.left == 40


def _noted(found: list[bool], run: Any) -> Any:
    found.append(run is not None)
    return run


def _input(sizes: tuple[int, ...]) -> torch.Tensor:
    return torch.randint(0, 128, sizes) if len(sizes) == 1 else torch.randn(sizes)


def _program(module: torch.nn.Module, sizes: tuple[int, ...]) -> bytes:
    exported = torch.export.export(module.eval(), (_input(sizes),))
    return bytes(to_edge(exported).to_executorch().buffer)
