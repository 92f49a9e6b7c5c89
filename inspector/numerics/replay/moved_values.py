"""Finds values inside delegates that go by the name of a node and are not its value.

A vendor's compiler moves a factor or a shift past other layers, or folds it into the weights before
them, and keeps their names: a layer then computes the value of its node times that factor. What
reads it has the recorded value again, which the node computed from such a value has not. A value
that is given twice, inside and as a result of the delegate, is that of the result. The factor is
one that the graph has. Without one, the value may be of another step of the same node, and the join
is doubted: whatever it is, what its readers have was not computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from inspector.numerics.flat_graph import FlatGraph, Value
from inspector.numerics.grades import ORDER
from inspector.numerics.inside import MOVED, InsideOutput
from inspector.numerics.metrics import Metrics
from inspector.numerics.report import INSIDE, INSTRUCTION, Row

UNREAD = (
    "not distinguishable: what reads it has the recorded value, which it would not have from this"
    " one; the trace may have another step of its node"
)
_CLEARLY = 2**-4  # of an error, what is left of it where it was not read
Explain = Callable[[Sequence[InsideOutput]], Collection[tuple[int, int]]]


def without_moved(
    inside: Sequence[InsideOutput], rows: Sequence[Row], graph: FlatGraph, explain: Explain
) -> tuple[InsideOutput, ...] | None:
    """Return the nodes inside delegates, those with another value marked; None without any.

    Those whose value is not explained are joined by order then, which proves nothing.

    Args:
        inside: nodes with their logged tensors
        rows: of a first comparison with these
        graph: recorded graph
        explain: returns call and slot of those whose tensors are their values times factors that
            the graph has
    """
    found: set[tuple[int, int]] = set()
    unread: set[tuple[int, int]] = set()
    for step in dict.fromkeys(one.instruction for one in inside):
        own = [one for one in inside if one.instruction == step]
        members = {one.node for one in own}
        values = {
            one.slot: one.target.value for one in own if one.target is not None and one.passes
        }
        results = [row for row in rows if row.instruction == step and row.place == INSTRUCTION]
        inner = [row for row in rows if row.instruction == step and row.place == INSIDE]
        delegate = _Delegate(graph, members, values)
        found |= {(step, slot) for slot in delegate.moved(inner, results)}
        unread |= {(step, slot) for slot in delegate.moved(inner, results, clearly=True)}
    if not found:
        return None
    explained = explain([one for one in inside if (one.instruction, one.slot) in found])
    if not explained and not unread:
        return None
    return tuple(
        replace(one, target=None, passes=(), reason=MOVED)
        if (one.instruction, one.slot) in explained
        else _doubted(one)
        if (one.instruction, one.slot) in unread
        else one
        for one in inside
    )


def _doubted(one: InsideOutput) -> InsideOutput:
    target = None if one.target is None else replace(one.target, grade=ORDER)
    return replace(one, target=target, doubt=UNREAD)


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

    def moved(
        self, inner: Sequence[Row], results: Sequence[Row], *, clearly: bool = False
    ) -> Iterator[int]:
        """Yield the slots of the nodes that have another value.

        Args:
            inner: rows of nodes inside
            results: rows of what the delegate returns
            clearly: whether it must be far from what others have, as errors of rounding are not
        """
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
                    undone = _is_undone(result.total, row.total, clearly=clearly)
                    other = undone or (not clearly and not _is_wrong(result))
                else:
                    readers = [*self._readers(value, by_value)]
                    other = bool(readers) and all(
                        one in moved or _is_right(by_value[one], clearly=clearly) for one in readers
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


def _is_right(row: Row, *, clearly: bool) -> bool:
    """Return whether a value is right that its node does not compute from what it would read."""
    if clearly:
        return _is_undone(row.total, row.own, clearly=True)
    own_differs = row.own is None or row.own.out_of_tolerance > 0
    return own_differs and (not _is_wrong(row) or _is_undone(row.total, row.own))


def _is_undone(total: Metrics | None, wrong: Metrics | None, *, clearly: bool = False) -> bool:
    if total is None or wrong is None:
        return False
    return total.max_abs < (wrong.max_abs * _CLEARLY if clearly else wrong.max_abs)
