"""Sizes made by sym_int, sym_ite, sym_not and arithmetic of floats, on both runtimes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from compiler import EdgeCompileConfig, to_edge
from runtime.api import Runtime
from tests.compiler.stock import Stock

_TORCH: Any = torch
_CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sym_int": lambda x: torch.zeros(_TORCH.sym_int(_TORCH.sym_float(x.shape[0]))),
    "sym_ite": lambda x: torch.ones(_TORCH.sym_ite(x.shape[0] > 5, x.shape[0], x.shape[1])),
    "sym_not": lambda x: torch.ones(
        _TORCH.sym_ite(_TORCH.sym_not(x.shape[0] > 5), x.shape[0], x.shape[1])
    ),
    "nested": lambda x: torch.ones(
        _TORCH.sym_ite(
            x.shape[0] > 5,
            _TORCH.sym_ite(x.shape[1] > 3, 2 * x.shape[0], x.shape[1]),
            x.shape[0] + x.shape[1],
        )
    ),
    "scaled": lambda x: nn.functional.interpolate(x[None, None], scale_factor=1.5),
    "sym_float": lambda x: x * _TORCH.sym_float(x.shape[0]),
    "condition as a float": lambda x: x + _TORCH.sym_float(_TORCH.sym_not(x.shape[0] > 5)),
    "negative": lambda x: x * (-x.shape[0]),
}


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.mark.interop
@pytest.mark.parametrize("name", _CASES)
def test_chosen_sizes_equal_eager_on_both_runtimes(name: str, stock: Stock) -> None:
    torch.manual_seed(0)
    dynamic = {"x": {0: Dim("b", min=1, max=20), 1: Dim("f", min=1, max=20)}}
    program = export(Call(_CASES[name]), (torch.randn(3, 6),), dynamic_shapes=dynamic)
    buffer = bytes(to_edge(program).to_executorch().buffer)
    for sizes in ((3, 6), (7, 2), (7, 5), (4, 4), (20, 1)):
        x = torch.randn(*sizes)
        wanted = _CASES[name](x)
        found = Runtime().load_program(buffer).load_method("forward").execute([x])[0]
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(stock.run(buffer, [("forward", (x,))])[0][0], wanted)


def test_lists_of_operators_may_be_none() -> None:
    program = export(nn.ReLU(), (torch.ones(2),))
    config = EdgeCompileConfig(_core_aten_ops_exception_list=None, preserve_ops=None)
    assert to_edge(program, compile_config=config).to_executorch().buffer
