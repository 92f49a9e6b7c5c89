"""Values that a payload holds in other steps than the record, until it rounds them.

A vendor's compiler divides what a sum adds, and the rounding behind it, by one of the scales: that
operand needs no product then. Between them are the values of the record times a factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations
from typing import TypeVar

from inspector.join.lowered_kinds import operation
from inspector.numerics.flat_graph import FlatGraph, FlatNode, Value, number_argument
from inspector.numerics.payload_values import CLAMP, DEQUANTIZE, QUANTIZE
from inspector.numerics.shared_handles import DelegateEvent

_SAME = 2**-7  # of a scale: two roundings to half precision
_KEEPING = frozenset(("add", "sub", CLAMP))  # of operands with one factor, the result has it too
_ROUNDS, _REAL = "quantize", "dequantize"  # kinds of payload nodes

_Step = TypeVar("_Step", DelegateEvent, FlatNode)


def rescaled(
    graph: FlatGraph,
    matched: Mapping[str, DelegateEvent],
    nodes: Sequence[FlatNode],
    events: Sequence[DelegateEvent],
) -> frozenset[str]:
    """Return the nodes whose value is multiplied with a factor that the rounding behind takes out.

    Args:
        graph: the recorded graph
        matched: node -> its event
        nodes: of the delegate, in graph order
        events: all of the call, in order
    """
    if not any(event.kind == _REAL and event.scale for event in events):
        return frozenset()
    own = [(node, matched[node.node.name]) for node in nodes if node.node.name in matched]
    own = [(node, event) for node, event in own if node.writes and event.writes]
    steps = _ValueFactors(graph, own, events)
    return frozenset(node.node.name for node, event in own if steps.is_rescaled(node, event))


class _ValueFactors:
    """The factors of a payload's values, beside those of the record."""

    def __init__(
        self,
        graph: FlatGraph,
        own: Sequence[tuple[FlatNode, DelegateEvent]],
        events: Sequence[DelegateEvent],
    ) -> None:
        self._graph = graph
        self._readers: dict[str, list[DelegateEvent]] = {}
        for event in events:
            for name in event.reads:
                self._readers.setdefault(name, []).append(event)
        reals = {e.writes[0]: e.scale for e in events if e.kind == _REAL and e.writes and e.scale}
        self._factors: dict[str, float] = {}
        for node, event in own:
            before, after = self._scale_before(node.writes[0]), reals.get(event.writes[0])
            factor = after / before if before and after else self._of_operands(node, event, reals)
            if factor and not _is_near(factor, 1.0):
                self._factors[event.writes[0]] = factor
        for event in events:  # what is between a sum and its rounding
            factor = self._factors.get(event.reads[0]) if len(event.reads) == 1 else None
            if factor and operation(event.kind) == CLAMP and event.writes:
                self._factors.setdefault(event.writes[0], factor)

    def _scale_before(self, value: Value) -> float | None:
        """Return the scale of the integers that a recorded value is made of."""
        maker = self._graph.producers.get(value)
        real = maker is not None and DEQUANTIZE in maker[0].operator
        return number_argument(maker[0].node, "scale") if maker is not None and real else None

    def _of_operands(
        self, node: FlatNode, event: DelegateEvent, reals: Mapping[str, float]
    ) -> float | None:
        """Return the factor that both operands of a sum have, in one of their orders."""
        before = [one for value in node.reads if (one := self._scale_before(value))]
        after = [one for name in event.reads if (one := reals.get(name))]
        if operation(event.kind) not in _KEEPING or not len(before) == len(after) == 2:
            return None
        found = (
            after[0] / one
            for one, other in permutations(before)
            if _is_near(after[0] / one, after[1] / other)
        )
        return next(found, None)

    def is_rescaled(self, node: FlatNode, event: DelegateEvent) -> bool:
        """Return whether a value has a factor with which all is rounded that is made of it."""
        factor = self._factors.get(event.writes[0])
        if factor is None:
            return False
        steps = [
            one.scale if one.kind == _ROUNDS else None
            for one in _behind(
                [event], lambda e: e.kind, lambda e: self._readers.get(e.writes[0], ())
            )
        ]
        users = self._graph.users
        # The record has a node for each reader of rounded integers, a payload one step.
        alike = users.get(node.reads[0], ()) if node.reads and DEQUANTIZE in node.operator else ()
        same = [one for one in alike if one.operator == node.operator and one.writes]
        recorded = [
            number_argument(one.node, "scale") if QUANTIZE in one.operator else None
            for one in _behind(
                same or [node], lambda n: n.operator, lambda n: users.get(n.writes[0], ())
            )
        ]
        return bool(steps) and all(
            step and any(one and _is_near(step, one * factor) for one in recorded) for step in steps
        )


def _behind(
    steps: Sequence[_Step],
    kind: Callable[[_Step], str],
    readers: Callable[[_Step], Iterable[_Step]],
) -> list[_Step]:
    """Return what reads some steps, or what sums and activations make of them."""
    left, found, seen = [*steps], list[_Step](), {*steps}
    while left:
        for one in readers(left.pop()):
            if one not in seen:
                seen.add(one)
                (left if operation(kind(one)) in _KEEPING and one.writes else found).append(one)
    return found


def _is_near(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * abs(other)
