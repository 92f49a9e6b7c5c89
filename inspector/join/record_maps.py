"""The join maps of a record, method by method, with the gaps of old releases filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from schema.errors import FormatError
from schema.etrecord import DelegateMap, RecordFile, TensorData
from schema.etrecord.graph.signature import USER_OUTPUT
from schema.etrecord.parts.guard import Refusal
from schema.etrecord.parts.origins import Origins
from schema.etrecord.parts.verdicts import Verdict
from schema.graph import Graph, GraphValue, NodeKind

Handles = Mapping[int, tuple[int, ...]]
_CONSTANTS: Mapping[type, str] = {
    int: "int",
    float: "double",
    bool: "bool",
    str: "string",
    type(None): "null",
}


def handles(record: RecordFile, method: str) -> Handles:
    """Return instruction -> debug handles of a method; empty if the record has none."""
    return (record.debug_handle_map or {}).get(method, {})


def delegates(record: RecordFile, method: str) -> Mapping[int, DelegateMap]:
    """Return instruction -> delegate map of a method; empty if the record has none."""
    return (record.delegate_map or {}).get(method, {})


def output_counts(record: RecordFile, method: str) -> Mapping[int, int]:
    """Return instruction -> number of outputs of delegate calls."""
    return (record.instruction_id_to_num_outs_map or {}).get(method, {})


def verdicts(record: RecordFile, method: str) -> tuple[Verdict, ...]:
    """Return why each node of a method was delegated or not; empty when missing or unreadable."""
    try:
        return record.verdicts().get(method, ())
    except FormatError:
        return ()


def taken(record: RecordFile, method: str) -> Mapping[int, tuple[str, ...]]:
    """Return instruction -> names of delegated nodes; empty if missing or unreadable."""
    try:
        return record.taken().get(method, {})
    except FormatError:
        return {}


def origins(record: RecordFile, method: str) -> Origins:
    """Return the recorded node of each instruction; empty if missing or unreadable."""
    try:
        return record.origins().get(method, Origins())
    except FormatError:
        return Origins()


def refusals(record: RecordFile) -> tuple[Refusal, ...]:
    """Return the partitions that their engine refused; empty when missing or unreadable."""
    try:
        return record.refusals()
    except FormatError:
        return ()


def only_method(record: RecordFile) -> str | None:
    """Return the method of a record that has one, None if there are several."""
    names = tuple(record.debug_handle_map or ()) or record.methods
    return names[0] if len(names) == 1 else None


def edge_graph(record: RecordFile, method: str) -> Graph | None:
    """Return the recorded edge graph of a method, None if it is missing or unreadable."""
    return _readable(record, record.roles.edge.get(method))


def constants(record: RecordFile, method: str) -> Mapping[str, TensorData]:
    """Return placeholder of the edge graph -> its constant; empty if unreadable."""
    member, graph = record.roles.edge.get(method, ""), edge_graph(record, method)
    if graph is None:
        return {}
    try:
        saved = {**record.state_dict(member), **record.constants(member)}
    except FormatError:
        return {}
    targets = {
        node.name: str(node.attributes.get("target"))
        for node in graph.nodes
        if node.kind is NodeKind.PLACEHOLDER
    }
    return {name: saved[target] for name, target in targets.items() if target in saved}


def aten_graph(record: RecordFile) -> Graph | None:
    """Return the recorded ATen graph, None if it is missing or unreadable."""
    return _readable(record, record.roles.exported)


def _readable(record: RecordFile, name: str | None) -> Graph | None:
    if not name:
        return None
    try:
        return record.graph(name)
    except FormatError:
        return None


def ends(record: RecordFile, method: str) -> tuple[tuple[GraphValue, ...], tuple[GraphValue, ...]]:
    """Return what a caller gives to a recorded method and gets; empty without its edge graph.

    State that it writes is neither. A value that the record does not describe is of kind other; the
    kinds of constants are those of values of a program.
    """
    graph = edge_graph(record, method)
    if graph is None:
        return (), ()
    inputs = tuple(_end(graph, name) for name in graph.inputs)
    node = next((one for one in graph.nodes if one.kind is NodeKind.OUTPUT), None)
    kinds = cast("Sequence[str]", node.attributes.get("output_kinds", ())) if node else ()
    if node is None or len(kinds) != len(node.args):
        return inputs, tuple(_end(graph, name) for name in graph.outputs)
    outputs: list[GraphValue] = []
    for argument, kind in zip(node.args, kinds, strict=True):
        if kind == USER_OUTPUT and argument.values:
            outputs += [_end(graph, name) for name in argument.values]
        elif kind == USER_OUTPUT:
            outputs.append(GraphValue("", kind=_CONSTANTS.get(type(argument.literal), "other")))
    return inputs, tuple(outputs)


def _end(graph: Graph, name: str) -> GraphValue:
    return graph.values.get(name) or GraphValue(name, kind="other")
