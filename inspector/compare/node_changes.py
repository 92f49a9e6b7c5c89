"""Differences of recorded graphs: nodes removed, added, replaced, moved, or with another owner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from inspector.compare.alignment import MOVED, GraphAlignment, align_graphs
from inspector.compare.change import Change
from inspector.compare.ownership import owner_changes
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, ModelGraph, ModelNode, describe, model_graph
from inspector.join import record_maps

_PASSIVE = ("placeholder", "output", "get_attr")


def node_alignment(old: Session, new: Session, method: str) -> GraphAlignment | None:
    """Return the recorded graphs of a method side by side, None if a record has none."""
    graphs = [_graph(session, method) for session in (old, new)]
    if graphs[0] is None or graphs[1] is None:
        return None
    return align_graphs(graphs[0], graphs[1])


def _graph(session: Session, method: str) -> ModelGraph | None:
    record = session.record
    if record is None or record_maps.edge_graph(record, method) is None:
        return None
    return model_graph(session, method, COMPILED)


def node_changes(old: Session, new: Session, method: str) -> list[Change]:
    """Return the differences of the recorded graphs of one method that both records have."""
    found = node_alignment(old, new, method)
    if found is None:
        return []
    return [*_counts(found, method), *_nodes(found, method), *_owners(found, new, method)]


def _counts(found: GraphAlignment, method: str) -> Iterator[Change]:
    """Yield operators that are there more or less often."""
    before, after = (
        Counter(node.node.target for node in graph.nodes if node.node.kind.value not in _PASSIVE)
        for graph in (found.old, found.new)
    )
    for name in sorted(before.keys() | after.keys()):
        if before[name] != after[name]:
            yield Change("nodes", f"{method} {name}", before[name], after[name])


def _nodes(found: GraphAlignment, method: str) -> Iterator[Change]:
    old, new = found.old.nodes, found.new.nodes
    known: set[tuple[bool, int]] = set()
    for group in found.replaced:
        known |= {(False, number) for number in group.old} | {(True, n) for n in group.new}
        gone, come = [old[number] for number in group.old], [new[number] for number in group.new]
        what = f"{method} {gone[0].node.module_path or gone[0].name} replaced"
        yield Change("nodes", what, _targets(gone), _targets(come))
    for number in found.removed:
        if (False, number) not in known:
            yield Change("nodes", _title(method, old[number]), _kind(old[number]), None)
    for number in found.added:
        if (True, number) not in known:
            yield Change("nodes", _title(method, new[number]), None, _kind(new[number]))
    for change in found.changed:
        what = f"{_title(method, new[change.pair.new])} {change.what}"
        yield Change("nodes", what, change.old, change.new)
    moved = sum(pair.how == MOVED for pair in found.pairs)
    if moved:
        words = f"{moved} of {len(found.pairs)} elsewhere"
        yield Change("nodes", f"{method} order of nodes", "one", words)


def _title(method: str, node: ModelNode) -> str:
    place = f" in {node.node.module_path}" if node.node.module_path else ""
    return f"{method} node {node.name}{place}"


def _kind(node: ModelNode) -> str:
    built = ", ".join(describe(value) for value in node.values)
    return f"{node.node.target} {built}".rstrip()


def _targets(nodes: Sequence[ModelNode]) -> str:
    return " + ".join(node.node.target for node in nodes)


def _owners(found: GraphAlignment, new: Session, method: str) -> Iterator[Change]:
    for one in owner_changes(found, new, method, 1):
        old, now = (
            name if number is None else f"{name} delegate {number}"
            for name, number in (
                (one.old_owner, one.old_delegate),
                (one.new_owner, one.new_delegate),
            )
        )
        what = f"{method} owner of {one.new_node}"
        yield Change("delegation", what, old, now, note=one.reason)
