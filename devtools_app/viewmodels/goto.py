"""All named targets of Ctrl+P: nodes, instructions, delegates, modules, values."""

from __future__ import annotations

from collections import Counter

from devtools_app.viewmodels.fuzzy import Choice
from inspector.files.session import Session
from inspector.graph.model_graph import ModelGraph, ModelNode, model_graph
from inspector.tables.selection import node_selection
from schema.objects.plural import plural


def goto_choices(session: Session, method: str) -> tuple[Choice, ...]:
    """Return the targets in a method; empty if the session has no graph of it."""
    graph = model_graph(session, method)
    if graph is None:
        return ()
    return (*_modules(graph, method), *(_node(graph, node, method) for node in graph.nodes))


def _node(graph: ModelGraph, node: ModelNode, method: str) -> Choice:
    where = node.node.module_path or " / ".join(region.label for region in node.regions)
    parts = [node.node.target, where, node.backend]
    selection = node_selection(node, method, graph.name)
    hint = f"instruction {node.instruction}" if node.instruction is not None else ""
    detail = " · ".join(part for part in parts if part and part != node.name)
    return Choice(node.name, detail, hint, selection, "node")


def _modules(graph: ModelGraph, method: str) -> tuple[Choice, ...]:
    first: dict[str, ModelNode] = {}
    count: Counter[str] = Counter()
    for node in graph.nodes:
        for frame in node.node.modules:
            if frame.path:
                first.setdefault(frame.path, node)
                count[frame.path] += 1
    return tuple(
        Choice(
            path,
            f"module · {plural(count[path], 'node')}",
            "",
            node_selection(node, method, graph.name),
            "structure",
        )
        for path, node in first.items()
    )
