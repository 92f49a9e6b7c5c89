"""Weights that NNCF folds to integers, read by several layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers the operators
from torch import nn

from compiler.backends.vendors.nncf_folding import keep_real
from compiler.backends.vendors.openvino import give_real_weights


class Folded(nn.Module):
    """A weight as NNCF leaves it: as integers, which one reader scales and others do not."""

    def __init__(self, readers: int, scaled: int, per_channel: bool) -> None:
        super().__init__()
        weight = torch.randint(-127, 127, (4, 4), dtype=torch.int8)
        self.register_buffer("compressed_weight_updated_constant0", weight)
        if per_channel:
            self.register_buffer("scale_updated_constant0", torch.rand(4, 1) / 100)
            self.register_buffer("zero_point_updated_constant0", torch.zeros(4, 1))
        self.readers, self.scaled, self.per_channel = readers, scaled, per_channel

    def real(self) -> torch.Tensor:
        stored: Any = self.compressed_weight_updated_constant0
        if self.per_channel:
            return stored * self.scale_updated_constant0 - self.zero_point_updated_constant0
        return torch.ops.aten.sub.Tensor(torch.ops.aten.mul.Tensor(stored, 0.01), 0.0)

    def left(self) -> torch.fx.GraphModule:
        graph = torch.fx.Graph()
        value = graph.placeholder("x")
        weight = graph.get_attr("compressed_weight_updated_constant0")
        for number in range(self.readers):
            read = weight
            if number == self.scaled:
                scale: Any = graph.get_attr("scale_updated_constant0") if self.per_channel else 0.01
                scaled = graph.call_function(torch.ops.aten.mul.Tensor, (weight, scale))
                zero: Any = 0.0
                if self.per_channel:
                    zero = graph.get_attr("zero_point_updated_constant0")
                read = graph.call_function(torch.ops.aten.sub.Tensor, (scaled, zero))
            value = graph.call_function(torch.ops.aten.linear.default, (value, read))
            value = graph.call_function(torch.ops.aten.relu.default, (value,))
        graph.output(value)
        return torch.fx.GraphModule(self, graph)


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(("readers", "scaled"), [(1, 0), (2, 0), (2, 1), (5, 2), (5, 4)])
def test_readers_of_a_weight_that_nncf_folded_read_its_real_value(
    readers: int, scaled: int, per_channel: bool
) -> None:
    """A layer that is called several times is quantized at one call; the weight is for all."""
    torch.manual_seed(0)
    folded = Folded(readers, scaled, per_channel)
    module, x = folded.left(), torch.randn(2, 4)
    give_real_weights(module)
    module.graph.lint()
    wanted = x
    for _ in range(readers):
        wanted = torch.relu(nn.functional.linear(wanted, folded.real()))
    assert torch.equal(module(x), wanted)
    computed = [node for node in module.graph.nodes if node.target is torch.ops.aten.sub.Tensor]
    assert [len(node.users) for node in computed] == [1]  # which the others do not share


@pytest.mark.parametrize("per_channel", [True, False])
def test_weight_without_a_computed_real_value_stays(per_channel: bool) -> None:
    module = Folded(3, -1, per_channel).left()
    before = str(module.graph)
    give_real_weights(module)
    assert str(module.graph) == before


class Rounded(nn.Module):
    """Weights as NNCF rounds them, before it folds them."""

    def __init__(self, low: int, high: int, zero: int, per_channel: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 0.5, -0.25, 0.75]) * (low < 0) + (low == 0))
        self.register_buffer("scales", torch.full((4,), 1 / 255))
        self.register_buffer("zeros", torch.full((4,), zero))
        self.low, self.high, self.zero, self.per_channel = low, high, zero, per_channel

    def graph_module(self) -> torch.fx.GraphModule:
        graph, home = torch.fx.Graph(), torch.ops.quantized_decomposed
        value = graph.placeholder("x")
        weight = graph.get_attr("weight")
        dtype = torch.int8 if self.low < 0 else torch.uint8
        more: tuple[Any, ...] = (1 / 255, self.zero, self.low, self.high, dtype)
        pair: Any = home.quantize_per_tensor, home.dequantize_per_tensor
        if self.per_channel:
            scales, zeros = graph.get_attr("scales"), graph.get_attr("zeros")
            more = (scales, zeros, 0, self.low, self.high, dtype)
            pair = home.quantize_per_channel, home.dequantize_per_channel
        rounded = graph.call_function(pair[0].default, (weight, *more))
        real = graph.call_function(pair[1].default, (rounded, *more))
        graph.output(graph.call_function(torch.ops.aten.mul.Tensor, (value, real)))
        return torch.fx.GraphModule(self, graph)


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(
    ("low", "high", "zero", "kept"),
    [(0, 255, 0, True), (-128, 127, 0, False), (-128, 127, 3, True), (-127, 127, 0, True)],
)
def test_weights_that_nncf_would_fold_to_other_integers_stay_real(
    low: int, high: int, zero: int, kept: bool, per_channel: bool
) -> None:
    module, x = Rounded(low, high, zero, per_channel).graph_module(), torch.randn(2, 4)
    wanted, before = module(x), str(module.graph)
    keep_real(module)
    module.graph.lint()
    assert torch.equal(module(x), wanted)
    assert (str(module.graph) == before) is not kept
    assert ("quantize_per" in str(module.graph)) is not kept
