"""MIL programs of iOS 15 to 18: operators by name, states, branches and loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from typing_extensions import override

from runtime.backends.coreml import compressed
from runtime.backends.coreml.binding import bind_operator
from runtime.backends.coreml.control import CONTROL, bind_control, enclosed
from runtime.backends.coreml.states import with_interface
from runtime.backends.graph import GraphBackend, Operation, OperatorTable
from runtime.backends.graph.engine import GraphEngine
from runtime.backends.graph.registers import refused
from schema.graph import Graph, GraphNode, NodeKind
from schema.payloads import Payload
from schema.payloads.coreml.elements import BITS

_WIDER = {"uint16": torch.int32, "uint32": torch.int64}
_DTYPES = {
    **{name: torch.int8 if signed else torch.uint8 for name, (_, signed) in BITS.items()},
    **_WIDER,
}
_UNPACK = {
    **dict.fromkeys(BITS, compressed.packed),
    **{name: compressed.widened(dtype) for name, dtype in _WIDER.items()},
}


def _is_constant(node: GraphNode) -> bool:
    return node.kind is NodeKind.CALL and node.target.startswith("constexpr_")


class MilEngine(GraphEngine):
    """A program that is ready to run."""

    @override
    def begin(self, inputs: Sequence[Any]) -> None:
        """Set the inputs: what is a scalar in the program around has one element here."""
        shaped = [
            one.reshape(1) if isinstance(one, torch.Tensor) and not one.dim() and rank else one
            for one, rank in zip(inputs, self._ranks(), strict=True)
        ]
        super().begin(shaped)

    def _ranks(self) -> list[int]:
        tensors = [self.graph.values[name].tensor for name in self.graph.inputs]
        return [0 if one is None else len(one.sizes) for one in tensors]


class CoreMLBackend(GraphBackend):
    """Runs the folders that Core ML's partitioner writes, and Core ML's own model files."""

    id = "CoreMLBackend"
    table = OperatorTable(bind_operator, _DTYPES, _UNPACK, _is_constant)

    @override
    def engine(self, payload: Payload, partition: int) -> GraphEngine:
        """Return the engine of a payload.

        Raises: DelegateError naming what is not known
        """
        if payload.graph is None:
            return super().engine(payload, partition)
        if "opset" not in payload.graph.attributes:
            why = f"a {payload.summary.get('model', 'model')} is shown, not run; ML programs are"
            raise refused(why, partition)
        blocks = enclosed(payload.graph.subgraphs)
        whole = with_interface(payload, payload.graph, partition)
        table = replace(self.table, bind=partial(_bind, blocks, whole, self.table, partition))
        return MilEngine(whole, table, partition)


def _bind(
    blocks: Mapping[str, Graph],
    payload: Payload,
    table: OperatorTable,
    partition: int,
    node: GraphNode,
    graph: Graph,
) -> Operation | None:
    if node.target not in CONTROL:
        return table.bind(node, graph)

    def engine(name: str) -> GraphEngine:
        inner = replace(table, bind=partial(_bind, blocks, payload, table, partition))
        return GraphEngine(replace(payload, graph=blocks[name]), inner, partition, name)

    return bind_control(blocks, engine, node, graph)
