"""Doubts joins inside of a delegate that the data flow of its payload contradicts.

Passes of a vendor that move operators give them the debug handle of the one they are moved for: an
activation then has the handle of the next layer, where the record has such a node, too. The payload
shows that it reads another value than that node does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from inspector.join.lowered_kinds import becomes
from inspector.numerics.flat_graph import FlatGraph, FlatNode, Value, is_transparent
from inspector.numerics.grades import DELEGATE_ID, ORDER
from inspector.numerics.shared_handles import DelegateEvent


def without_contradictions(
    graph: FlatGraph,
    nodes: Sequence[FlatNode],
    matched: Mapping[str, DelegateEvent],
    events: Sequence[DelegateEvent],
    border: Mapping[str, Value] = MappingProxyType({}),
) -> dict[str, DelegateEvent]:
    """Return node -> event; of events that read the value of no node before theirs, by ORDER.

    A view that is moved in front of an activation reads what that read.

    Args:
        graph: the recorded graph
        nodes: of the delegate, in graph order
        matched: node -> its event
        events: all of the call
        border: recorded values of the inputs and outputs of the payload
    """
    members = {node.node.name: node for node in nodes}
    known = dict(border) | _written(members, matched, {one.name: one.writes for one in events})
    found: dict[str, DelegateEvent] = {}
    for name, event in matched.items():
        node = members[name]
        read = {known[value] for value in event.reads if value in known} - {*node.writes}
        alike = becomes(node.operator, event.kind) or is_transparent(node)
        doubted = event.grade != DELEGATE_ID and alike
        if doubted and read and not read <= _before(graph, node, matched, event):
            event = replace(event, grade=ORDER)
        found[name] = event
    return found


def _written(
    members: Mapping[str, FlatNode],
    matched: Mapping[str, DelegateEvent],
    writes: Mapping[str, tuple[str, ...]],
) -> dict[str, Value]:
    """Return value of the payload -> recorded value, of those that are of one kind with a node.

    The event of a node has the name of its last step.
    """
    return {
        written: members[name].writes[0]
        for name, event in matched.items()
        if members[name].writes
        and event.grade != ORDER
        and event.nodes[-1] == name
        and becomes(members[name].operator, event.kind)
        for written in {*event.writes[:1], *writes.get(event.name, ())[:1]}
    }


def _before(
    graph: FlatGraph,
    node: FlatNode,
    matched: Mapping[str, DelegateEvent],
    event: DelegateEvent,
) -> set[Value]:
    """Return what a node reads, and what that is made of, up to nodes that have another event."""
    left, found = [*node.reads], {*node.reads}
    while left:
        maker = graph.producers.get(left.pop())
        if maker is None or matched.get(maker[0].node.name, event) != event:
            continue
        left += [value for value in maker[0].reads if value not in found]
        found.update(maker[0].reads)
    return found
