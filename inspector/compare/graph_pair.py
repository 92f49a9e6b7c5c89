"""Two graphs beside each other: what differs at each of their nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from inspector.compare.alignment import GraphAlignment, align_graphs
from inspector.compare.event_times import method_times
from inspector.compare.model import TimeRow
from inspector.compare.ownership import owner_changes
from inspector.compare.times import node_rows
from inspector.files.session import Session
from inspector.graph.model_graph import model_graph
from inspector.units import NS_PER_MS
from schema.graph import NodeKind, is_compute

_PASSIVE = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT, NodeKind.GET_ATTR)
_COMPILED = ("record", "program")  # sources of graphs with backends and times
NOTABLE = 0.1  # of the longer time; recorded means of two runs of one program differ by less


class Difference(str, Enum):
    """What differs at a node; the first that applies."""

    ONLY = "only here"
    BACKEND = "runs elsewhere"
    CHANGED = "changed"
    SLOWER = "slower"
    FASTER = "faster"


@dataclass(frozen=True, slots=True)
class PairNode:
    """A node of one graph, seen from the other.

    Attributes:
        what: differs, or None
        ms: time here and there, None where unknown; of all nodes that are measured together
        words: the difference as a sentence part, empty for none
    """

    what: Difference | None = None
    ms: tuple[float | None, float | None] = (None, None)
    words: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class GraphPair:
    """Two graphs and the differences of their nodes.

    Attributes:
        alignment: which nodes are the same
        old: nodes of the first graph that differ, by id
        new: nodes of the second graph that differ, by id
    """

    alignment: GraphAlignment
    old: Mapping[int, PairNode]
    new: Mapping[int, PairNode]


def graph_pair(
    first: tuple[Session, str], second: tuple[Session, str], method: str
) -> GraphPair | None:
    """Return two graphs of a method beside each other, None if one of them is missing.

    Args:
        first: session and name of the graph
        second: of the other one, which may be of the same session
        method: that both have
    """
    old, new = (model_graph(session, method, name) for session, name in (first, second))
    if old is None or new is None:
        return None
    alignment = align_graphs(old, new)
    before: dict[int, PairNode] = {}
    after: dict[int, PairNode] = {}
    if old.source in _COMPILED and new.source in _COMPILED:
        _times(alignment, (first[0], second[0]), method, before, after)
        _owners(alignment, second[0], method, before, after)
    for change in alignment.changed:
        words = f"{change.what}: {change.old} → {change.new}"
        for found, node in ((before, change.pair.old), (after, change.pair.new)):
            known = found.get(node, PairNode())
            if known.what is not Difference.BACKEND:
                found[node] = PairNode(Difference.CHANGED, known.ms, words)
    same = partners(alignment)
    for found, graph, paired in ((before, old, set(same)), (after, new, set(same.values()))):
        for node in graph.nodes:
            if node.id not in paired and node.node.kind not in _PASSIVE:
                known = found.get(node.id, PairNode())
                found[node.id] = PairNode(Difference.ONLY, known.ms, "only here")
    return GraphPair(alignment, before, after)


def partners(alignment: GraphAlignment) -> dict[int, int]:
    """Return id in the old graph -> id in the new one, also where one node replaced another."""
    found = dict(alignment.to_new)
    for group in alignment.replaced:
        if len(group.old) == len(group.new) == 1:
            found[group.old[0]] = group.new[0]
    return found


def _owners(
    alignment: GraphAlignment,
    session: Session,
    method: str,
    before: dict[int, PairNode],
    after: dict[int, PairNode],
) -> None:
    to_old = {there: here for here, there in partners(alignment).items()}
    for one in owner_changes(alignment, session, method, 1):
        if one.old_owner == one.new_owner:
            continue
        new = alignment.new.by_name[one.new_node]
        old = to_old.get(new)
        words = f"{one.old_owner} → {one.new_owner}"
        after[new] = PairNode(Difference.BACKEND, after.get(new, PairNode()).ms, words)
        if old is not None:
            before[old] = PairNode(Difference.BACKEND, before.get(old, PairNode()).ms, words)


def _times(
    alignment: GraphAlignment,
    sessions: tuple[Session, Session],
    method: str,
    before: dict[int, PairNode],
    after: dict[int, PairNode],
) -> None:
    graphs = (alignment.old, alignment.new)
    times = [
        method_times(session, method, graph)
        for session, graph in zip(sessions, graphs, strict=True)
    ]
    if None in times:
        return
    for row in node_rows(method, times, graphs, [alignment]):
        old, new = row.ms
        for found, graph, names, ms in (
            (before, graphs[0], row.nodes[0], (old, new)),
            (after, graphs[1], row.nodes[1], (new, old)),
        ):
            for name in names:
                node = graph.by_name[name]
                if is_compute(graph.nodes[node].node.target):
                    found[node] = _timed(row, ms)


def _timed(row: TimeRow, ms: tuple[float | None, float | None]) -> PairNode:
    here, there = ms
    if here is None or there is None or not max(here, there):
        return PairNode(None, ms)
    off = (here - there) / max(here, there)
    tick = max(row.ticks_ns, default=0.0) / NS_PER_MS
    if abs(off) < NOTABLE or abs(here - there) <= tick:
        return PairNode(None, ms)
    share = f"{abs(here - there) / there:.0%}".replace("%", " %") if there else "new"
    word = Difference.SLOWER if off > 0 else Difference.FASTER
    return PairNode(word, ms, f"{share} {word.value}")
