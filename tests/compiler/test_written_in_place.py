"""Operators that write in place, inserted into edge programs by passes of users."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import export
from torch.export.graph_signature import OutputKind

from compiler import ops, to_edge
from compiler.errors import UnsupportedError
from compiler.passes.in_place import without_writes
from compiler.passes.pipeline import completed
from runtime import Runtime
from tests.compiler.stock import Stock

aten = ops.edge.aten


class Stateful(torch.nn.Module):
    """Reads a buffer, a weight and a value that is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.tensor([1.0, 2.0, 3.0]))
        self.weight = torch.nn.Parameter(torch.tensor([0.5, 1.5, 2.5]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sum_ = x + self.weight
        return sum_ * self.state - sum_


def _written(base: str, target: Any, *args: Any) -> Any:
    """Return a manager whose graph writes to a node before the product is computed."""
    manager = to_edge(export(Stateful(), (torch.zeros(3),)))
    graph = manager.exported_program().graph_module.graph
    nodes = {node.name: node for node in graph.nodes}
    product = nodes["aten_mul_tensor"]
    with graph.inserting_before(product):
        graph.call_function(target, (nodes[base], *args))
    return manager


def _eager(base: str, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    sum_ = x + torch.tensor([0.5, 1.5, 2.5])
    if base == "aten_add_tensor":
        sum_.mul_(2)
    elif base == "b_state":
        state.mul_(2)
    else:
        x.mul_(2)
    return sum_ * state - sum_


@pytest.mark.interop
@pytest.mark.parametrize("base", ["aten_add_tensor", "b_state", "x"])
def test_later_reads_see_what_was_written(base: str, stock: Stock) -> None:
    buffer = _written(base, aten.mul_.Scalar, 2.0).to_executorch().buffer
    method = Runtime().load_program(buffer).load_method("forward")
    inputs = [torch.tensor([1.0, 4.0, -2.0]), torch.tensor([0.0, 1.0, 2.0])]
    theirs = stock.run(buffer, [("forward", (x.clone(),)) for x in inputs])
    state = torch.tensor([1.0, 2.0, 3.0])
    for x, found in zip(inputs, theirs, strict=True):
        given = x.clone()
        wanted = _eager(base, x, state)  # the state is kept from run to run
        torch.testing.assert_close(method.execute([given])[0], wanted)
        torch.testing.assert_close(found[0], wanted)


def test_index_put_takes_the_memory_of_what_it_writes_to() -> None:
    manager = to_edge(export(Stateful(), (torch.zeros(3),)))
    graph = manager.exported_program().graph_module.graph
    nodes = {node.name: node for node in graph.nodes}
    where = nodes["p_weight"]
    with graph.inserting_before(nodes["aten_mul_tensor"]):
        every = graph.call_function(aten.gt.Scalar, (where, 1.0))
        value = graph.call_function(aten.full.default, ([], 7.0))
        put = (nodes["aten_add_tensor"], [every], value)
        graph.call_function(aten.index_put_.default, put)
    made = completed(manager.exported_program())
    x = torch.tensor([1.0, 2.0, 3.0])
    sum_ = torch.tensor([1.5, 7.0, 7.0])
    torch.testing.assert_close(made.module()(x), sum_ * torch.tensor([1.0, 2, 3]) - sum_)
    (put,) = [n for n in made.graph.nodes if n.target is aten.index_put.default]
    assert {user.name for user in put.users} == {"aten_mul_tensor", "aten_sub_tensor"}
    assert without_writes(made) is made


def test_written_buffer_is_a_result_of_the_program() -> None:
    made = completed(_written("b_state", aten.mul_.Scalar, 2.0).exported_program())
    first = made.graph_signature.output_specs[0]
    assert (first.kind, first.target) == (OutputKind.BUFFER_MUTATION, "state")


def test_weight_cannot_be_written() -> None:
    with pytest.raises(UnsupportedError, match="writes into a weight or constant"):
        _written("p_weight", aten.mul_.Scalar, 2.0).to_executorch()
