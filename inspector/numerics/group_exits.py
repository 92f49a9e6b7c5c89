"""The value that leaves a group of nodes which share handles with several steps of a payload.

A grouped convolution with the batch norm behind it is slices, convolutions and a concatenation.
Which step is whose is open, but what others read of the steps is what others read of the nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from inspector.numerics.arbitrary import is_arbitrary
from inspector.numerics.flat_graph import FlatGraph, FlatNode, Value
from inspector.numerics.payload_flow import has_shape_of
from inspector.numerics.shared_handles import DelegateEvent
from schema.dtypes.scalar_type import scalar_type


def with_group_values(
    graph: FlatGraph,
    nodes: Sequence[FlatNode],
    matched: Mapping[str, DelegateEvent],
    shared: Collection[str],
    events: Sequence[DelegateEvent],
    suffixes: Sequence[str] = (),
) -> dict[str, DelegateEvent]:
    """Return node -> event, with the nodes of groups whose value is known all the same.

    It is where the payload names a value after its node, where only one value leaves the group,
    and for nodes that compute the same from the same.

    Args:
        graph: the recorded graph
        nodes: of the delegate, in graph order
        matched: events of the nodes that are known
        shared: nodes whose events are ambiguous
        events: all of the call, in order
        suffixes: what the backend may add to the name of a node in the name of its value
    """
    found = dict(matched)
    known = {name + suffix: name for name in shared for suffix in ("", *suffixes)}
    for event in events:
        written = () if _are_numbered(event.writes) else event.writes
        name = next((known[one] for one in written if one in known), "")
        if name in event.nodes:
            found.setdefault(name, replace(event, nodes=(name,)))
    _add_exits(graph, nodes, found, shared, events)
    names = {node.node.name: {node.node.name + end for end in ("", *suffixes)} for node in nodes}
    named = {name for name, own in names.items() if name in found and own & {*found[name].writes}}
    _add_merged(graph, nodes, found, named, {n: one for one in events for n in one.writes})
    return _with_equal_calls(graph, nodes, found)


def _are_numbered(names: Sequence[str]) -> bool:
    """Return whether names are one with the numbers of several results behind it.

    Their compiler numbers them, as that of the record numbers nodes: `split_1` is a result of
    `split` here, and the second split there.
    """
    stems = {name.removesuffix(f"_{place}") for place, name in enumerate(names)}
    return len(names) > 1 and len(stems) == 1


def _add_merged(
    graph: FlatGraph,
    nodes: Sequence[FlatNode],
    found: dict[str, DelegateEvent],
    named: Collection[str],
    steps: Mapping[str, DelegateEvent],
) -> None:
    """Add nodes without an event whose named reader reads the value of one of their kind instead.

    A compiler that merges equal nodes lets all that reads them read the first one.
    """
    ended = [node for node in nodes if _ends(found, node.node.name)]
    makers = {name: node for node in ended for name in found[node.node.name].writes}
    inside = {node.place for node in nodes}
    for node in nodes:
        if node.node.name not in named or len(node.reads) != 1:
            continue
        event = found[node.node.name]
        if not makers.keys() & event.reads:  # its step before it, such as a cast to another type
            before = next((steps[one] for one in event.reads if one in steps), event)
            event = before if {*before.nodes} == {node.node.name} else event
        read = {makers[one].place: makers[one] for one in event.reads if one in makers}
        maker = graph.producers.get(node.reads[0])
        if len(read) != 1 or maker is None or maker[0].place not in inside:
            continue
        (own,), merged = read.values(), maker[0]
        alike = own.operator == merged.operator and _form(own, graph) == _form(merged, graph)
        if alike and not is_arbitrary(own.operator):
            event = replace(found[own.node.name], nodes=(merged.node.name,))
            found.setdefault(merged.node.name, event)


def _ends(found: Mapping[str, DelegateEvent], name: str) -> bool:
    """Return whether a node is the last one of its event, which has its value."""
    return name in found and found[name].nodes[-1] == name


def _with_equal_calls(
    graph: FlatGraph, nodes: Sequence[FlatNode], found: dict[str, DelegateEvent]
) -> dict[str, DelegateEvent]:
    """Add nodes that compute what one with an event does: a compiler does so once.

    Those of equal calls on their way are one value, as casts of a constant for each reader are.
    """
    same: dict[Value, Value] = {}
    groups: dict[object, list[FlatNode]] = {}
    for node in nodes:
        if is_arbitrary(node.operator) or len(node.writes) != 1:
            continue
        own = groups.setdefault(_call(node, same, graph), [])
        own.append(node)
        same[node.writes[0]] = own[0].writes[0]
    for own in groups.values():
        names = [node.node.name for node in own]
        known = next((found[name] for name in names if _ends(found, name)), None)
        if known is not None:
            for name in names:
                found.setdefault(name, replace(known, nodes=(name,)))
    return found


def _add_exits(
    graph: FlatGraph,
    nodes: Sequence[FlatNode],
    found: dict[str, DelegateEvent],
    shared: Collection[str],
    events: Sequence[DelegateEvent],
) -> None:
    """Add the last node of each group of which only one value leaves."""
    by_name = {node.node.name: node for node in nodes}
    groups: dict[frozenset[str], list[DelegateEvent]] = {}
    for event in events:
        named = frozenset(by_name.keys() & event.nodes)
        if len(named) > 1 and named & set(shared):
            groups.setdefault(named, []).append(event)
    for named, own in groups.items():
        members = [node for node in nodes if node.node.name in named]
        step, node = _leaving_step(own, events), _leaving_node(graph, members)
        if step is None or node is None or node.node.name in found:
            continue
        if _has_type_of(graph, step, node) and has_shape_of(graph, step, node):
            before = _run_up_to(node, members, found)
            found[node.node.name] = replace(step, nodes=(*before, node.node.name))


def _run_up_to(
    last: FlatNode, members: Sequence[FlatNode], matched: Collection[str]
) -> tuple[str, ...]:
    """Return the nodes between a node and the one with an event before it: its step has them."""
    found: list[str] = []
    wanted = set(last.reads)
    for node in reversed(members[: members.index(last)]):
        if wanted.isdisjoint(node.writes):
            continue
        if node.node.name in matched:
            break
        found.append(node.node.name)
        wanted.update(node.reads)
    return tuple(found[::-1])


def _leaving_node(graph: FlatGraph, members: Sequence[FlatNode]) -> FlatNode | None:
    """Return the last of some nodes if others read it alone, or nodes that compute the same.

    Quantizers give each reader a `dequantize` of its own, which a payload has once.
    """
    places = {node.place for node in members}
    leaving = [
        (node, value)
        for node in members
        for value in node.writes
        if value in graph.results
        or any(user.place not in places for user in graph.users.get(value, ()))
    ]
    last = members[-1]
    calls = {_call(node, {}, graph) for node, value in leaving if value == node.writes[0]}
    alike = calls == {_call(last, {}, graph)} and len(leaving) == len({n.place for n, _ in leaving})
    return last if alike and leaving and leaving[-1][0] is last else None


def _call(node: FlatNode, same: Mapping[Value, Value], graph: FlatGraph) -> object:
    """Return what nodes that compute the same have in common.

    Args:
        node: of one result
        same: value -> the first one that is computed alike
        graph: the recorded graph
    """
    args = tuple(
        (tuple(same.get((node.scope, one), (node.scope, one)) for one in arg.values), arg.literal)
        for arg in node.node.args
    )
    return node.scope, node.operator, repr(args), _form(node, graph)


def _form(node: FlatNode, graph: FlatGraph) -> object:
    """Return dtype and sizes of the first result of a node, None if unknown."""
    meta = graph.meta.get(node.writes[0]) if node.writes else None
    tensor = meta.tensor if meta is not None else None
    return (tensor.scalar_type, tensor.sizes) if tensor is not None else None


def _leaving_step(
    own: Sequence[DelegateEvent], events: Sequence[DelegateEvent]
) -> DelegateEvent | None:
    """Return the only one of some events that others read, or nothing reads, if it is the last."""
    inside = {name for event in own for name in event.reads}
    outside = {
        name for event in events if all(event is not one for one in own) for name in event.reads
    }
    leaving = [
        event
        for event in own
        if not outside.isdisjoint(event.writes) or inside.isdisjoint(event.writes)
    ]
    return own[-1] if len(leaving) == 1 and leaving[0] is own[-1] and own[-1].writes else None


def _has_type_of(graph: FlatGraph, event: DelegateEvent, node: FlatNode) -> bool:
    """Return whether the tensors of an event are real or not, as a node's result is."""
    meta = graph.meta.get(node.writes[0])
    if meta is None or meta.tensor is None or not event.passes or not event.passes[0]:
        return False
    codes = meta.tensor.scalar_type, event.passes[0][0].scalar_type
    kinds = [scalar_type(code).name for code in codes]
    return kinds[0] == kinds[1] or all("float" in kind for kind in kinds)
