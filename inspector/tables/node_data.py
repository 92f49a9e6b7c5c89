"""Values of nodes that the user opened beside a program, at the nodes of its graph."""

from __future__ import annotations

from typing import Any

from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, model_graph
from inspector.graph.node_values import node_values
from inspector.tables.query import QueryError
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import Table
from inspector.units import Quantity

_FIELDS = (
    RowField("values"),
    RowField("node", mono=True),
    RowField("operator"),
    RowField("value", Quantity.PLAIN),
    RowField("note"),
)


def node_data(session: Session, method: str, _units: Units) -> Table:
    """Return each node with its value in each set, then the names that no node has.

    Raises: QueryError without a graph
    """
    graph = model_graph(session, method, COMPILED)
    if graph is None:
        raise QueryError("a graph needs a program or an ETRecord")
    rows: list[tuple[Any, ...]] = []
    keys: list[Selection | str] = []
    for data in session.node_data:
        found = node_values(graph, data)
        for node, value in zip(graph.nodes, found.values.tolist(), strict=True):
            known = node.id in found.keys
            note = "" if known else "no value"
            target = node.node.target
            rows.append((data.title, node.name, target, value if known else None, note))
            keys.append(Selection(SelectionKind.NODE, method, COMPILED, node.name))
        for name in found.unmatched:
            rows.append((data.title, name, "", data.values[name], "no node of this name"))
            keys.append(f"{data.title} {name}")
    return row_table(_FIELDS, rows, "values", keys=keys)
