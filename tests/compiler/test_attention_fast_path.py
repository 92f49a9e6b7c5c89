"""Transformers that were exported without gradients: one operator a layer, which has no kernel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from compiler import to_edge_transform_and_lower
from compiler.edge import attention_fast_path
from compiler.edge.decompositions import decomposition_of
from runtime import Runtime

aten = torch.ops.aten
_WEIGHTS = ((24, 8), (24,), (8, 8), (8,))


class _Twice(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.layer(self.layer(x, mask), mask)


def _mask(kind: int | None, *, whole_row: bool) -> torch.Tensor | None:
    sizes = {0: (5, 5), 1: (3, 5), 2: (3, 2, 5, 5)}
    if kind is None:
        return None
    mask = torch.rand(sizes[kind]) > 0.6
    mask[..., 0] = False
    if whole_row:
        mask.view(-1, 5)[1] = True
    return mask


@pytest.mark.parametrize("whole_row", [False, True])
@pytest.mark.parametrize("weights", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("kind", [None, 0, 1, 2])
def test_parts_of_attention_compute_what_its_kernel_does(
    kind: int | None, weights: tuple[bool, bool], whole_row: bool
) -> None:
    """Also where a mask excludes all keys of a query: not a number."""
    torch.manual_seed(0)
    x = torch.randn(3, 5, 8)
    mask = _mask(kind, whole_row=whole_row)
    given: tuple[Any, ...] = (
        x,
        x,
        x,
        8,
        2,
        *(torch.randn(one) for one in _WEIGHTS),
        mask,
        *weights,
        kind,
    )
    expected = aten._native_multi_head_attention(*given)
    found = attention_fast_path.attention(*given)
    for own, other in zip(found, expected, strict=True):
        if own is None:
            assert not weights[0]
        else:
            torch.testing.assert_close(own, other, equal_nan=True)


def test_operators_of_the_fast_path_are_replaced() -> None:
    for op, rule in attention_fast_path.RULES.items():
        assert decomposition_of(op) is rule


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("masked", [False, True])
def test_encoders_in_eval_mode_compile(norm_first: bool, activation: str, masked: bool) -> None:
    torch.manual_seed(1)
    options: dict[str, Any] = {"batch_first": True, "norm_first": norm_first}
    layer = nn.TransformerEncoderLayer(8, 2, 12, activation=activation, **options)
    net = _Twice(layer).eval()
    inputs = (torch.randn(2, 5, 8),)
    if masked:
        inputs = (*inputs, torch.triu(torch.ones(5, 5, dtype=torch.bool), 1))
    expected = net(*inputs)
    with torch.no_grad():
        program = torch.export.export(net, inputs, strict=True)
    names = {str(node.target) for node in program.graph.nodes}
    assert "aten._transformer_encoder_layer_fwd.default" in names
    buffer = to_edge_transform_and_lower(program).to_executorch().buffer
    (found,) = Runtime.get().load_program(buffer).load_method("forward").execute(list(inputs))
    torch.testing.assert_close(found, expected)
