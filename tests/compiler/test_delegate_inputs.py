"""Inputs of delegates whose names are builtins of Python, which torch.fx renames."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler import export, to_edge_transform_and_lower
from compiler.delegate.lowered_module import LoweredBackendModule
from compiler.partition.named_partitioners import create_partitioner, parse_partitioner
from runtime import Runtime

NAMES = ("input", "id", "sum", "type", "max", "input_1", "x")


def _net(first: str, second: str) -> torch.nn.Module:
    names: dict[str, Any] = {"torch": torch}
    code = f"class Net(torch.nn.Module):\n def forward(self, {first}, {second}):\n"
    exec(f"{code}  return torch.sigmoid({first}) * 2 - {second}", names)
    return names["Net"]()


@pytest.mark.parametrize("second", NAMES)
@pytest.mark.parametrize("first", NAMES)
def test_names_of_inputs_are_kept_when_a_pass_copies_the_graph(first: str, second: str) -> None:
    if first == second:
        pytest.skip("Python has no two arguments of one name")
    given = torch.randn(2, 3), torch.randn(2, 3)
    net = _net(first, second)
    edge = to_edge_transform_and_lower(
        export(net, given), partitioner=[create_partitioner(parse_partitioner("xnnpack"))]
    )
    module = edge.exported_program().graph_module
    (lowered,) = [one for one in module.children() if isinstance(one, LoweredBackendModule)]
    inside = lowered.original_module
    inputs = [node for node in inside.graph.nodes if node.op == "placeholder"]
    assert len({node.name for node in inside.graph.nodes}) == len(inside.graph.nodes)
    assert {*inside.graph_signature.user_inputs} <= {node.name for node in inputs}
    copied = torch.fx.Graph()
    for node in inputs:
        other = copied.placeholder(node.target)  # as the passes of a vendor do
        assert other.name == node.name == node.target
    method = Runtime().load_program(edge.to_executorch().buffer).load_method("forward")
    torch.testing.assert_close(method.execute(given)[0], net(*given))
