"""Pairs operators of a payload with recorded nodes where not all that they read is known.

A compiler takes an operator apart whose value others read. Behind it the two graphs are alike
again: an operator that reads a known value beside it is that node's if no other can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations, product
from typing import TypeVar

from inspector.join.lowered_kinds import becomes, operation
from inspector.numerics.element_moves import CUTTING
from inspector.numerics.flat_graph import FlatNode, Value, constant_values
from inspector.numerics.other_forms import RECIPROCAL
from inspector.numerics.payload_values import PayloadValues, is_moving
from inspector.numerics.shared_handles import DelegateEvent

_Side = TypeVar("_Side", DelegateEvent, FlatNode)
Pairs = list[tuple[DelegateEvent, FlatNode]]
OF_TWO = frozenset(("add", "div", "maximum", "minimum", "mul", "pow", "sub"))
COMMUTATIVE = frozenset(("add", "maximum", "minimum", "mul"))
# A value, the content of a constant or "" if that is not known, None for an unknown value
_Operand = Value | str | None


def single(pairs: Pairs) -> Pairs:
    """Return the pairs whose sides are in no other pair."""
    sides = [Counter(id(one) for one in side) for side in zip(*pairs, strict=True)]
    return [(e, n) for e, n in pairs if sides[0][id(e)] == sides[1][id(n)] == 1]


class PartlyKnown:
    """Finds pairs by the operands that are known.

    Args:
        values: of payload and record
        content: returns the content of a constant of the payload, or ""
        recorded: returns that of a recorded value, or ""
    """

    def __init__(
        self,
        values: PayloadValues,
        content: Callable[[str], str],
        recorded: Callable[[Value], str],
    ) -> None:
        self._values = values
        self._content = content
        self._recorded = recorded
        self._constant = constant_values(values.graph)

    def pairs(self) -> Pairs:
        """Return the operators and nodes that only each other can be, by what is known so far."""
        values = self._values
        events = [one for one in values.steps if not one.cut and not is_moving(one)]
        made = [(one, self._read(one)) for one in events if values.of(one.writes[0]) is None]
        nodes = [one for one in values.asked if one.writes[0] not in values.learned]
        asked = [(one, self._asked(one)) for one in nodes]
        fitting = [
            (event, node)
            for (event, read), (node, given) in product(_known(made), _known(asked))
            if becomes(node.operator, event.kind) and _agree(read, given, node)
        ]
        return [(e, n) for e, n in single(fitting) if self._is_read_alike(e, n)]

    def _read(self, event: DelegateEvent) -> Sequence[_Operand]:
        values = self._values
        if operation(event.kind) not in OF_TWO:
            return [values.of(name) for name in values.data(event)]
        return [
            values.of(name)
            if values.place(name) in values.writers or values.of(name) is not None
            else self._content(name)
            for name in event.reads[:2]
        ]

    def _asked(self, node: FlatNode) -> Sequence[_Operand]:
        values = self._values
        found: list[_Operand] = []
        for value in node.reads[:2] if operation(node.operator) in OF_TWO else node.reads:
            root = values.root(value)
            if root in values.learned:
                found.append(root)
            elif value in self._constant or root not in values.graph.producers:
                found.append(self._recorded(value))
            else:
                found.append(None)
        if operation(node.operator) in OF_TWO:
            return [*found, ""] if len(found) == 1 else found  # by a number
        return [one for one in found if not isinstance(one, str)]

    def _is_read_alike(self, event: DelegateEvent, node: FlatNode) -> bool:
        """Return whether a reader of one can be a reader of the other."""
        place = event.writes[0]
        readers = [
            one
            for one in self._values.steps
            if not is_moving(one) and place in map(self._values.place, one.reads)
        ]
        users = [
            one for one in self._values.asked if node.writes[0] in map(self._values.root, one.reads)
        ]
        return any(
            becomes(user.operator, one.kind)
            or (one.cut and operation(user.operator) in CUTTING)
            or (one.kind == RECIPROCAL and operation(user.operator) == "div")
            for user, one in product(users, readers)
        )


def _known(
    sides: Iterable[tuple[_Side, Sequence[_Operand]]],
) -> list[tuple[_Side, Sequence[_Operand]]]:
    return [(one, read) for one, read in sides if any(isinstance(v, tuple) for v in read)]


def _agree(read: Sequence[_Operand], given: Sequence[_Operand], node: FlatNode) -> bool:
    if len(read) != len(given):
        return False
    orders = permutations(given) if operation(node.operator) in COMMUTATIVE else [given]
    return any(all(map(_alike, read, order)) for order in orders)


def _alike(one: _Operand, other: _Operand) -> bool:
    both_constant = isinstance(one, str) and isinstance(other, str)
    return one == other or (both_constant and "" in (one, other))
