"""Joins a delegate's events, which carry only kernel names, to the nodes of its payload by order.

Traces of our own engines number the nodes and need no order. Otherwise every event must be an
operator of the payload, in order, and every operator must have its event, except those the runtime
may merge into a neighbour. Events that several nodes could have logged are not joined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from inspector.join.lowered_kinds import recorded_of_kinds
from inspector.join.partition_order import PartitionOrder, kind_of
from schema.graph import GraphNode, GraphValue
from schema.objects.identity_cache import identity_cache
from schema.payloads import Payload, join_by_order
from schema.payloads.identity import named_node
from schema.payloads.nested import nested_calls

_RENAMED = ("aten__to_copy", "getitem")  # casts are recorded with an order of dimensions
# kinds of which a vendor is given another form -> as they are recorded
_GIVEN_AS = {
    "aten_squeeze_copy_dims": "aten_squeeze_copy_dim",
    "aten_full_like_default": "aten_fill_scalar",
    "aten_var_correction": "aten_var_dim",
}


@dataclass(frozen=True, slots=True)
class PayloadMatch:
    """The payload nodes that one event covers.

    Attributes:
        nodes: the node that names the event, then those merged into it
        handles: debug handles of those nodes
        inserted: no covered node has a handle (a layout copy added by the compiler)
        exact: the event names its node, as in traces of our engines, and no other has its handles
        value_of: the recorded node whose value it logs; empty for a value of none, None
            where the payload does not have that
        by_kind: the payload has no handle for it, the recorded node is the one of its kind
        values_of: likewise for each of several values, empty for one
        named: the event has its node's name; which recorded node that is may be open
        recorded: the recorded nodes that the payload names for it, empty where it names none
    """

    nodes: tuple[str, ...]
    handles: tuple[int, ...]
    inserted: bool
    exact: bool = False
    value_of: str | None = None
    by_kind: bool = False
    values_of: tuple[str, ...] = ()
    named: bool = False
    recorded: tuple[str, ...] = ()


def match_payload_events(payload: Payload, names: Sequence[str]) -> tuple[PayloadMatch | None, ...]:
    """Return the match of each event of one delegate call, None if it is ambiguous."""
    return _match(payload, tuple(names))


def match_named_events(
    payload: Payload,
    names: Sequence[str],
    recorded: Sequence[GraphNode],
    values: Mapping[str, GraphValue] | None = None,
    open_handles: Collection[int] = (),
    order: PartitionOrder | None = None,
) -> tuple[PayloadMatch | None, ...]:
    """Return the match of each event that is named like a node of a payload; empty for others.

    Args:
        payload: that runs node by node
        names: of the events of one call
        recorded: nodes of the delegate; which of them a payload node is, its kind and order tell
        values: of the recorded graph, as far as known
        open_handles: handles whose nodes may be outside of the delegate
        order: the nodes of the delegate as its compiler numbered them, None where not known
    """
    if payload.origins:
        if order is not None:
            payload, recorded, open_handles = *_as_recorded(payload, order), ()
        return _match_origins(payload, names, recorded, values or {}, open_handles)
    calls = payload.graph.calls() if payload.graph is not None else ()
    own = dict(nested_calls(payload.graph)) if payload.graph is not None else {}
    if payload.operators or not names or not own.keys() >= set(names):
        return ()
    joined = _of_one_size(payload, recorded, recorded_of_kinds(calls, recorded), values or {})
    handles = {node.name: node.debug_handle for node in recorded}
    found: list[PayloadMatch] = []
    for name in names:
        known, alone = joined.get(name, ("", True))
        handle = own[name].debug_handle
        by_kind = handle is None
        handle = handles.get(known) if by_kind else handle
        given = () if handle is None else (handle,)
        match = PayloadMatch((name,), given, inserted=False, exact=alone, by_kind=by_kind)
        found.append(replace(match, named=True))
    return tuple(found)


def _of_one_size(
    payload: Payload,
    recorded: Sequence[GraphNode],
    joined: Mapping[str, tuple[str, bool]],
    values: Mapping[str, GraphValue],
) -> dict[str, tuple[str, bool]]:
    """Return joins by kind without those of kinds of which one has another number of elements.

    Such a step is part of another node: an exponential of a softmax that was taken apart.
    """
    theirs: Mapping[str, GraphValue] = payload.graph.values if payload.graph is not None else {}
    calls = payload.graph.calls() if payload.graph is not None else ()
    kinds = {node.name: node.target for node in calls}
    results = {
        node.name: node.outputs for node in calls
    }  # MPS has those of a norm in another order
    ours = {node.name: node.outputs[0] for node in recorded if node.outputs}
    other: set[str] = set()
    for name, (node, _) in joined.items():
        sizes = {_elements(theirs.get(one)) for one in results.get(name, ())}
        own = _elements(values.get(ours.get(node, "")))
        if sizes and None not in (own, *sizes) and own not in sizes:
            other.add(kinds[name])
    return {name: pair for name, pair in joined.items() if kinds.get(name) not in other}


def _match_origins(
    payload: Payload,
    names: Sequence[str],
    recorded: Sequence[GraphNode],
    recorded_values: Mapping[str, GraphValue],
    open_handles: Collection[int],
) -> tuple[PayloadMatch | None, ...]:
    """Return the matches where the payload has the recorded nodes of each of its own."""
    nodes = payload.graph.nodes if payload.graph is not None else ()
    known = {node.name: node.outputs for node in nodes}
    if known.keys().isdisjoint(names):
        return ()
    payload = _in_recorded_names(payload, recorded)
    certain = _as_large(payload, _certain(payload, recorded, open_handles), recorded_values)
    handles = {node.name: node.debug_handle for node in certain}
    places = {node.name: place for place, node in enumerate(recorded)}
    values = _values_of(payload, certain)
    found: list[PayloadMatch | None] = []
    for name in names:
        if name in known:
            own = [node for node in payload.origins.get(name, ()) if handles.get(node) is not None]
            given = tuple(dict.fromkeys(one for node in own if (one := handles[node]) is not None))
            value, several = values.get(name, ""), known[name] if len(known[name]) > 1 else ()
            ports = tuple(values.get(one, "") for one in several)
            match = PayloadMatch((name,), given, not given, bool(given), value, values_of=ports)
            found.append(replace(match, recorded=tuple(sorted(own, key=places.__getitem__))))
        else:
            copied = _copied(name, known)
            found.append(PayloadMatch((copied,), (), inserted=True) if copied else None)
    return tuple(found)


def _in_recorded_names(payload: Payload, recorded: Sequence[GraphNode]) -> Payload:
    """Return a payload with the recorded names of nodes that the vendor saw in another form.

    A kind that is recorded in both forms keeps its names: it is then numbered in one row there.
    """
    kinds = {kind_of(node.name) for node in recorded}
    renamed = {a: b for a, b in _GIVEN_AS.items() if a not in kinds and b in kinds}

    def named(name: str) -> str:
        kind = kind_of(name)
        return renamed[kind] + name.removeprefix(kind) if kind in renamed else name

    return _renamed(payload, named) if renamed else payload


def _as_recorded(payload: Payload, order: PartitionOrder) -> tuple[Payload, list[GraphNode]]:
    """Return a payload with recorded names, and the nodes whose names in it are certain.

    Passes that add nodes number those of their kind in another order.
    """
    payload = _in_recorded_names(payload, order.nodes)
    names = order.renamed()
    theirs, ours = (_by_kind(one) for one in (_named(payload), names))
    whole = {kind for kind in ours if kind not in order.unsure}
    if any(own - ours.get(kind, set()) for kind, own in theirs.items()):
        whole = {kind for kind in whole if theirs.get(kind) == ours[kind]}
    known = [node for node in order.nodes if kind_of(node.name) in whole]
    certain = {node.name for node in known}
    return _renamed(payload, lambda name: own if (own := names.get(name)) in certain else ""), known


def _named(payload: Payload) -> set[str]:
    """Return the names of nodes that a payload has, but for those of other kinds in the record."""
    named = chain(*payload.origins.values(), *payload.node_values.values())
    return {node for node in named if not node.startswith(_RENAMED)}


def _renamed(payload: Payload, name: Callable[[str], str]) -> Payload:
    """Return a payload with other names of nodes; without those that are renamed to nothing."""
    origins, values = (
        {key: tuple(own for one in names if (own := name(one))) for key, names in given.items()}
        for given in (payload.origins, payload.node_values)
    )
    return replace(payload, origins=origins, node_values=values)


def _certain(
    payload: Payload, recorded: Sequence[GraphNode], open_handles: Collection[int]
) -> list[GraphNode]:
    """Return the recorded nodes that the payload means by their names.

    A compiler that decomposes operators first gives the nodes of a kind other numbers, and has some
    that are not recorded. Names of a kind with one of these, or with one missing, are another's.
    The first of a kind has no number, also where the delegate has only the last ones of a kind: of
    a kind with nodes that may be outside of it, names are certain if it has all of them.
    """
    theirs, ours = (_by_kind(names) for names in (_named(payload), {one.name for one in recorded}))
    doubted = {kind_of(node.name) for node in recorded if node.debug_handle in open_handles}
    if any(names - ours.get(kind, set()) for kind, names in theirs.items()):
        doubted.update(ours)
    whole = {kind for kind in ours if kind not in doubted or theirs.get(kind) in (None, ours[kind])}
    return [node for node in recorded if kind_of(node.name) in whole]


def _as_large(
    payload: Payload, recorded: list[GraphNode], values: Mapping[str, GraphValue]
) -> list[GraphNode]:
    """Return the recorded nodes without kinds of which one has another number of elements there.

    The compiler then gave that kind other numbers, in an order of its own: none of them is certain.
    """
    theirs: Mapping[str, GraphValue] = payload.graph.values if payload.graph is not None else {}
    outputs = {node.name: node.outputs[0] for node in recorded if node.outputs}
    other: set[str] = set()
    for name, node in _values_of(payload, recorded).items():
        sizes = (_elements(theirs.get(name)), _elements(values.get(outputs.get(node, ""))))
        if None not in sizes and sizes[0] != sizes[1]:
            other.add(kind_of(node))
    return [node for node in recorded if kind_of(node.name) not in other]


def _elements(value: GraphValue | None) -> int | None:
    """Return the number of elements of a value, None if it is not known."""
    if value is None or value.tensor is None:
        return None
    sizes = [one for one in value.tensor.sizes if isinstance(one, int) and one >= 0]
    return math.prod(sizes) if len(sizes) == len(value.tensor.sizes) else None


def _by_kind(names: Collection[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name in names:
        found.setdefault(kind_of(name), set()).add(name)
    return found


def _values_of(payload: Payload, recorded: Sequence[GraphNode]) -> dict[str, str]:
    """Return payload node or value -> the recorded node whose value it has, one for each."""
    places = {node.name: place for place, node in enumerate(recorded)}
    found: dict[str, str] = {}
    for name, nodes in payload.node_values.items():
        last = max((node for node in nodes if node in places), key=places.__getitem__, default="")
        found.setdefault(last, name)
    return {name: node for node, name in found.items() if node}


def _copied(name: str, known: Collection[str]) -> str:
    """Return the node whose value an inserted layout copy has: its name begins with it."""
    return max((one for one in known if name.startswith(f"{one}_")), key=len, default="")


@identity_cache
def _match(payload: Payload, names: tuple[str, ...]) -> tuple[PayloadMatch | None, ...]:
    nothing: tuple[PayloadMatch | None, ...] = (None,) * len(names)
    if not payload.operators or not names:
        return nothing
    places = [named_node(name) for name in names]
    if all(place is not None and place < len(payload.operators) for place in places):
        nodes = [payload.operators[place].node for place in places if place is not None]
        return tuple(replace(_payload_match(payload, (node,)), exact=True) for node in nodes)
    joined = join_by_order(payload.operators, names)
    if joined is None:
        return nothing
    merged = _merged(payload, joined)
    return tuple(
        None if node is None else _payload_match(payload, (node, *merged.get(node, ())))
        for node in joined
    )


def _merged(payload: Payload, joined: tuple[str | None, ...]) -> dict[str, list[str]]:
    """Return the nodes without a separate event, by the joined node before them."""
    timed = set(joined)
    if None in timed:
        return {}  # an open event may be theirs
    merged: dict[str, list[str]] = {}
    leading: list[str] = []
    last = ""
    for operator in payload.operators:
        if operator.node in timed:
            last = operator.node
        elif last:
            merged.setdefault(last, []).append(operator.node)
        else:
            leading.append(operator.node)
    first = next((node for node in joined if node), "")
    if first and leading:
        merged.setdefault(first, []).extend(leading)
    return merged


def _payload_match(payload: Payload, nodes: tuple[str, ...]) -> PayloadMatch:
    own = (handle for name in nodes for handle in payload.debug_handles.get(name, ()))
    handles = tuple(dict.fromkeys(own))
    return PayloadMatch(nodes, handles, not handles)
