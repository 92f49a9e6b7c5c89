"""Indices of elements that are as large as the recorded ones: any of them may be the largest.

Rounded values are often equal, and values of a backend differ by its error: which of several comes
first in a sort or a maximum is then no fault of the node that looks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inspector.numerics.flat_graph import FlatGraph, Value, is_transparent
from inspector.numerics.replay.comparing import RunLog
from inspector.numerics.replay.inputs import logged_tensor
from inspector.numerics.report import INSIDE, Row

EQUAL = "an index of elements that are as large: they differ by less than the values' own error"
# operator -> which of its results is the index, place of the dimension among its arguments
_CHOOSING = {
    "aten::argmax": (0, 1),
    "aten::argmin": (0, 1),
    "aten::max": (1, 1),
    "aten::min": (1, 1),
    "aten::sort": (1, 1),
    "aten::topk": (1, 2),
}
_LAST = {"aten::sort", "aten::topk"}  # whose dimension is the last one unless it is given
Recorded = Callable[[Collection[Value]], Mapping[Value, Any]]


@dataclass(frozen=True, slots=True)
class _Choice:
    """A row with an index, and the operator that made it."""

    row: int
    logged: Any
    read: Value
    index: Value
    values: Value | None
    dim: int | None


def with_equal_choices(
    log: RunLog, rows: Sequence[Row], graph: FlatGraph, recorded: Recorded
) -> tuple[Row, ...]:
    """Return the rows; those whose indices choose elements as large as the recorded ones agree.

    Args:
        log: tensors of the run and their joins
        rows: of the comparison
        graph: recorded graph
        recorded: returns the recorded ones of some values
    """
    choices = [one for number, row in enumerate(rows) for one in _choices(log, row, number, graph)]
    if not choices:
        return tuple(rows)
    found = recorded({one for each in choices for one in (each.read, each.index)})
    answer = [*rows]
    for choice in choices:
        error = _error(rows, log, graph, choice)
        if choice.read in found and choice.index in found and _are_equal(choice, found, error):
            row = answer[choice.row]
            answer[choice.row] = replace(row, diverges=False, differs=False, note=EQUAL)
    return tuple(answer)


def _choices(log: RunLog, row: Row, number: int, graph: FlatGraph) -> list[_Choice]:
    value, passes = _logged(log, row) if row.differs else (None, ())
    at = value
    while at is not None:  # views of the index
        maker = graph.producers.get(at)
        if maker is None:
            return []
        node, place = maker
        index, dim = _CHOOSING.get(node.operator, (-1, 0))
        if place == index and len(node.writes) > index:
            logged = logged_tensor(log.buffer, next(iter(passes)))
            if isinstance(logged, str) or logged.is_floating_point():
                return []
            literal = node.node.args[dim].literal if len(node.node.args) > dim else None
            given = literal if isinstance(literal, int) else None
            if given is None and node.operator in _LAST:
                given = -1
            others = node.writes[0] if index else None
            return [_Choice(number, logged, node.reads[0], node.writes[index], others, given)]
        at = node.reads[0] if is_transparent(node) else None
    return []


def _logged(log: RunLog, row: Row) -> tuple[Value | None, Sequence[Any]]:
    """Return the recorded value of a row, and what was logged of it."""
    if row.place == INSIDE:
        own = [o for o in log.inside if (o.instruction, o.slot) == (row.instruction, row.slot)]
        target = own[0].target if own else None
        passes: Sequence[Any] = own[0].passes if own else ()
    else:
        target = log.join.targets.get((row.instruction, row.slot))
        each = log.logged.outputs.get(row.instruction, ())
        passes = [one[row.slot] for one in each if row.slot in one]
    return (target.value, passes) if target is not None and len(passes) == 1 else (None, ())


def _error(rows: Sequence[Row], log: RunLog, graph: FlatGraph, choice: _Choice) -> float:
    """Return the largest error of the values that were chosen from, as far as it is known."""
    sources = {graph.root(choice.read), choice.values}
    known = [
        row.total.max_abs
        for row in rows
        if row.total is not None
        for value in (_logged(log, row)[0],)
        if value is not None and (value in sources or graph.root(value) in sources)
    ]
    return max(known, default=0.0)


def _are_equal(choice: _Choice, found: Mapping[Value, Any], error: float) -> bool:
    values, index = found[choice.read], found[choice.index]
    if not all(hasattr(one, "gather") for one in (values, index)):
        return False
    if choice.logged.numel() != index.numel() or not values.dim():
        return False
    if choice.dim is None:
        values, dim = values.reshape(-1), 0
        index, logged = index.reshape(-1), choice.logged.reshape(-1)
    else:
        dim = choice.dim % values.dim()
        if index.dim() < values.dim():
            index = index.unsqueeze(dim)
        logged = choice.logged.reshape(index.shape)
    if int(logged.min()) < 0 or int(logged.max()) >= values.shape[dim]:
        return False
    values = values.double()
    difference = values.gather(dim, logged.long()) - values.gather(dim, index.long())
    return bool((difference.abs() <= 2 * error).all())
