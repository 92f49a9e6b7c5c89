"""Where nodes of an exported program are in the graph that a session shows."""

from __future__ import annotations

from inspector.compare.alignment import origin
from inspector.files.session import Session
from inspector.graph.instruction_names import dotted
from inspector.graph.model_graph import COMPILED, model_graph
from inspector.tables.selection import Selection, SelectionKind


def exported_place(
    session: Session, method: str, name: str, operator: str = ""
) -> Selection | None:
    """Return the place of an exported node in the graph of a session, None if missing.

    Args:
        session: with a program or a record
        method: of the node
        name: of the node
        operator: preferred among several that come from it, such as ``aten.gelu.default``
    """
    graph = model_graph(session, method)
    if graph is None:
        return None
    named = [one for one in graph.nodes if name in (origin(one), one.node.name)]
    same = [one for one in named if dotted(one.node.target) == operator]
    found = next(iter(same or named), None)
    if found is None:
        return None
    return Selection(SelectionKind.NODE, method, COMPILED, found.name)
