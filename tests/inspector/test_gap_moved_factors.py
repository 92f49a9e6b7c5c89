"""Factors that passes of a flow move past a dequantization, into who reads it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from inspector.numerics import join
from inspector.numerics.flat_graph import flat_graph
from inspector.numerics.traced import InstructionOutput
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind

_DEQUANTIZE = "quantized_decomposed::dequantize_per_tensor"


def _join_by_use(operator: str, *chain: str) -> bool:
    """Return whether an output without a node gets the value that the end of a chain has."""
    names = ["x", *map(str, range(len(chain)))]
    nodes = tuple(
        GraphNode(own, NodeKind.CALL, target, (Argument("", (read,)),), (own,))
        for target, read, own in zip(chain, names, names[1:], strict=False)
    )
    graph = Graph("", nodes, {name: GraphValue(name) for name in names}, ("x",), (names[-1],))
    joining: Any = SimpleNamespace(
        flat=flat_graph(graph),
        facts=SimpleNamespace(alike=lambda *_: True),
        outputs={0: [InstructionOutput(0, 0, 1, "kernel", operator, 6, (4,), static=True)]},
        targets={},
        boundaries={},
        uses={(0, 0): {((), names[-1]): True}},
    )
    getattr(join, "_Joining")._join_by_use(joining)  # noqa: B009 - private
    return (0, 0) in joining.boundaries


@pytest.mark.parametrize(
    ("chain", "joined"),
    [
        ((_DEQUANTIZE,), True),
        ((_DEQUANTIZE, "aten::view_copy", "aten::slice_copy"), True),
        ((_DEQUANTIZE, "aten::mul"), False),
        (("aten::add",), False),
    ],
)
def test_a_dequantization_has_no_value_that_a_factor_was_taken_from(
    chain: tuple[str, ...], joined: bool
) -> None:
    """Cadence's passes put it into the scale of the quantization that reads it."""
    assert _join_by_use("cadence::dequantize_per_tensor.out", *chain) is joined


def test_another_output_without_a_node_has_the_value_that_is_read() -> None:
    assert _join_by_use("aten::slice_copy.Tensor_out", _DEQUANTIZE, "aten::mul")
