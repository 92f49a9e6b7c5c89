"""Nodes of a graph, and which graphs a session has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.files.session import Session
from inspector.graph.model_graph import (
    COMPILED,
    ModelGraph,
    ModelNode,
    describe,
    graph_names,
    model_graph,
)
from inspector.graph.source import user_frame
from inspector.tables.query import QueryError
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import Table
from inspector.units import Quantity
from schema.graph import NodeKind

_NODES = (
    RowField("node", mono=True),
    RowField("operator"),
    RowField("module", mono=True),
    RowField("output", mono=True),
    RowField("delegate"),
    RowField("source"),
    RowField("instruction", Quantity.COUNT, missing=""),
)
_ENDS = {NodeKind.PLACEHOLDER: "input", NodeKind.OUTPUT: "output"}
_EDGES = (
    RowField("source", mono=True),
    RowField("reader", mono=True),
    RowField("value", mono=True),
    RowField("tensor", mono=True),
    RowField("bytes", Quantity.SIZE),
    RowField("boundary"),
)
_NAMES = (RowField("method", mono=True), RowField("graph"))


def node_table(method: str, graph: ModelGraph) -> Table:
    """Return one row per node: operator, module, outputs, owner, source line."""
    frames = [user_frame(node.node.stack_trace) for node in graph.nodes]
    rows = [
        (
            node.name,
            node.node.target,
            node.node.module_path,
            ", ".join(describe(value) for value in node.values),
            f"{node.backend} {node.delegate}" if node.delegate is not None else "",
            frame.label if frame is not None else "",
            node.instruction,
        )
        for node, frame in zip(graph.nodes, frames, strict=True)
    ]
    keys = [Selection(SelectionKind.NODE, method, graph.name, node.name) for node in graph.nodes]
    return row_table(_NODES, rows, "nodes", keys=keys)


def graph_name_table(names: Mapping[str, Sequence[str]]) -> Table:
    """Return the names of the graphs of each method."""
    rows = [(method, name) for method, found in names.items() for name in found]
    return row_table(_NAMES, rows, "graphs")


def nodes(session: Session, method: str, _units: Units) -> Table:
    """Return the nodes of the compiled graph.

    Raises: QueryError without a program or a record
    """
    graph = model_graph(session, method, COMPILED)
    if graph is None:
        raise QueryError("a graph needs a program or an ETRecord")
    return node_table(method, graph)


def edge_table(method: str, graph: ModelGraph, units: Units) -> Table:
    """Return one row per edge: its ends, value and bytes, and the delegates it goes between."""
    rows: list[tuple[str | int | None, ...]] = []
    keys: list[Selection] = []
    for edge in graph.edges:
        source, target = graph.nodes[edge.source], graph.nodes[edge.target]
        apart = source.delegate != target.delegate
        value = next((one for one in source.values if one.name == edge.value), None)
        rows.append(
            (
                source.name,
                target.name,
                edge.value,
                describe(value) if value is not None else "",
                edge.nbytes,
                f"{_place(source)} → {_place(target)}" if apart else "",
            )
        )
        keys.append(Selection(SelectionKind.NODE, method, graph.name, target.name))
    return row_table(_EDGES, rows, "edges", keys=keys, units=units)


def _place(node: ModelNode) -> str:
    if node.delegate is not None:
        return f"{node.backend} {node.delegate}"
    return _ENDS.get(node.node.kind, "not delegated")


def edges(session: Session, method: str, units: Units) -> Table:
    """Return the edges of the compiled graph.

    Raises: QueryError without a program or a record
    """
    graph = model_graph(session, method, COMPILED)
    if graph is None:
        raise QueryError("a graph needs a program or an ETRecord")
    return edge_table(method, graph, units)


def graphs(session: Session, _units: Units) -> Table:
    """Return the graphs of all methods."""
    return graph_name_table({name: graph_names(session, name) for name in session.methods})
