"""Weights that are transposed, or views with gaps or repeats in memory, are stored contiguous."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compiler import ExecutorchBackendConfig, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import Runtime
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow

X = torch.linspace(-1, 1, 12).view(2, 6)
VIEWS: dict[str, Callable[[], torch.Tensor]] = {
    "every second": lambda: torch.linspace(1, 2, 60).view(5, 12)[:, ::2],
    "columns": lambda: torch.linspace(1, 2, 60).view(5, 12)[:, 3:9],
    "transposed columns": lambda: torch.linspace(1, 2, 60).view(12, 5)[2:8, ::1][:, :5].t(),
    "transposed": lambda: torch.linspace(1, 2, 30).view(6, 5).t(),
    "one row repeated": lambda: torch.linspace(1, 2, 6).expand(5, 6),
    "overlapping": lambda: torch.linspace(1, 2, 10).unfold(0, 6, 1),
    "one element": lambda: torch.tensor(0.5).expand(5, 6),
}


class Weighted(nn.Module):
    """A linear layer of a weight and of a buffer, which may be written."""

    buffer: torch.Tensor

    def __init__(self, view: torch.Tensor, *, writes: bool) -> None:
        super().__init__()
        self.weight, self.writes = nn.Parameter(view), writes
        self.register_buffer("buffer", view)

    def forward(self, x: torch.Tensor) -> Any:
        if self.writes:
            self.buffer.copy_(self.buffer * 2)
        return nn.functional.linear(x, self.weight), x @ self.buffer.t(), self.buffer + x[0]


def _case(name: str, *, writes: bool = False) -> tuple[torch.export.ExportedProgram, list[Any]]:
    net = Weighted(VIEWS[name](), writes=False)
    program = torch.export.export(Weighted(VIEWS[name](), writes=writes), (X,))
    if not writes:
        return program, list(net(X))
    twice = VIEWS[name]() * 2
    return program, [net(X)[0], X @ twice.t(), twice + X[0]]


def _programs(name: str, *, writes: bool) -> list[tuple[bytes, list[Any]]]:
    made: list[tuple[bytes, list[Any]]] = []
    for partitioner in ([], [XnnpackPartitioner()]):
        program, wanted = _case(name, writes=writes)
        edge = to_edge_transform_and_lower(program, partitioner=partitioner, generate_etrecord=True)
        made.append((edge.to_executorch().buffer, wanted))
    return made


@pytest.mark.parametrize(
    ("name", "writes"),
    [
        *((name, False) for name in VIEWS),
        *((name, True) for name in list(VIEWS)[:4]),  # torch writes no elements that share memory
    ],
)
def test_weights_with_gaps_or_repeats_are_stored_contiguous(name: str, writes: bool) -> None:
    for buffer, wanted in _programs(name, writes=writes):
        found = Runtime.get().load_program(buffer).load_method("forward").execute([X])
        for one, right in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, right)


def test_a_layer_of_a_transposed_weight_is_delegated_as_it_is() -> None:
    net = nn.Linear(6, 5)
    net.weight = nn.Parameter(torch.linspace(1, 2, 30).view(6, 5).t())
    edge = to_edge_transform_and_lower(
        torch.export.export(net, (X,)), partitioner=[XnnpackPartitioner()]
    )
    calls = [node for node in edge.exported_program().graph.nodes if node.op == "call_function"]
    assert [call.name for call in calls] == ["executorch_call_delegate", "getitem"]
    ((verdict,),) = edge.verdicts.values()
    assert verdict.operator == "aten.linear.default"


def test_weights_with_gaps_go_into_files_beside_the_program(tmp_path: Path) -> None:
    program, wanted = _case("every second")
    config = ExecutorchBackendConfig(external_constants=True)
    made = to_edge_transform_and_lower(program).to_executorch(config)
    made.write_tensor_data_to_file(tmp_path)
    loaded = Runtime.get().load_program(made.buffer, data_path=[*tmp_path.iterdir()])
    for one, right in zip(loaded.load_method("forward").execute([X]), wanted, strict=True):
        torch.testing.assert_close(one, right)


@pytest.mark.slow
@pytest.mark.interop
def test_stock_runtime_runs_them_alike(stock: Stock) -> None:
    programs = [one for name in VIEWS for one in _programs(name, writes=False)]
    found = stock.run_each([(buffer, (X,)) for buffer, _ in programs])
    for values, (_, wanted) in zip(found, programs, strict=True):
        assert not isinstance(values, str), values
        for one, right in zip(values, wanted, strict=True):
            torch.testing.assert_close(one, right)
