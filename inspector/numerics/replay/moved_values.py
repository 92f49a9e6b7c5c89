"""Finds values inside delegates that go by the name of a node and are not its value.

A vendor's compiler moves a factor or a shift past other layers, or folds it into the weights before
them, and keeps their names: a layer then computes the value of its node times that factor. What
reads it has the recorded value again, which the node computed from such a value has not. A value
that is given twice, inside and as a result of the delegate, is that of the result. The factor is
one that the graph has: an error that its readers happen to undo is none, and stays one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from inspector.numerics.flat_graph import FlatGraph, Value
from inspector.numerics.inside import InsideOutput
from inspector.numerics.metrics import Metrics
from inspector.numerics.report import INSIDE, INSTRUCTION, Row
from schema.backends import backend_of

MOVED = (
    "its backend computes another value under this name: a factor or a shift was moved past it, and"
    " what reads it has the recorded value"
)
Explain = Callable[[Sequence[InsideOutput]], Collection[tuple[int, int]]]


def without_moved(
    inside: Sequence[InsideOutput], rows: Sequence[Row], graph: FlatGraph, explain: Explain
) -> tuple[InsideOutput, ...] | None:
    """Return the nodes inside delegates, those with another value marked; None without any.

    Args:
        inside: nodes with their logged tensors
        rows: of a first comparison with these
        graph: recorded graph
        explain: returns call and slot of those whose tensors are their values times factors that
            the graph has
    """
    backends = {row.instruction: row.operator for row in rows if row.place == INSTRUCTION}
    moving = {step for step, name in backends.items() if backend_of(name).moves_values}
    found: set[tuple[int, int]] = set()
    for step in moving:
        own = [one for one in inside if one.instruction == step]
        members = {one.node for one in own}
        values = {
            one.slot: one.target.value for one in own if one.target is not None and one.passes
        }
        results = [row for row in rows if row.instruction == step and row.place == INSTRUCTION]
        inner = [row for row in rows if row.instruction == step and row.place == INSIDE]
        found |= {(step, slot) for slot in _Delegate(graph, members, values).moved(inner, results)}
    if not found:
        return None
    explained = explain([one for one in inside if (one.instruction, one.slot) in found])
    if not explained:
        return None
    return tuple(
        replace(one, target=None, passes=(), reason=MOVED)
        if (one.instruction, one.slot) in explained
        else one
        for one in inside
    )


class _Delegate:
    """The nodes of one call.

    Args:
        graph: recorded graph
        members: names of the nodes
        values: slot of a node -> its value
    """

    def __init__(self, graph: FlatGraph, members: set[str], values: Mapping[int, Value]) -> None:
        self._graph = graph
        self._members = members
        self._values = values

    def moved(self, inner: Sequence[Row], results: Sequence[Row]) -> Iterator[int]:
        """Yield the slots of the nodes that have another value."""
        by_value = {
            self._values[row.slot]: row
            for row in inner
            if row.slot in self._values and row.total is not None
        }
        leaving = {row.node: row for row in results if row.total is not None}
        moved: set[Value] = set()
        for node in reversed(self._graph.nodes):
            for value in node.writes:
                row = by_value.get(value)
                if row is None or not _is_wrong(row):
                    continue
                result = leaving.get(row.node)
                if result is not None and result.value == row.value:
                    other = not _is_wrong(result) or _is_undone(result.total, row.total)
                else:
                    readers = [*self._readers(value, by_value)]
                    other = bool(readers) and all(
                        one in moved or _is_right(by_value[one]) for one in readers
                    )
                if other:
                    moved.add(value)
                    yield row.slot

    def _readers(self, value: Value, rows: Mapping[Value, Row]) -> Iterator[Value]:
        """Yield the next values behind a value that were compared."""
        left, seen = [value], {value}
        while left:
            for user in self._graph.users.get(left.pop(), ()):
                if user.node.name not in self._members:
                    continue
                for result in user.writes:
                    if result in seen:
                        continue
                    seen.add(result)
                    if result in rows:
                        yield result
                    else:
                        left.append(result)


def _is_wrong(row: Row) -> bool:
    return row.total is not None and row.total.out_of_tolerance > 0


def _is_right(row: Row) -> bool:
    """Return whether a value is right that its node does not compute from what it would read."""
    own_differs = row.own is None or row.own.out_of_tolerance > 0
    return own_differs and (not _is_wrong(row) or _is_undone(row.total, row.own))


def _is_undone(total: Metrics | None, wrong: Metrics | None) -> bool:
    return total is not None and wrong is not None and total.max_abs < wrong.max_abs
