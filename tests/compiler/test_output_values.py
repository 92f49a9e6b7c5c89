"""The output node has the values of the results wherever a partitioner or a pass looks at it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from compiler import export, to_backend, to_edge, to_edge_transform_and_lower
from compiler.backends.demo import BackendWithCompilerDemo
from compiler.interface.partitioner import DelegationSpec, Partitioner, PartitionResult


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: torch.Tensor
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> Any:
        self.seen.add_(x.sum(0))
        high = torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v * 2, (x,))
        return {"sine": torch.sin(x), "next": places + 1, "none": None, "size": 7}, [high]


class Reads(Partitioner):
    """Reads the value of every node, and takes sines."""

    def __init__(self) -> None:
        super().__init__()
        self.outputs: list[Any] = []

    def partition(self, exported_program: Any) -> PartitionResult:
        modules = exported_program.graph_module.modules()
        for module in [m for m in modules if isinstance(m, torch.fx.GraphModule)]:
            for node in module.graph.nodes:
                if node.op != "get_attr":
                    value = node.meta["val"]
                    if node.op == "output":
                        self.outputs.append((node.args[0], value))
                if "sin.default" in str(node.target):
                    node.meta["delegation_tag"] = "tag0"
        spec = DelegationSpec(BackendWithCompilerDemo.__name__, [])
        return PartitionResult(exported_program, {"tag0": spec})


def is_value_of(node: Any, value: Any) -> bool:
    if isinstance(node, (tuple, list)):
        pairs = zip(node, value, strict=True)
        return type(node) is type(value) and all(is_value_of(one, found) for one, found in pairs)
    if not isinstance(node, torch.fx.Node):
        return node == value
    made = node.meta["val"]
    return (made.dtype, str(made.shape)) == (value.dtype, str(value.shape))


@pytest.mark.parametrize("dynamic", [False, True])
def test_values_of_results_are_at_the_output_in_every_flow(dynamic: bool) -> None:
    given = (torch.randn(2, 3), torch.ones(4, dtype=torch.int64))
    shapes = ({0: Dim("rows", min=2, max=9)} if dynamic else None, None)
    program = export(Net().eval(), given, dynamic_shapes=shapes)
    reads = Reads()
    managers = [
        to_edge_transform_and_lower(program, partitioner=[reads, reads]),
        to_edge(program).to_backend(reads),
        to_edge(program).to_backend({"forward": reads}).to_backend(reads),
    ]
    programs = [manager.exported_program() for manager in managers]
    programs.append(to_backend(to_edge(program).exported_program(), reads))
    programs.append(to_edge(program).transform([]).exported_program())
    assert len(reads.outputs) >= 3 * 6
    assert all(is_value_of(node, value) for node, value in reads.outputs)
    for each in programs:
        last = list(each.graph.nodes)[-1]
        assert is_value_of(last.args[0], last.meta["val"])
        assert not dynamic or "s" in str(last.meta["val"][1].shape)
