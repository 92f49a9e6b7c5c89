"""Search in the graph, and the counterpart of other views' selections in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.scene import GraphScene
from inspector.graph.model_graph import COMPILED, ModelNode
from inspector.profile.join_index import JoinIndex, Related
from inspector.tables.filter import Mask, matches, parse_filter
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.table import Table
from schema.objects.plural import plural

_ORIGINS = {"record": "from the ETRecord", "program": "from the program"}


def search_nodes(graph: GraphScene, text: str) -> tuple[str, ...] | None:
    """Return the names of the nodes that contain all words, or match /an expression/.

    Looks into title, operator, name, module and the names of weights.

    Returns: None without a search
    Raises: FilterError when it is not a regular expression, or takes too long
    """
    requested = parse_filter(text, Table())
    if not requested:
        return None
    texts = _searched(graph.graph.nodes, graph.scene.labels)
    found: Mask = np.ones(len(texts), np.bool_)
    for term in requested.terms:
        found &= matches(term)(texts)
    return tuple(graph.scene.names[index] for index in _numbers(found))


def _numbers(mask: Mask) -> list[int]:
    return np.flatnonzero(mask).tolist()


def _searched(nodes: Sequence[ModelNode], titles: Sequence[str]) -> list[str]:
    """Return what is searched of each node; without calls 50,000 take 12 ms instead of 23."""
    return [
        "\n".join(
            (
                title,
                (node := one.node).target,
                node.name,
                node.modules[-1].path if node.modules else "",
                one.backend,
                *[weight.name for weight in one.weights],
            )
        )
        for one, title in zip(nodes, titles, strict=True)
    ]


def graph_title(name: str) -> str:
    """Return how the name of a graph is shown."""
    return name.replace("/", " · ")


def graph_note(graph: GraphScene, name: str, found: tuple[str, ...] | None, current: str) -> str:
    """Return the number and source of the nodes of a graph, or the number of matches."""
    nodes = len(graph.scene.names)
    if found is not None:
        place = f"{found.index(current) + 1:,} of " if current in found else ""
        return f"{place}{len(found):,} found in {nodes:,} nodes"
    if name != COMPILED:
        return plural(nodes, "node")
    source = graph.graph.source
    return f"{plural(nodes, 'node')} · {_ORIGINS.get(source, source)}"


def related_to(selection: Selection, index: JoinIndex) -> Related:
    """Return everything related to the selection of any view."""
    kind = selection.kind
    if kind is SelectionKind.NODE:
        return index.of_node(selection.node)
    if kind is SelectionKind.EVENT and selection.event is not None:
        return index.of_event(selection.event)
    if kind is SelectionKind.INSTRUCTION and selection.instruction is not None:
        return index.of_instruction(selection.instruction)
    if kind is SelectionKind.VALUE and selection.value is not None:
        return index.of_value(selection.value)
    if kind is SelectionKind.DELEGATE and selection.delegate is not None:
        return index.of_delegate(selection.delegate)
    return Related()


def selected_nodes(
    drawn: GraphScene, selection: Selection, index: JoinIndex, graph_name: str
) -> tuple[str, ...]:
    """Return the nodes of a shown graph that belong to the selection, the most exact first.

    Nodes of another graph of the method are found by name, else by debug handle or instruction.
    """
    graph = drawn.graph
    if selection.kind is SelectionKind.NODE and selection.graph in ("", graph_name):
        return _known(drawn, (selection.node,))
    if selection.kind is SelectionKind.DELEGATE:
        return tuple(
            drawn.scene.names[node.id]
            for node in graph.nodes
            if node.delegate == selection.delegate
        )
    related = related_to(selection, index)
    named = _known(drawn, related.nodes)
    if named or graph_name == COMPILED:
        return named
    return _by_number(drawn, related, index)


def whole_delegate(graph: GraphScene, names: tuple[str, ...]) -> int | None:
    """Return the delegate that has exactly these nodes and more than one, or None."""
    if len(names) < 2:
        return None
    nodes = graph.graph.nodes
    delegate = nodes[graph.scene.index[names[0]]].delegate
    inside = {graph.scene.names[node.id] for node in nodes if node.delegate == delegate}
    return delegate if delegate is not None and inside == set(names) else None


def delegate_item(graph: GraphScene, placed: Placed, delegate: int) -> int | None:
    """Return the drawn item of a delegate, None if the graph has no box for it.

    For a delegate inside a closed box it is that box.
    """
    for path, region in graph.clusters.regions.items():
        if region.delegate == delegate:
            cluster = graph.scene.tree.index[path]
            item = placed.node_count + cluster
            if bool(np.isfinite(placed.boxes[item, 0])):
                return item
            return int(placed.item_of_node[int(graph.scene.tree.first[cluster])])
    return None


def _known(graph: GraphScene, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name in graph.scene.index)


def _by_number(graph: GraphScene, related: Related, index: JoinIndex) -> tuple[str, ...]:
    steps = set(related.instructions)
    handles: set[int] = set()
    if index.graph is not None:
        known = index.graph.by_name
        nodes = (index.graph.nodes[known[name]] for name in related.nodes if name in known)
        handles = {node.node.debug_handle for node in nodes if node.node.debug_handle is not None}
    return tuple(
        graph.scene.names[node.id]
        for node in graph.graph.nodes
        if node.instruction in steps or node.node.debug_handle in handles
    )
