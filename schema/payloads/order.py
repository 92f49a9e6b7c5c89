"""Joins the runtime's events to payload nodes by their order alone.

XNNPACK logs operator names in order and no id. Of all alignments of events and nodes,
those with the fewest nodes without an event are considered; an event with the same
node in all of them is joined, the others remain unjoined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from schema.payloads.model import RuntimeOperator

_COUNTER = re.compile(r" #\d+$")
# The alignment takes time and memory for each pair of a node and an event; beyond this many pairs
# only the alignment without gaps is tried.
_MAX_CELLS = 4_000_000
_IMPOSSIBLE = 1 << 30  # above every cost: a cost counts nodes, fewer than _MAX_CELLS
_Costs = list[list[int]]


def operator_name(event_name: str) -> str:
    """Return an event's name without the running index ``#k``."""
    return _COUNTER.sub("", event_name)


def matches(names: tuple[str, ...], event_name: str) -> bool:
    """Return whether an event has one of the family names (the text before the bracket)."""
    return operator_name(event_name).split(" (", 1)[0] in names


def join_by_order(
    operators: Sequence[RuntimeOperator], event_names: Sequence[str]
) -> tuple[str | None, ...] | None:
    """Return the node of each event; None for an event that several nodes could have logged.

    The entire result is None if the events do not fit these nodes.

    Args:
        operators: ``Payload.operators``
        event_names: names of one delegate call's events, in order
    """
    rows, columns = len(operators), len(event_names)
    if (rows + 1) * (columns + 1) > _MAX_CELLS:
        return _gapless(operators, event_names)
    behind = _costs_behind(operators, event_names)
    best = behind[0][0]
    if best >= _IMPOSSIBLE:
        return None
    takers: list[set[int]] = [set() for _ in range(columns)]
    for row, at, taken in _optimal_steps(operators, event_names, behind):
        for event in range(at, at + taken):
            takers[event].add(row)
    return tuple(operators[min(rows)].node if len(rows) == 1 else None for rows in takers)


def _gapless(
    operators: Sequence[RuntimeOperator], event_names: Sequence[str]
) -> tuple[str | None, ...] | None:
    # Too long for a table of all pairs: only a join in which every node has its event.
    joined: list[str | None] = []
    for operator in operators:
        taken = _choices(operator, event_names, len(joined))[-1]
        if not taken:
            return None
        joined.extend([operator.node] * taken)
    return tuple(joined) if len(joined) == len(event_names) else None


def _choices(operator: RuntimeOperator, event_names: Sequence[str], at: int) -> list[int]:
    """Return the numbers of events from ``at`` on that a node may have logged, fewest first."""
    counts = [0]
    if at < len(event_names) and matches(operator.names, event_names[at]):
        counts.append(1)
        after = at + 1
        if after < len(event_names) and matches(operator.followed_by, event_names[after]):
            counts.append(2)
    return counts


def _missing(operator: RuntimeOperator, taken: int) -> int:
    if taken == 0 and not operator.optional:
        return _IMPOSSIBLE
    return (2 if operator.followed_by else 1) - taken


def _costs_behind(operators: Sequence[RuntimeOperator], event_names: Sequence[str]) -> _Costs:
    """Return how many events are missing at least from (node, event) to the end."""
    rows, columns = len(operators), len(event_names)
    costs = [[_IMPOSSIBLE] * (columns + 1) for _ in range(rows + 1)]
    costs[rows][columns] = 0
    for row in range(rows - 1, -1, -1):
        operator = operators[row]
        for at in range(columns, -1, -1):
            costs[row][at] = min(
                _IMPOSSIBLE,
                *(
                    costs[row + 1][at + taken] + _missing(operator, taken)
                    for taken in _choices(operator, event_names, at)
                ),
            )
    return costs


def _optimal_steps(
    operators: Sequence[RuntimeOperator], event_names: Sequence[str], behind: _Costs
) -> Iterator[tuple[int, int, int]]:
    """Yield (node, event, number of events) of every step of a cheapest alignment."""
    reached = {0}
    for row, operator in enumerate(operators):
        following: set[int] = set()
        for at in reached:
            for taken in _choices(operator, event_names, at):
                cost = behind[row + 1][at + taken] + _missing(operator, taken)
                if cost == behind[row][at] < _IMPOSSIBLE:
                    following.add(at + taken)
                    yield row, at, taken
        reached = following
