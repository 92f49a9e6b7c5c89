"""Recorded programs as graphs that can be run: as they were read, else by torch's own reader.

torch's reader of programs is imported in 1.6 s and takes 40 ms for ten operators; the graph has
been read already, for the joins. What is more than plain operators on tensors goes the long way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inspector.numerics.replay.exported_graph import exported_graph
from inspector.rebuild.exported_program import rebuilt
from inspector.rebuild.torch_bridge import load_torch
from runtime.emulation.calls import DIM_ORDER, call_of, operator_of, tensor_of
from runtime.emulation.recorded import GraphCall, RecordedGraph
from runtime.errors import ExecutionError
from schema.errors import FormatError
from schema.etrecord import ETRecord, TensorData
from schema.graph import Graph, GraphNode, NodeKind

_HELD = ("parameter", "buffer", "tensor_constant")
_BORDERS = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceGraph:
    """A recorded program to compare with.

    Attributes:
        record: that holds it
        member: its name there
        graph: ready to run
        program: torch's object of it; None where the graph is run as it was read
    """

    record: ETRecord
    member: str
    graph: RecordedGraph
    program: Any = None

    def long_way(self) -> ReferenceGraph:
        """Return the same as torch reads it.

        Raises: RebuildError if torch cannot read it
        """
        return self if self.program is not None else _rebuilt(self.record, self.member)

    def example_inputs(self) -> Any:  # noqa: ANN401 - any tree of tensors
        """Return the inputs that the program was exported with, None without them.

        Raises: RebuildError if torch cannot read the program
        """
        return self.long_way().program.example_inputs


def reference_graph(record: ETRecord, member: str) -> ReferenceGraph:
    """Return a recorded program ready to run.

    Args:
        record: of the program
        member: name of the program

    Raises: RebuildError if torch cannot read it; FormatError
    """
    graph = plain_graph(record, member)
    return _rebuilt(record, member) if graph is None else ReferenceGraph(record, member, graph)


def _rebuilt(record: ETRecord, member: str) -> ReferenceGraph:
    program = rebuilt(record, member, delegates=True)
    return ReferenceGraph(record, member, exported_graph(program), program)


def plain_graph(record: ETRecord, member: str) -> RecordedGraph | None:
    """Return a recorded program ready to run, None if it is more than plain operators.

    Its results are not kept: it is run to look at what its operators return.

    Args:
        record: of the program
        member: name of the program
    """
    try:
        program = record.program(member)
        graph = program.graph
        if program.issues or graph.subgraphs or program.mutated:
            return None
        calls = tuple(_plain(node) for node in graph.nodes if node.kind not in _BORDERS)
        saved = {**record.state_dict(member), **record.constants(member)}
        held = _held(graph, saved)
    except (FormatError, ExecutionError, _NotPlainError):
        return None
    inputs = [node.name for node in _placeholders(graph) if node.name not in held]
    return RecordedGraph(calls, tuple(inputs), (), held)


class _NotPlainError(Exception):
    """A node is more than an operator on tensors."""


def _plain(node: GraphNode) -> GraphCall:
    """Return the call of an operator that writes into nothing and whose results have one form."""
    layout: Any = node.attributes.get("outputs", ())
    one_list = len(layout) == 1 and isinstance(layout[0], tuple)
    schema = getattr(operator_of(node), "_schema", None)
    if node.target not in DIM_ORDER and (schema is None or schema.is_mutable):
        raise _NotPlainError
    if not one_list and not all(isinstance(name, str) for name in layout):
        raise _NotPlainError
    return call_of(node)


def _held(graph: Graph, saved: Mapping[str, TensorData]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in _placeholders(graph):
        kind = node.attributes.get("input_kind")
        if kind in _HELD:
            entry = saved.get(str(node.attributes.get("target")))
            if entry is None:
                raise _NotPlainError
            found[node.name] = _own(entry)
        elif kind != "user_input":
            raise _NotPlainError
    return found


def _own(saved: TensorData) -> Any:  # noqa: ANN401 - a tensor
    """Return a saved tensor as torch loads it.

    Where it lies, and whether it requires a gradient, decides which kernel runs: last bits differ.
    """
    copied = tensor_of(saved).clone()
    if saved.is_parameter:
        return load_torch().nn.Parameter(copied, requires_grad=saved.requires_grad)
    return copied.requires_grad_(saved.requires_grad)


def _placeholders(graph: Graph) -> list[GraphNode]:
    return [node for node in graph.nodes if node.kind is NodeKind.PLACEHOLDER]
