"""All named targets of Ctrl+P: modules, nodes with their instructions, weights, getters."""

from __future__ import annotations

from collections import Counter

from devtools_app.state.requests import ShowTensor, ShowView
from devtools_app.viewmodels.fuzzy import Choice
from inspector.files.getters import getters
from inspector.files.session import Session
from inspector.graph.model_graph import ModelGraph, ModelNode, model_graph
from inspector.tables.selection import node_selection
from inspector.tables.tensor import tensor_type
from inspector.tensors.sources import TensorSource, session_tensors
from inspector.units import format_bytes
from schema.objects.plural import plural

_OF_RUNS = ("logged", "recorded")  # origins of tensors that are found at their nodes


def goto_choices(session: Session, method: str) -> tuple[Choice, ...]:
    """Return the targets in a method, and the getters of the program."""
    graph = model_graph(session, method)
    nodes = () if graph is None else tuple(_node(graph, node, method) for node in graph.nodes)
    modules = () if graph is None else _modules(graph, method)
    weights = tuple(_weight(one) for one in session_tensors(session) if _is_stored(one, method))
    return (*modules, *nodes, *weights, *_getters(session))


def _is_stored(one: TensorSource, method: str) -> bool:
    return one.origin not in _OF_RUNS and one.method in ("", method)


def _weight(one: TensorSource) -> Choice:
    detail = " · ".join(filter(None, (one.origin, one.role, tensor_type(one))))
    size = format_bytes(one.nbytes) if one.nbytes is not None else ""
    return Choice(one.name, detail, size, ShowTensor(one.key), "tensor")


def _getters(session: Session) -> tuple[Choice, ...]:
    """Return the getter methods, whose values the overview lists."""
    found = getters(session.program) if session.program is not None else {}
    return tuple(
        Choice(name, f"getter · {value}", "", ShowView("overview"), "overview")
        for name, value in found.items()
    )


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
