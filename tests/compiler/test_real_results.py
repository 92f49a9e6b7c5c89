"""Stored integers stay inside partitions of a backend that returns reals."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from torch import nn

from compiler import DelegationSpec
from compiler.partition.real_results import leave_once
from compiler.partition.run_partitioner import answer_of
from compiler.partition.tags import tag_of
from tests.compiler.delegation import ByNode, edge

pytestmark = pytest.mark.slow
_FACTS = (0.1, 0, -128, 127, torch.int8)
_quantized = torch.ops.quantized_decomposed
_FIRST, _SECOND = "aten_sin_default", "aten_cos_default"


class Residual(nn.Module):
    """A quantized value that two operators read, each through a dequantize of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        stored = _quantized.quantize_per_tensor.default(torch.sin(x), *_FACTS)
        near, far = (_quantized.dequantize_per_tensor.default(stored, *_FACTS) for _ in range(2))
        return torch.cos(far) + torch.relu(near)


def _tags(backend: str, outside: str = "", foreign: bool = False) -> dict[str, str | None]:
    """Return the tags of Residual, whose second dequantize is in the second partition."""

    def choose(node: torch.fx.Node) -> str | None:
        second = node.name == _SECOND or node.name.endswith("dequantize_per_tensor_default_1")
        return None if outside and outside in node.name else "b" if second else "a"

    other = DelegationSpec("Other" if foreign else backend, [])
    partitioner = ByNode(choose, a=DelegationSpec(backend, []), b=other)
    program = edge(Residual(), torch.randn(2, 3)).exported_program()
    result = answer_of(partitioner, program)
    nodes = result.tagged_exported_program.graph.nodes
    tags = {node.name: tag_of(node) for node in nodes if node.op == "call_function"}
    assert set(result.partition_tags) == {tag for tag in tags.values() if tag}
    return {name.removeprefix("quantized_decomposed_"): tag for name, tag in tags.items()}


def test_a_dequantize_goes_to_its_quantize() -> None:
    found = _tags("OpenvinoBackend")
    assert found["dequantize_per_tensor_default_1"] == "a"
    assert (found["quantize_per_tensor_default"], found[_SECOND]) == ("a", "b")


def test_a_partition_of_a_dequantize_alone_is_gone() -> None:
    found = _tags("OpenvinoBackend", outside=_SECOND)
    assert "b" not in found.values()


@pytest.mark.parametrize(
    "how", [{"outside": "dequantize_per_tensor_default_1"}, {"foreign": True}], ids=str
)
def test_a_quantize_that_others_read_stays_out(how: dict[str, object]) -> None:
    found = _tags("OpenvinoBackend", **how)  # pyright: ignore[reportArgumentType]
    assert found["quantize_per_tensor_default"] is None
    assert found["dequantize_per_tensor_default"] == found[_FIRST] == "a"


def test_partitions_beside_control_flow_are_kept() -> None:
    def either(x: torch.Tensor) -> torch.Tensor:
        chosen = torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))
        return Residual()(chosen)

    partitioner = ByNode(
        lambda node: "a" if node.name == _FIRST else None, a=DelegationSpec("OpenvinoBackend", [])
    )
    program = edge(either, torch.randn(2, 3)).exported_program()
    assert set(answer_of(partitioner, program).partition_tags) == {"a"}


def test_other_backends_hand_on_integers() -> None:
    found = _tags("VulkanBackend")
    assert found["quantize_per_tensor_default"] == "a"
    assert found["dequantize_per_tensor_default_1"] == "b"


class Twice(nn.Module):
    """A quantized value that two operators read elsewhere, each through a dequantize of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        stored = _quantized.quantize_per_tensor.default(torch.sin(x), *_FACTS)
        near, far = (_quantized.dequantize_per_tensor.default(stored, *_FACTS) for _ in range(2))
        return torch.cos(far) + torch.relu(near)


def test_equal_dequantizes_leave_a_partition_as_one() -> None:
    apart = {"aten_cos_default": "b", "aten_relu_default": "c"}
    partitioner = ByNode(
        lambda node: apart.get(node.name, "a" if "add" not in node.name else "c"),
        **{tag: DelegationSpec("OpenvinoBackend", []) for tag in "abc"},
    )
    x = torch.randn(2, 3)
    program = edge(Twice(), x).exported_program()
    result = answer_of(partitioner, program)
    leave_once(program.graph_module, result.partition_tags)
    nodes = {node.name: node for node in program.graph.nodes}
    read = {nodes[name].all_input_nodes[0].name for name in apart}
    assert len(read) == 1
    assert {tag_of(nodes[name]) for name in read} == {"a"}
    assert sum("dequantize" in name for name in nodes) == 1
    torch.testing.assert_close(program.module()(x), Twice()(x))
