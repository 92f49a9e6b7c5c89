"""Weights in integers are given as real ones to vendors that do not read others."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler import export, to_edge
from compiler.interface.package_forms import for_backend
from compiler.interface.real_weights import give_real_weights
from compiler.quantize.program import quantize_program

quantized: Any = torch.ops.quantized_decomposed
_RANGE = (-127, 127, torch.int8)


class _Net(torch.nn.Module):
    """Convolution and linear layers, which a quantizer gives scales for each channel."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.head = torch.nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the head's result."""
        return self.head(torch.relu(self.conv(x)).flatten(1))


def _static() -> tuple[Any, tuple[torch.Tensor, ...]]:
    inputs = (torch.randn(2, 3, 4, 4),)
    program = quantize_program(export(_Net().eval(), inputs), "static", [inputs])
    return to_edge(program).exported_program(), inputs


def _dequantized(program: Any) -> list[Any]:
    calls = (node for node in program.graph.nodes if "dequantize" in str(node.target))
    return [node.args[0].op for node in calls]


@pytest.mark.parametrize(("backend", "stored"), [("OpenvinoBackend", 0), ("VulkanBackend", 2)])
def test_weights_are_real_where_a_vendor_reads_no_others(backend: str, stored: int) -> None:
    program, inputs = _static()
    before = program.module()(*inputs)
    assert _dequantized(program).count("placeholder") == 2
    others = len(_dequantized(program)) - 2
    assert for_backend(backend, program) is program
    assert _dequantized(program).count("placeholder") == stored
    assert len(_dequantized(program)) == others + stored  # activations stay quantized
    assert torch.equal(program.module()(*inputs), before)


class _Twice(torch.nn.Module):
    """Two products with one stored weight, whose scales may differ."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale
        stored = torch.arange(-8, 8, dtype=torch.int8).reshape(4, 4)
        self.register_buffer("stored", stored, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum of both."""
        first = quantized.dequantize_per_tensor(self.stored, 0.5, 1, *_RANGE)
        second = quantized.dequantize_per_tensor(self.stored, self.scale, 1, *_RANGE)
        return x @ first + x.sin() @ second


@pytest.mark.parametrize(("scale", "count"), [(0.5, 1), (0.25, 0)])
def test_weight_of_several_readers_is_real_where_they_read_the_same(
    scale: float, count: int
) -> None:
    inputs = (torch.randn(3, 4),)
    program = torch.export.export(_Twice(scale), inputs, strict=True)
    before = program.module()(*inputs)
    assert give_real_weights(program) == count
    assert _dequantized(program).count("placeholder") == (0 if count else 2)
    assert torch.equal(program.module()(*inputs), before)


class _Counting(torch.nn.Module):
    """A state in integers, which each call writes."""

    stored: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("stored", torch.zeros(4, dtype=torch.int8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a product with the state."""
        real = quantized.dequantize_per_tensor(self.stored, 0.5, 1, *_RANGE)
        self.stored.add_(1)
        return x * real


def test_state_is_no_weight() -> None:
    program = to_edge(export(_Counting(), (torch.ones(4),))).exported_program()
    assert program.graph_signature.buffers_to_mutate
    assert _dequantized(program) == ["placeholder"]
    assert give_real_weights(program) == 0
