"""Scales that no kernel loads are a ValueError with node, value and place, as stock has it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from compiler import to_edge, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackFloatingPointPartitioner, XnnpackPartitioner
from tests.compiler.xnnpack import quantizing as q

pytestmark = pytest.mark.slow
ROW = torch.linspace(-1, 1, 30).reshape(3, 10)
BAD = (math.nan, math.inf, -math.inf, 1e-39, 0.0)
TARGETS = ("quantize_per_tensor.default", "dequantize_per_tensor.default")


def program(target: str, place: int, value: float) -> Any:
    """Return a quantized layer one of whose quantizing nodes has another number."""
    torch.manual_seed(0)
    made = q.quantized(nn.Sequential(nn.Linear(10, 10), nn.ReLU()), (ROW,), q.STATIC)
    node = next(n for n in made.graph.nodes if str(n.target).endswith(f".{target}"))
    if isinstance(node.args[place], torch.fx.Node):
        name = node.args[place].name
        spec = next(s for s in made.graph_signature.input_specs if s.arg.name == name)
        held = made.state_dict if spec.target in made.state_dict else made.constants
        held[spec.target] = held[spec.target].clone()
        held[spec.target][2] = value
        return made
    node.args = (*node.args[:place], value, *node.args[place + 1 :])
    return made


def both(given: Any, partitioner: Any) -> list[Any]:
    """Return the error of each flow, None where it compiles."""
    found: list[Any] = []
    for lower in (
        lambda: to_edge_transform_and_lower(given, partitioner=[partitioner()]),
        lambda: to_edge(given).to_backend(partitioner()),
    ):
        try:
            lower()
        except ValueError as error:
            found.append(str(error))
        else:
            found.append(None)
    return found


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("target", [*TARGETS, "dequantize_per_channel.default"])
def test_broken_scale_ends_the_compile_with_its_node_and_value(target: str, value: float) -> None:
    found = both(program(target, 1, value), XnnpackPartitioner)
    place = "(2,)" if "channel" in target else "(0,)"
    name = f"quantized_decomposed_{target.replace('.', '_')}"
    shown = float(torch.tensor(value))
    for text in found:
        expected = "expected a finite, normal quantization scale"
        assert text == f"{name}: {expected}, found {shown} at index {place}"


@pytest.mark.parametrize("value", [-129, 128])
@pytest.mark.parametrize("target", TARGETS)
def test_zero_point_outside_of_int8_ends_the_compile(target: str, value: int) -> None:
    for text in both(program(target, 2, value), XnnpackPartitioner):
        assert text.endswith(f"expected a zero point from -128 to 127, found {value} at index (0,)")


def test_what_is_not_given_to_the_kernels_may_have_any_scale() -> None:
    given = program(TARGETS[0], 1, 1e-39)
    assert both(given, XnnpackFloatingPointPartitioner) == [None, None]


def test_smallest_normal_scale_is_taken() -> None:
    tiny = float(torch.finfo(torch.float32).smallest_normal)
    assert both(program(TARGETS[0], 1, tiny), XnnpackPartitioner) == [None, None]
