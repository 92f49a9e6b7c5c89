"""Finds the last step of an operator that a compiler has taken apart into several.

All that is computed from a value passes some steps, one after another, on both sides of a join.
From the last of them backwards each step of the payload is the node of its kind. If one node is
left, and a compiler has no step of its kind, then it is all the steps that are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import Generic, NamedTuple, TypeVar

from inspector.join.lowered_kinds import becomes, operation
from inspector.numerics.flat_graph import FlatNode, Value
from inspector.numerics.other_forms import RECIPROCAL, REDUCED
from inspector.numerics.payload_values import PayloadValues, is_moving
from inspector.numerics.shared_handles import DelegateEvent

_Key = TypeVar("_Key", str, Value)
_Made = TypeVar("_Made", DelegateEvent, FlatNode)


class _Passage(NamedTuple, Generic[_Key, _Made]):
    """One step of a side: what it reads and writes, moved values as what they move."""

    reads: Collection[_Key]
    write: _Key
    made: _Made


def taken_apart(values: PayloadValues) -> Iterator[tuple[DelegateEvent, FlatNode]]:
    """Yield the last step of each operator that has several, and its node."""
    names: dict[Value, set[str]] = {}
    for place in {values.place(name) for one in values.steps for name in one.reads}:
        if (root := values.of(place)) is not None:
            names.setdefault(root, set()).add(place)
    made = [
        _Passage({values.place(name) for name in values.data(one)}, one.writes[0], one)
        for one in values.steps
        if not is_moving(one)
    ]
    asked = [
        _Passage({values.root(value) for value in one.reads}, one.writes[0], one)
        for one in values.asked
    ]
    for root, starts in names.items():
        left = [one for one in asked if root in one.reads and one.write not in values.learned]
        if len(left) == 1 and _reads_one(values, left[0]):
            event = _last_step(values, made, asked, starts, left[0])
            if event is not None:
                yield event, left[0].made


def _reads_one(values: PayloadValues, step: _Passage[Value, FlatNode]) -> bool:
    """Return whether a node has one result and one operand beside constants."""
    computed = [one for one in step.reads if one in values.learned or one in values.makers]
    return len(computed) == len(step.made.writes) == 1


def _last_step(
    values: PayloadValues,
    made: Sequence[_Passage[str, DelegateEvent]],
    asked: Sequence[_Passage[Value, FlatNode]],
    starts: Set[str],
    first: _Passage[Value, FlatNode],
) -> DelegateEvent | None:
    """Return the step with the value of a node that alone reads a known one, None if unknown."""
    own = [one for one in made if values.of(one.write) is None or starts.isdisjoint(one.reads)]
    beginning = (one.made for one in own if not starts.isdisjoint(one.reads))
    if any(becomes(first.made.operator, one.kind) for one in beginning):
        return None
    results = {values.place(name) for name in values.border if name in values.writers}
    events = list(_passed(own, starts, results))
    nodes = [first, *_passed(asked, {first.write}, values.graph.results)]
    if any(operation(one.made.operator) == "div" for one in nodes):
        events = [one for one in events if one.made.kind != RECIPROCAL]
    ends = [one.write for one in nodes if one.write in values.learned]
    if ends:
        known = [values.of(one.write) for one in events]
        if ends[0] not in known:
            return None
        del events[known.index(ends[0]) + 1 :]  # the known one may be taken apart itself
        del nodes[[one.write for one in nodes].index(ends[0]) + 1 :]
    while len(nodes) > 1 and events and _computes(values, events[-1].made, nodes[-1].made):
        nodes.pop()
        events.pop()
    return events[-1].made if len(nodes) == 1 and events else None


def _computes(values: PayloadValues, event: DelegateEvent, node: FlatNode) -> bool:
    """Return whether a step is one of a node's kind: a division multiplies by a reciprocal."""
    makers = (values.writers.get(values.place(name)) for name in values.data(event))
    own = operation(node.operator)
    if own == "div":
        return any(one is not None and one.kind == RECIPROCAL for one in makers)
    return REDUCED.get(event.kind) == own or becomes(node.operator, event.kind)


def _passed(
    steps: Iterable[_Passage[_Key, _Made]], starts: Collection[_Key], results: Collection[_Key]
) -> Iterator[_Passage[_Key, _Made]]:
    """Yield the steps that all which is computed from some values passes, in order.

    Args:
        steps: of one side, in order
        starts: the values
        results: values that are read elsewhere as well
    """
    reached = set(starts)
    found: list[_Passage[_Key, _Made]] = []
    for one in steps:
        if not reached.isdisjoint(one.reads):
            found.append(one)
            reached.add(one.write)
    readers = Counter(value for one in found for value in reached.intersection(one.reads))
    for value in starts:  # some are not read at all
        readers.setdefault(value, 0)
    open_values = {value for value in starts if readers[value]}
    for one in found:
        for value in reached.intersection(one.reads):
            readers[value] -= 1
            if not readers[value] and value not in results:
                open_values.discard(value)
        if not open_values:
            yield one
        open_values.add(one.write)
