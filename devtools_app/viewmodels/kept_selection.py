"""Maps a selection to another program compiled from the same source."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from devtools_app.viewmodels.scene_search import related_to
from inspector.compare.alignment import align_graphs, origin
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, ModelGraph, graph_names, model_graph
from inspector.profile.join_index import join_index
from inspector.tables.selection import NOTHING, Selection, SelectionKind


def kept_selection(
    former: Session, session: Session, method: str, selection: Selection
) -> Selection:
    """Return the counterpart of a selection in another program, empty if it has no counterpart.

    Nodes are mapped by the alignment of the graphs, other items by their nodes; a part of a file
    by its path.
    """
    if selection.kind is SelectionKind.PART:
        return selection
    if selection.kind is SelectionKind.NODE and selection.graph not in ("", COMPILED):
        there = selection.graph in graph_names(session, method)
        other = model_graph(session, method, selection.graph) if there else None
        return selection if other is not None and selection.node in other.by_name else NOTHING
    index = join_index(former, method)
    old, new = index.graph, model_graph(session, method)
    if old is None or new is None:
        return NOTHING
    names = [name for name in related_to(selection, index).nodes if name in old.by_name]
    if selection.kind is SelectionKind.DELEGATE:
        return _delegate(method, _paired(old, new, names), new)
    for found in _paired(old, new, names[:1]):
        return Selection(SelectionKind.NODE, method, COMPILED, new.nodes[found].name)
    return NOTHING


def _paired(old: ModelGraph, new: ModelGraph, names: list[str]) -> list[int]:
    """Return the nodes of the new graph that match those of the old one or share their origin."""
    found: list[int] = []
    to_new = align_graphs(old, new).to_new
    for name in names:
        number = old.by_name[name]
        if number in to_new:
            found.append(to_new[number])
            continue
        source = origin(old.nodes[number])
        same = (node.id for node in new.nodes if source and origin(node) == source)
        found += list(same)[-1:]
    return found


def _delegate(method: str, nodes: list[int], new: ModelGraph) -> Selection:
    """Return the delegate that has most of some nodes, else the first of the nodes."""
    owners = Counter(new.nodes[one].delegate for one in nodes)
    owners.pop(None, None)
    for number, _ in owners.most_common(1):
        return Selection(SelectionKind.DELEGATE, method, delegate=number)
    for one in nodes:
        chosen = Selection(SelectionKind.NODE, method, COMPILED)
        return replace(chosen, node=new.nodes[one].name)
    return NOTHING
