"""Pairs of dequantize and quantize around nothing are not in edge programs; others stay."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers the operators
from torch.export import export

from compiler import to_edge

pytestmark = pytest.mark.slow

_q: Any = torch.ops.quantized_decomposed
INT8 = (-128, 127, torch.int8)


class Pair(torch.nn.Module):
    """Dequantize, an operator, quantize."""

    def __init__(self, before: tuple[Any, ...], after: tuple[Any, ...], between: Any) -> None:
        super().__init__()
        self.before, self.after, self.between = before, after, between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        floats = self.between(_q.dequantize_per_tensor.default(x, *self.before))
        return _q.quantize_per_tensor.default(floats, *self.after)


class Sums(torch.nn.Module):
    """Two sums; between them a slice that takes all of the first."""

    def __init__(self, low: int) -> None:
        super().__init__()
        self.low = low

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parameters = (0.05, 3, self.low, 127, torch.int8)
        first = _q.quantize_per_tensor.default(x + x, *parameters)
        whole = _q.dequantize_per_tensor.default(first, *parameters)[:]
        again = _q.quantize_per_tensor.default(whole, *parameters)
        return x + _q.dequantize_per_tensor.default(again, *parameters)


def _whole_slice(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.slice_copy.Tensor(x, 0, 0)


def _remaining(edge: Any) -> list[str]:
    names = [str(node.target) for node in edge.exported_program().graph.nodes]
    return [name for name in names if "quantize_per" in name or "slice" in name]


BETWEEN = [lambda x: x, _whole_slice, lambda x: x[:], lambda x: x.to(torch.float32)]


@pytest.mark.parametrize(
    ("low", "high", "dtype"), [INT8, (0, 255, torch.uint8), (-32768, 32767, torch.int16)]
)
def test_pair_with_equal_parameters_is_what_it_reads(
    low: int, high: int, dtype: torch.dtype
) -> None:
    x = torch.arange(low, high + 1, max(1, (high - low) // 255)).to(dtype)
    for between in BETWEEN:
        for scale, zero in ((1.0, 0), (0.037, low), (1.2e-38, high), (9e29, 1)):
            module = Pair((scale, zero, low, high, dtype), (scale, zero, low, high, dtype), between)
            edge = to_edge(export(module, (x,)))
            assert _remaining(edge) == []
            assert torch.equal(edge.exported_program().module()(x), module(x))


@pytest.mark.parametrize(
    ("before", "after", "dtype"),
    [
        ((1.0, 0, -128, 127), (1.0, 0, -127, 127), torch.int8),
        ((1.0, 0, -128, 127), (1.0, 1, -128, 127), torch.int8),
        ((1.0, 0, -128, 127), (0.5, 0, -128, 127), torch.int8),
        ((1.0, 0, -127, 127), (1.0, 0, -127, 127), torch.int8),  # -128 is clamped
        ((1e-39, 0, -128, 127), (1e-39, 0, -128, 127), torch.int8),  # subnormal
        ((1.0, 0, -(2**31), 2**31 - 1), (1.0, 0, -(2**31), 2**31 - 1), torch.int32),  # rounds
    ],
)
def test_pair_that_changes_a_number_stays(
    before: tuple[Any, ...], after: tuple[Any, ...], dtype: torch.dtype
) -> None:
    x = torch.tensor([-128, -127, 0, 5, 127]).to(dtype)
    module = Pair((*before, dtype), (*after, dtype), _whole_slice)
    edge = to_edge(export(module, (x,)))
    assert len(_remaining(edge)) == 2
    assert torch.equal(edge.exported_program().module()(x), module(x))


@pytest.mark.parametrize("low", [-128, -127])
def test_integers_that_were_quantized_to_the_same_range_need_no_second_time(low: int) -> None:
    x = torch.linspace(-9.0, 9.0, 64)
    edge = to_edge(export(Sums(low), (x,)))
    assert [name.split(".")[1] for name in _remaining(edge)] == [
        "quantize_per_tensor",
        "dequantize_per_tensor",
    ]
    assert torch.equal(edge.exported_program().module()(x), Sums(low)(x))
