"""Nodes that a delegate computes together with the one before them: activations and batch norms."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from inspector.join.lowered_kinds import BATCH_NORM, becomes, operation
from inspector.numerics.flat_graph import FlatGraph, FlatNode, is_transparent
from inspector.numerics.grades import DELEGATE_ID, FLOW, ORDER
from inspector.numerics.shared_handles import DelegateEvent

QUANTIZED, FLOATS = (0, 1, 2, 3), (5, 6, 7, 15)  # dtypes
# Operators whose result has the same values, shape and dtype as their operand.
_COPIES = ("aten::expand_copy", "dim_order_ops::_to_dim_order_copy")
_PRODUCTS = frozenset(map(operation, ("conv2d", "linear", "bmm", "matmul")))  # never fused behind


def with_fused(
    graph: FlatGraph,
    nodes: tuple[FlatNode, ...],
    logged: dict[str, DelegateEvent],
    events: Sequence[DelegateEvent],
    shared: Collection[str] = (),
) -> dict[str, DelegateEvent]:
    """Add to each event the nodes fused into it: those after its last one without an event.

    These are activations and batch norms: the only reader, of equal type and shape, without event.
    A reader whose kind the payload has a step of is not fused.

    Args:
        graph: the recorded graph
        nodes: of the delegate
        logged: events of the nodes that are known
        events: all of the call
        shared: nodes that have events, though it is unknown which: part of their own ones only
    """
    by_name = {node.node.name: node for node in nodes}
    handles = {event.name: event.nodes for event in events}
    found: dict[str, DelegateEvent] = {}
    for event in dict.fromkeys(logged.values()):
        last = by_name.get(event.nodes[-1])
        more: list[str] = []
        while last is not None:
            last = _follower(graph, last, by_name)
            if last is None or last.node.name in logged or _has_step(last, event, events):
                break
            if operation(last.operator) in _PRODUCTS:
                break
            named = last.node.name in handles.get(event.name, ())
            acts = sum(by_name[name].operator != BATCH_NORM for name in more)
            own = acts < event.fused or (named and not _goes_on(last, event, events))
            if last.node.name in shared and not own:
                break
            if event.grade == DELEGATE_ID and not _is_copy(last):
                break
            more.append(last.node.name)
        grade = _grade(graph, [by_name[name] for name in (*event.nodes, *more)], event, len(more))
        fused = replace(event, nodes=(*event.nodes, *more), grade=grade)
        whole = _in_its_type(graph, by_name, fused)
        found.update((name, whole) for name in whole.nodes if name in by_name)
    return found


def in_types(
    graph: FlatGraph, nodes: Sequence[FlatNode], logged: Mapping[str, DelegateEvent]
) -> dict[str, DelegateEvent]:
    """Return node -> event, without those whose values are quantized and those of the node not."""
    by_name = {node.node.name: node for node in nodes}
    typed = {name: _in_its_type(graph, by_name, event) for name, event in logged.items()}
    return {name: event for name, event in typed.items() if event.nodes[-1] == name}


def _has_step(node: FlatNode, before: DelegateEvent, events: Sequence[DelegateEvent]) -> bool:
    """Return whether the payload has a step of a node's kind that reads the value before it."""
    read = set(before.writes)
    return any(
        one.kind and not read.isdisjoint(one.reads) and becomes(node.operator, one.kind)
        for one in events
    )


def _goes_on(node: FlatNode, before: DelegateEvent, events: Sequence[DelegateEvent]) -> bool:
    """Return whether steps that may be a node's read the value before it: its own come there."""
    read = set(before.writes)
    return any(
        node.node.name in one.nodes and one.kind and not read.isdisjoint(one.reads)
        for one in events
    )


def _grade(graph: FlatGraph, nodes: Sequence[FlatNode], event: DelegateEvent, more: int) -> str:
    """Return the grade of the match of an event with the value of the last of some nodes.

    Args:
        graph: the recorded graph
        nodes: of the event, in graph order
        event: the event
        more: number of nodes at the end that its handles do not name
    """
    if event.grade in (DELEGATE_ID, ORDER) or len(nodes) == 1:
        return event.grade
    unnamed = [node for node in nodes[len(nodes) - more :] if not _is_copy(node)]
    if len(unnamed) > event.fused:
        return ORDER
    reached = {nodes[-1].place}
    for node in reversed(nodes[:-1]):
        users = {user.place for value in node.writes for user in graph.users.get(value, ())}
        if users & reached:
            reached.add(node.place)
    return FLOW if len(reached) == len(nodes) else ORDER


def _is_copy(node: FlatNode) -> bool:
    return is_transparent(node) or node.operator in _COPIES


def _in_its_type(
    graph: FlatGraph, members: Mapping[str, FlatNode], event: DelegateEvent
) -> DelegateEvent:
    """Return the event with the node of the logged dtype last: a delegate may hold it quantized.

    Or it logged real values of a node that is recorded with integers. It has no passes if none of
    its nodes has the logged dtype.
    """
    logged = next((each[0].scalar_type for each in event.passes if each), -1)
    types = {name: type_of(graph, members[name]) for name in event.nodes if name in members}
    recorded = types.get(event.nodes[-1], -1)
    if {_is_quantized(logged), _is_quantized(recorded)} != {True, False}:
        return event
    fitting = [name for name, code in types.items() if code == logged]
    if not fitting:
        behind = _quantizer(graph, members, members[event.nodes[-1]], logged)
        if not behind:
            return replace(event, passes=())
        return replace(event, nodes=(*event.nodes, behind))
    others = [name for name in event.nodes if name != fitting[-1]]
    return replace(event, nodes=(*others, fitting[-1]))


def _quantizer(graph: FlatGraph, members: Mapping[str, FlatNode], node: FlatNode, code: int) -> str:
    """Return the only node of the delegate that converts a node to a dtype."""
    users = {user.place: user for user in graph.users.get(node.writes[0], ())}
    found = [user for user in users.values() if type_of(graph, user) == code]
    own = [user for user in found if members.get(user.node.name) is user]
    return own[0].node.name if len(own) == len(users) == 1 else ""


def _is_quantized(code: int) -> bool | None:
    """Return whether a dtype is that of quantized values, None for neither."""
    return True if code in QUANTIZED else False if code in FLOATS else None


def type_of(graph: FlatGraph, node: FlatNode) -> int:
    """Return the scalar type of the first result of a node, -1 if unknown."""
    meta = graph.meta.get(node.writes[0]) if node.writes else None
    return meta.tensor.scalar_type if meta is not None and meta.tensor is not None else -1


def _follower(graph: FlatGraph, node: FlatNode, members: Mapping[str, FlatNode]) -> FlatNode | None:
    """Return the one node of a delegate that reads a node, None for a branch or another shape."""
    value = node.writes[0]
    users = dict.fromkeys(user.place for user in graph.users.get(value, ()))
    if len(users) != 1 or value in graph.results:
        return None
    user = graph.nodes[next(iter(users))]
    if members.get(user.node.name) is not user or not user.writes:
        return None
    before, after = graph.meta.get(value), graph.meta.get(user.writes[0])
    if before is None or after is None or before.tensor is None or after.tensor is None:
        return None
    kept = before.tensor.scalar_type == after.tensor.scalar_type
    return user if kept and before.tensor.sizes == after.tensor.sizes else None
