"""A value joined by flow alone is rounded as one whose join names its nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from inspector.numerics.flat_graph import flat_graph
from inspector.numerics.grades import FLOW
from inspector.numerics.join_facts import JoinTarget
from inspector.numerics.metrics import Tolerance
from inspector.numerics.replay.comparing import GapComparison
from inspector.numerics.replay.quanta import Quanta
from inspector.numerics.replay.references import MappedReference
from inspector.numerics.report import INSTRUCTION
from schema.graph import Argument, Graph, GraphNode, NodeKind

STEP, NODE = 0.25, "quantized_decomposed_node"


def _graph(target: str) -> Any:
    args = (Argument("input", ("x",)), Argument("scale", literal=STEP))
    node = GraphNode(NODE, NodeKind.CALL, target, args, (NODE,))
    return flat_graph(Graph("", (node,), {}, ("x",), (NODE,)))


@pytest.mark.parametrize("covers", [(), (NODE,)])
@pytest.mark.parametrize(
    ("operator", "step"),
    [("quantize_per_tensor", 1.0), ("dequantize_per_tensor", STEP), ("choose", 0.0)],
)
def test_target_without_named_nodes_is_that_of_its_node(
    operator: str, step: float, covers: tuple[str, ...]
) -> None:
    graph = _graph(f"quantized_decomposed.{operator}.default")
    target = JoinTarget(((), NODE), NODE, covers, (), FLOW)
    assert Quanta(graph, None).of(target, whole=False) == step
    log: Any = SimpleNamespace(
        buffer=None,
        method="forward",
        join=SimpleNamespace(graph=graph),
        logged=None,
        outputs=(),
        inside=(),
        held={},
    )
    comparison = GapComparison(log, Tolerance(), SimpleNamespace(put=None))  # pyright: ignore
    comparison._attach((INSTRUCTION, 0, 0), target, [None], MappedReference(log))
    ((wanted,),) = comparison._requested.values()
    assert wanted.quantized  # by its name
