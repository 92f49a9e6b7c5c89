"""Recorded programs as runnable graphs: built from the parsed JSON, else read by torch.

Importing torch's reader takes 1.6 s, and reading ten operators 40 ms; the parsed graph is
already available from the joins. Only programs with other than plain tensor operators need torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inspector.numerics.flat_graph import Scope, Value
from inspector.numerics.replay.exported_graph import exported_graph
from inspector.rebuild.exported_program import rebuilt
from inspector.rebuild.torch_bridge import load_torch
from runtime.emulation.calls import DIM_ORDER, graph_of, operator_of, tensor_of
from runtime.emulation.recorded import RecordedGraph
from runtime.errors import ExecutionError
from schema.errors import FormatError
from schema.etrecord import RecordFile, TensorData
from schema.graph import Graph, GraphNode, NodeKind

_RESULT = "user_output"
_HELD = ("parameter", "buffer", "tensor_constant")


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceGraph:
    """A recorded program to compare with.

    Attributes:
        record: record with the program
        member: name of the program in it
        graph: runnable graph
        program: object read by torch; None if the graph was built without torch
    """

    record: RecordFile
    member: str
    graph: RecordedGraph
    program: Any = None

    def long_way(self) -> ReferenceGraph:
        """Return the same program read by torch.

        Raises: RebuildError if torch cannot read it
        """
        return self if self.program is not None else _rebuilt(self.record, self.member)

    def example_inputs(self) -> Any:  # noqa: ANN401 - any tree of tensors
        """Return the example inputs of the exported program, or None.

        Raises: RebuildError if torch cannot read the program
        """
        return self.long_way().program.example_inputs


@dataclass(frozen=True, slots=True)
class MappedReference:
    """A program to compare with, and the locations of the edge graph's values in it.

    Attributes:
        graph: the program
        values: value of the edge graph -> scope, node and output index in the program; None for
            the edge graph itself
        scales: quantized value of the edge graph that is compared as a real one -> its scale and
            zero point
        rounded: values that are roundings of what the program has at their place
        is_float: whether it is the float program of a quantized one, so that the errors are those
            of quantization
        notes: what is uncertain about it
    """

    graph: ReferenceGraph
    values: Mapping[Value, tuple[Scope, str, int]] | None = None
    scales: Mapping[Value, tuple[float, int]] = field(
        default_factory=dict[Value, tuple[float, int]]
    )
    rounded: frozenset[Value] = frozenset()
    is_float: bool = False
    notes: tuple[str, ...] = ()


def reference_graph(record: RecordFile, member: str) -> ReferenceGraph:
    """Return a recorded program as a runnable graph.

    Args:
        record: of the program
        member: name of the program

    Raises: RebuildError if torch cannot read it; FormatError
    """
    graph = plain_graph(record, member)
    return _rebuilt(record, member) if graph is None else ReferenceGraph(record, member, graph)


def _rebuilt(record: RecordFile, member: str) -> ReferenceGraph:
    program = rebuilt(record, member, delegates=True)
    return ReferenceGraph(record, member, exported_graph(program), program)


def plain_graph(record: RecordFile, member: str) -> RecordedGraph | None:
    """Return a runnable graph, or None if the program has other than plain operators.

    Results are not kept: the graph is run only to inspect the results of its operators.

    Args:
        record: of the program
        member: name of the program
    """
    try:
        program = record.program(member)
        graph = program.graph
        if program.issues or graph.subgraphs or program.mutated or _writes_state(graph):
            return None
        if not all(map(_is_plain, graph.calls())):
            return None
        if _reads_state(record, member, graph):
            return None
        saved = {**record.state_dict(member), **record.constants(member)}
        held = _held(graph, saved)
        return None if held is None else graph_of(graph, held, outputs=())
    except (FormatError, ExecutionError):
        return None


def _writes_state(graph: Graph) -> bool:
    """Return whether results of a graph become state, which the next run begins with."""
    outputs = (node for node in graph.nodes if node.kind is NodeKind.OUTPUT)
    kinds: list[Any] = [node.attributes.get("output_kinds", ()) for node in outputs]
    return any(kind != _RESULT for each in kinds for kind in each)


def _reads_state(record: RecordFile, member: str, graph: Graph) -> bool:
    """Return whether a buffer of a graph is written by another method, which may share it."""
    read = {
        node.attributes.get("target")
        for node in graph.nodes
        if node.kind is NodeKind.PLACEHOLDER and node.attributes.get("input_kind") == "buffer"
    }
    others = [name for name in record.roles.edge.values() if name not in ("", member)]
    return bool(read) and any(not read.isdisjoint(_written(record.graph(one))) for one in others)


def _written(graph: Graph) -> Iterator[str]:
    """Yield the buffers that a graph writes."""
    for node in graph.nodes:
        if node.kind is NodeKind.OUTPUT:
            kinds: Any = node.attributes.get("output_kinds", ())
            targets: Any = node.attributes.get("output_targets", ())
            pairs = zip(kinds, targets, strict=False)
            yield from (target for kind, target in pairs if kind == "buffer_mutation")


def _is_plain(node: GraphNode) -> bool:
    """Return whether an operator writes to no argument, and its results have one form."""
    layout: Any = node.attributes.get("outputs", ())
    one_list = len(layout) == 1 and isinstance(layout[0], tuple)
    schema = getattr(operator_of(node), "_schema", None)
    if node.target not in DIM_ORDER and (schema is None or schema.is_mutable):
        return False
    return one_list or all(isinstance(name, str) for name in layout)


def _held(graph: Graph, saved: Mapping[str, TensorData]) -> dict[str, Any] | None:
    """Return parameters, buffers and constants by name, or None if there are other inputs."""
    found: dict[str, Any] = {}
    for node in graph.nodes:
        kind = node.attributes.get("input_kind")
        if node.kind is not NodeKind.PLACEHOLDER or kind == "user_input":
            continue
        entry = saved.get(str(node.attributes.get("target"))) if kind in _HELD else None
        if entry is None:
            return None
        found[node.name] = _own(entry)
    return found


def _own(saved: TensorData) -> Any:  # noqa: ANN401 - a tensor
    """Return a saved tensor as torch loads it.

    The alignment and requires_grad of a tensor select the kernel: last bits can differ.
    """
    copied = tensor_of(saved).clone()
    if saved.is_parameter:
        return load_torch().nn.Parameter(copied, requires_grad=saved.requires_grad)
    return copied.requires_grad_(saved.requires_grad)
