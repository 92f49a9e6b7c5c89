"""Quantizers with steps of their own see a program whose recurrent layers are taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn

from compiler.backends.vendors.openvino import _Nncf
from compiler.quantize.program import quantize_program


class Seeing(_Nncf):
    """Notes the operators that it is given, and quantizes nothing."""

    def __init__(self) -> None:
        super().__init__(mode=None)
        self.seen: list[str] = []

    def quantize(self, captured: Any, calls: Sequence[tuple[Any, ...]]) -> Any:
        captured(*calls[0])
        self.seen = [str(node.target) for node in captured.graph.nodes]
        return captured


class Layer(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.cells: Any = kind(4, 6, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cells(x)[0]


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
def test_recurrent_layers_are_taken_apart_before_a_vendor_quantizes(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    model, inputs = Layer(kind).eval(), (torch.randn(1, 3, 4),)
    program = torch.export.export(model, inputs, strict=True)
    before = [str(node.target) for node in program.graph.nodes]
    chosen = Seeing()
    found = quantize_program(program, chosen).module()(*inputs)
    whole = [one for one in before if one.split(".")[1:2] in (["gru"], ["lstm"], ["rnn_tanh"])]
    assert len(whole) == 1
    assert whole[0] not in chosen.seen
    torch.testing.assert_close(found, model(*inputs))
