"""Nodes of a method that is exported have the lines of that method."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from compiler.exported_modules import method_as_forward
from compiler.frontend import export

_SCALE = 3.0


class _Base(nn.Module):
    def scaled(self, x: torch.Tensor, *, by: float = 2.0) -> torch.Tensor:
        return x.cos() * by


class _Decoder(_Base):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).sin()

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).tanh() * _SCALE

    def scaled(self, x: torch.Tensor, *, by: float = 2.0) -> torch.Tensor:
        return super().scaled(x.exp(), by=by)  # a closure

    def through_forward(self, x: torch.Tensor) -> torch.Tensor:
        return self(x) + 1


def _lines(function: Callable[..., Any]) -> range:
    found, first = inspect.getsourcelines(function)
    return range(first, first + len(found))


@pytest.mark.parametrize("name", ["decode", "scaled", "through_forward"])
def test_nodes_of_a_method_have_its_lines_and_none_of_a_wrapper(name: str) -> None:
    module = _Decoder().eval()
    method: Any = getattr(module, name)
    x = torch.randn(2, 4)
    program = export(method_as_forward(method), (x,))
    assert torch.equal(program.module()(x), method(x))
    lines = _lines(getattr(_Decoder, name))
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    assert calls
    for node in calls:
        trace = str(node.meta["stack_trace"])
        assert "exported_modules" not in trace
        assert any(f'{__file__}", line {line},' in trace for line in lines), trace
