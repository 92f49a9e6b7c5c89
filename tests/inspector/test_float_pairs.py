"""What a vendor folds into weights is one with them; what it takes apart stays in its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from compiler.record.graph import program_json
from inspector.compare.float_pairs import FloatPairs
from schema.etrecord.budget import Budget
from schema.etrecord.graph.graph_json import read_program
from schema.graph import Graph

_Call = Callable[[Any, torch.Tensor], torch.Tensor]


class _Net(nn.Module):
    def __init__(self, call: _Call) -> None:
        super().__init__()
        self.linear, self.conv, self.norm = nn.Linear(5, 5), nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)
        self.call = call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.call(self, x)


def _graph(call: _Call) -> Graph:
    program = torch.export.export(_Net(call).eval(), (torch.randn(1, 1, 5, 5),))
    text = program_json(program, edge=False)
    return read_program(text, "forward", Budget(8 * len(text))).graph


def _lower_ones(_net: Any, x: torch.Tensor) -> torch.Tensor:
    return x + torch.ones(5, 5).tril()


def _ones_where(_net: Any, x: torch.Tensor) -> torch.Tensor:
    ones, at = torch.ones(5, 5), torch.arange(5)
    return x + torch.where(at[:, None] >= at, ones, 0.0)


@pytest.mark.parametrize(
    ("plain", "quantized", "node", "place"),
    [
        (_lower_ones, _ones_where, "ones", "ones"),
        (lambda s, x: s.linear(x).tanh(), lambda s, x: 2 * s.linear(x), "linear", "linear"),
        (lambda s, x: s.conv(x).sigmoid(), lambda s, x: 2 * s.conv(x), "conv2d", "conv2d"),
        (lambda s, x: s.norm(s.conv(x)), lambda s, x: s.conv(x), "conv2d", "batch_norm"),
        (lambda s, x: x.exp().tril(), lambda _s, x: x.exp() * 2, "exp", "exp"),
    ],
    ids=["mask", "activation", "activation of a convolution", "norm", "part"],
)
def test_only_nodes_with_weights_take_in_others(
    plain: _Call, quantized: _Call, node: str, place: str
) -> None:
    assert FloatPairs(_graph(quantized), _graph(plain)).place(node, 0) == ((), place, 0)
