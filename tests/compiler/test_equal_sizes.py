"""Sizes that are the same symbol, its square, or a part of either, have a maximum and run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from compiler import to_edge, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.untyped import largest, simplified
from runtime import Runtime
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow


class Of(nn.Module):
    """A function of one tensor and of a layer."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(13, 17).requires_grad_(requires_grad=False)
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, self.layer)


def masked(x: torch.Tensor, layer: Any) -> torch.Tensor:
    scores = x.sum(-1)
    mask = torch.ones_like(scores, dtype=torch.bool).tril()
    return torch.where(mask, scores, -1e4).softmax(-1) @ layer(x).mean(-1)


FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "layer": lambda x, layer: layer(x),
    "relu": lambda x, layer: layer(x).relu(),
    "flat": lambda x, layer: layer(x.flatten(0, 1)),
    "back": lambda x, layer: layer(x.reshape(-1, 13)).reshape(x.shape[0], -1, 17),
    "transposed": lambda x, layer: layer(x.transpose(0, 1).reshape(x.shape[0], -1, 13)),
    "product": lambda x, layer: torch.einsum("abi,bci->ac", x, layer(x)[..., :13]),
    "masked": masked,
}


def calls() -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(1)
    return [(torch.randn(size, size, 13),) for size in (8, 5, 1, 11)]


@pytest.mark.interop
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("flow", ["portable", "after", "whole"])
def test_two_equal_dynamic_sizes_are_planned_and_run(name: str, flow: str, stock: Stock) -> None:
    module = Of(FUNCTIONS[name]).eval()
    size = Dim("size", max=12)
    given = calls()
    program = torch.export.export(module, given[0], dynamic_shapes=({0: size, 1: size},))
    if flow == "whole":
        manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    else:
        manager = to_edge(program)
        manager = manager.to_backend(XnnpackPartitioner()) if flow == "after" else manager
    buffer = manager.to_executorch().buffer
    method = Runtime.get().load_program(buffer).load_method("forward")
    ours = [method.execute(list(one))[0].clone() for one in given]
    theirs = [one[0] for one in stock.run(buffer, [("forward", one) for one in given])]
    for one, first, second in zip(given, ours, theirs, strict=True):
        torch.testing.assert_close(first, module(*one), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(second, module(*one), rtol=1e-5, atol=1e-5)


def test_layer_on_a_square_is_one_delegate_after_to_edge() -> None:
    size = Dim("size", max=12)
    module = Of(FUNCTIONS["relu"]).eval()
    program = torch.export.export(module, calls()[0], dynamic_shapes=({0: size, 1: size},))
    manager = to_edge(program).to_backend(XnnpackPartitioner())
    assert len(list(manager.exported_program().graph_module.named_children())) == 1


def test_largest_values_of_divided_sizes() -> None:
    import sympy
    from torch.utils._sympy.functions import FloorDiv, Mod
    from torch.utils._sympy.value_ranges import ValueRanges

    s, t = sympy.symbols("s t", integer=True, positive=True)
    ranges = {s: ValueRanges(0, 100), t: ValueRanges(2, 10)}
    wanted = {
        FloorDiv(s**2, s): 100,
        FloorDiv(s * t * 3, t): 300,
        FloorDiv(s**2 * t, s * t): 100,
        FloorDiv(s * t, s) * s: 1000,
        FloorDiv(s, 2) * 2: 100,
        FloorDiv(s**2, 4): 2500,
        FloorDiv(t, s): 10,
        FloorDiv(FloorDiv(s**2, 2), t): 2500,
        FloorDiv(2 * Mod(s, 3), 2): 2,
        s**2 + s: 10100,
    }
    assert {formula: largest(formula, ranges) for formula in wanted} == wanted
    assert largest(FloorDiv(s, sympy.Symbol("u", integer=True)), ranges) is None
    for formula in wanted:
        for values in ((4, 2), (9, 5), (100, 10)):
            known = dict(zip((s, t), values, strict=True))
            assert formula.xreplace(known) == simplified(formula).xreplace(known)
