"""Linear layers whose weight is a vector, or whose bias is not one value a column."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.quantize.weights import WeightModes, quantize_weights
from tests.compiler.stock import Stock
from tests.compiler.xnnpack.test_dynamic_sizes import assert_runs

pytestmark = pytest.mark.slow
INPUTS, COLUMNS, ROWS = 64, 24, 3
SUMMANDS = {  # all of them torch adds to the product
    "number": (),
    "one": (1,),
    "row": (1, COLUMNS),
    "column": (ROWS, 1),
    "whole": (ROWS, COLUMNS),
}


class Layer(nn.Module):
    """One layer between operators that a partition takes too."""

    def __init__(self, weight: tuple[int, ...], bias: tuple[int, ...] | None, scale: float) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.weight = nn.Parameter(torch.randn(weight))
        self.bias = None if bias is None else nn.Parameter(torch.randn(bias))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a layer of x; a scale other than 1 makes the bias a computed one."""
        bias = self.bias
        if bias is not None and self.scale != 1:
            bias = bias * self.scale
        return functional.linear(x * 1.5, self.weight, bias).relu()


MODULES: dict[str, tuple[Layer, tuple[int, ...]]] = {
    "vector": (Layer((INPUTS,), None, 1), (ROWS, INPUTS)),
    "vector of a batch": (Layer((INPUTS,), None, 1), (2, ROWS, INPUTS)),
    "vector by vector": (Layer((INPUTS,), None, 1), (INPUTS,)),
    "one in a batch": (Layer((COLUMNS, INPUTS), (1,), 1), (2, ROWS, INPUTS)),
    "computed": (Layer((COLUMNS, INPUTS), (COLUMNS,), 2), (ROWS, INPUTS)),
    "computed number": (Layer((COLUMNS, INPUTS), (), 2), (ROWS, INPUTS)),
    **{
        name: (Layer((COLUMNS, INPUTS), sizes, 1), (ROWS, INPUTS))
        for name, sizes in SUMMANDS.items()
    },
}


@pytest.mark.interop
@pytest.mark.parametrize("delegated", [False, True])
@pytest.mark.parametrize("word", ["none", "int8"])
@pytest.mark.parametrize("name", MODULES)
def test_values_are_those_of_eager(name: str, word: str, delegated: bool, stock: Stock) -> None:
    module, sizes = MODULES[name]
    x = torch.randn(sizes)
    program: Any = torch.export.export(module.eval(), (x,))
    if word != "none":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torchao's, about itself
            program = quantize_weights(program, WeightModes(word))
    partitioners = [XnnpackPartitioner()] if delegated else None
    manager = to_edge_transform_and_lower(program, partitioner=partitioners)
    assert_runs(manager, program.module(), [(x,)], stock, 2e-5)
