"""Events inside a delegate whose nodes share a debug handle, matched by kind and order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from inspector.join.lowered_kinds import becomes, is_lowered_to_one, operation
from inspector.numerics.element_moves import Cut
from inspector.numerics.flat_graph import FlatNode, Value, is_transparent
from inspector.numerics.grades import DELEGATE_ID, ORDER
from schema.dtypes.scalar_type import numel
from schema.etdump import DebugTensor

_PERMUTED = operation("permute")


@dataclass(frozen=True, slots=True)
class DelegateEvent:
    """Logged tensors of one event inside a delegate.

    Attributes:
        name: identifier the backend gave it
        nodes: recorded nodes of its debug handles, in graph order
        grade: kind of the join with those nodes; ORDER if the event may belong to another node
        passes: logged tensors, one a pass
        kind: of the payload node, empty when it is not known
        reads: values of the payload it reads
        writes: values of the payload it writes
        fused: whether an activation is part of it
        dims: order of dimensions that it makes, empty if it makes none or that is unknown
        given: its constant integers, in the order of its arguments
        cut: what a slice takes of its operand, empty for other kinds or if that is unknown
        constants: name and content of the small constants it reads
        settings: all that it computes with beside tensors, empty if that is unknown
        scale: of a rounding, None for other kinds, several scales or an unknown one
    """

    name: str
    nodes: tuple[str, ...]
    grade: str
    passes: tuple[tuple[DebugTensor, ...], ...]
    kind: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    fused: bool = False
    dims: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    cut: tuple[Cut, ...] = ()
    constants: tuple[tuple[str, str], ...] = ()
    settings: str = ""
    scale: float | None = None


Flow = Callable[[Sequence[FlatNode], Sequence[DelegateEvent]], dict[str, DelegateEvent]]
Fits = Callable[[DelegateEvent, FlatNode], bool]


def distinguished(
    members: Sequence[FlatNode],
    events: Sequence[DelegateEvent],
    flow: Flow = lambda _n, _e: {},
    fits: Fits = lambda _e, _n: True,
    shows: Fits = lambda _e, _n: True,
) -> tuple[dict[str, DelegateEvent], set[str]]:
    """Return node -> its event, and the nodes whose event is unknown.

    Args:
        members: nodes of the delegate, in graph order
        events: of one call, in order
        flow: returns node -> event of nodes that share handles, as far as data flow shows it
        fits: whether an event may belong to a node; after a misfit of a kind, order proves nothing
        shows: whether an event has the shape of a node's value, but for layout and ones
    """
    place = {node.node.name: number for number, node in enumerate(members)}
    groups: dict[tuple[str, ...], list[DelegateEvent]] = {}
    for event in events:  # the order of handles is not that of the nodes: quantize, relu
        own = tuple(sorted({name for name in event.nodes if name in place}, key=place.__getitem__))
        if own:
            groups.setdefault(own, []).append(replace(event, nodes=own))
    found: dict[str, DelegateEvent] = {}
    shared: set[str] = set()
    for named, given in sorted(groups.items(), key=lambda group: len(group[0])):
        own = _not_of_others(named, given, members, found)
        several = [replace(event, nodes=own) for event in given]
        one = _only(own, several, members, fits)
        if one is not None and len(groups) > 1 and len(named) == len(place):  # of a whole call
            one = one if becomes(members[place[own[-1]]].operator, one.kind) else None
        if one is not None and len(several) > 1 and _goes_on(one, own, events, members):
            one = None
        if one is not None:
            found.update(dict.fromkeys(own, one))
            continue
        sharing = [node for node in members if node.node.name in own]
        matched = {**_by_kind(sharing, several, fits), **flow(sharing, several)}
        known = {_identity(event) for event in matched.values()}
        parts = [event for event in several if _identity(event) not in known]
        unknown = _read_by_unmatched(sharing, {*found, *matched})
        for name, event in matched.items():
            showing = partial(_shows, shows, members[place[name]])
            whole = _whole(event, parts, events, showing)
            if whole is not event and name in unknown:
                if not is_lowered_to_one(event.kind):
                    continue
                left = [node for node in sharing if node.node.name not in {*found, *matched}]
                rest = _layouts(parts, left)  # others are of the reader
                whole = _whole(event, rest, events, showing)
            found[name] = whole
        shared.update(set(own) - set(found))
    return found, shared


def _not_of_others(
    own: tuple[str, ...],
    events: Sequence[DelegateEvent],
    members: Sequence[FlatNode],
    found: Mapping[str, DelegateEvent],
) -> tuple[str, ...]:
    """Return the nodes of some events without those that an event of their kind has already.

    Handles of a whole call, of which data flow has to tell one, contain nodes of other events.
    """
    operators = {node.node.name: node.operator for node in members}
    left = tuple(
        name
        for name in own
        if name not in found
        or not becomes(operators[name], found[name].kind)
        or any(becomes(operators[name], event.kind) for event in events)
    )
    return left or own


def _only(
    own: Sequence[str], events: Sequence[DelegateEvent], members: Sequence[FlatNode], fits: Fits
) -> DelegateEvent | None:
    """Return the event with the value of its nodes, None if it is ambiguous.

    A backend may make several steps of one node: a cast, and the convolution behind it. The last
    of them that is as large as the node's value has it.
    """
    alone = len(own) == 1 or all(event.grade == DELEGATE_ID for event in events)
    if len(events) > 1 and not alone:
        return None
    last = next(node for node in members if node.node.name == own[-1])
    fitting = [event for event in events if fits(event, last)]
    return (fitting or [*events])[-1]


def _goes_on(
    event: DelegateEvent,
    own: Sequence[str],
    events: Sequence[DelegateEvent],
    members: Sequence[FlatNode],
) -> bool:
    """Return whether a step that no node has reads an event: the value may be that one's.

    Handles of a whole call are what remains to steps whose node is not known. One that another node
    is lowered to may be its.
    """
    for one in events:
        if set(event.writes).isdisjoint(one.reads) or not set(own) < set(one.nodes):
            continue
        others = [node for node in members if node.node.name in {*one.nodes} - {*own}]
        if one.kind and not any(becomes(node.operator, one.kind) for node in others):
            return True
    return False


def _by_kind(
    nodes: Sequence[FlatNode], events: Sequence[DelegateEvent], fits: Fits
) -> dict[str, DelegateEvent]:
    """Return node -> event for kinds with as many events as matching nodes."""
    by_kind: dict[str, list[DelegateEvent]] = {}
    for event in events:
        by_kind.setdefault(event.kind, []).append(event)
    found: dict[str, DelegateEvent] = {}
    for kind, own in by_kind.items():
        fitting = [node for node in nodes if kind and becomes(node.operator, kind)]
        if len(fitting) == len(own) and all(map(fits, own, fitting)):
            for node, event in zip(fitting, own, strict=True):
                name = node.node.name
                found[name] = replace(event, nodes=(name,), grade=ORDER)
    return found


def _whole(
    event: DelegateEvent,
    parts: Sequence[DelegateEvent],
    events: Sequence[DelegateEvent],
    shows: Callable[[DelegateEvent], bool],
) -> DelegateEvent:
    """Return the event with the value of a node that was lowered to several operators.

    Of a matmul and the addition of a bias after it, the value of the node is the sum. A reshape
    behind it may be of the next node, and have another shape than the value.

    Args:
        event: the first
        parts: events of its handles that belong to no node
        events: of one call
        shows: whether an event has the shape of the node's value
    """
    steps = [event]
    for _ in parts:
        readers = [one for one in events if set(steps[-1].writes) & set(one.reads)]
        if len(readers) != 1 or _identity(readers[0]) not in map(_identity, parts):
            break
        if [_form(each) for each in readers[0].passes] != [_form(each) for each in event.passes]:
            break
        steps.append(readers[0])
    last = next(filter(shows, reversed(steps)), steps[-1])
    return event if last is event else replace(event, name=last.name, passes=last.passes)


def _shows(shows: Fits, node: FlatNode, event: DelegateEvent) -> bool:
    return shows(event, node)


def _layouts(parts: Sequence[DelegateEvent], unmatched: Sequence[FlatNode]) -> list[DelegateEvent]:
    """Return the steps that restore the layout of a value, none where a node may be one of them."""
    if any(operation(node.operator) == _PERMUTED for node in unmatched):
        return []
    return [part for part in parts if operation(part.kind) == _PERMUTED]


def _read_by_unmatched(nodes: Sequence[FlatNode], matched: Collection[str]) -> frozenset[str]:
    """Return the nodes whose value one without an event reads, behind copies and views too.

    Operators of the payload that read it may be of that reader.
    """
    found: set[str] = set()
    read: set[Value] = set()  # by a node without an event
    for node in reversed(nodes):
        if node.node.name not in matched:
            if not is_transparent(node) or not read.isdisjoint(node.writes):
                read.update(node.reads)
        elif not read.isdisjoint(node.writes):
            found.add(node.node.name)
    return frozenset(found)


def _identity(event: DelegateEvent) -> tuple[str, tuple[str, ...]]:
    """Return what distinguishes an event: a cast may write what it reads."""
    return event.name, event.writes


def _form(tensors: Sequence[DebugTensor]) -> list[tuple[int, int]]:
    return [(tensor.scalar_type, numel(tensor.sizes)) for tensor in tensors]
