"""Runs the graphs that nodes hold: branches, loops, and programs inside recorded delegates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from runtime.emulation.recorded import UNKNOWN, NestedCall, RecordedGraph, Scope, Sides, on_sides
from schema.graph import inner_name

CONDITION, MAP, SCAN, LOOP, DELEGATE = "cond", "map_impl", "scan", "while_loop", "delegate"
_Values = Sequence[Mapping[str, Any]]


class NestedRun(Protocol):
    """A run of a recorded graph, as the nodes that hold graphs see it (`emulation.graph`)."""

    sides: int

    def inner(
        self, graph: RecordedGraph, given: Sequence[Sides], scope: Scope, *, counted: bool = True
    ) -> list[Sides]:
        """Return the outputs of a nested graph."""
        ...


def _condition(run: NestedRun, call: NestedCall, values: _Values, scope: Scope) -> Sides:
    (chosen,), given = _operands(call, values)
    truths = [_truth(value) for value in chosen]
    results: Sides = [UNKNOWN] * run.sides
    for number, truth in ((0, True), (1, False)):
        here = [each is truth for each in truths]
        if any(here):
            place = (*scope, inner_name(call.name, number))
            branch = call.graphs[number]
            found = run.inner(branch, _only(here, given), place, counted=here[-1])
            for side, result in enumerate(_joined(found, run.sides)):
                results[side] = result if here[side] else results[side]
    return results


def _map(run: NestedRun, call: NestedCall, values: _Values, scope: Scope) -> Sides:
    columns, rest = _operands(call, values)
    place = (*scope, inner_name(call.name, 0))
    rows = [
        run.inner(call.graphs[0], [*(_row(column, at) for column in columns), *rest], place)
        for at in range(_length(columns))
    ]
    return _joined(_stacked(rows), run.sides)


def _scan(run: NestedRun, call: NestedCall, values: _Values, scope: Scope) -> Sides:
    carried, columns, rest = _operands(call, values)
    place = (*scope, inner_name(call.name, 0))
    rows: list[list[Sides]] = []
    for at in range(_length(columns)):
        given = [*carried, *(_row(column, at) for column in columns), *rest]
        found = run.inner(call.graphs[0], given, place)
        carried, row = found[: len(carried)], found[len(carried) :]
        rows.append(row)
    return _joined([*carried, *_stacked(rows)], run.sides)


def _loop(run: NestedRun, call: NestedCall, values: _Values, scope: Scope) -> Sides:
    carried, rest = _operands(call, values)
    places = [(*scope, inner_name(call.name, number)) for number in (0, 1)]
    going = [True] * run.sides
    while True:
        asked = run.inner(call.graphs[0], [*carried, *rest], places[0], counted=going[-1])[0]
        truths = [_truth(value) for value in asked]
        going = [on and truth is True for on, truth in zip(going, truths, strict=True)]
        carried = _only([truth is not None for truth in truths], carried)
        if not any(going):
            return _joined(carried, run.sides)
        found = run.inner(call.graphs[1], [*carried, *rest], places[1], counted=going[-1])
        carried = [
            [a if on else b for on, a, b in zip(going, new, old, strict=True)]
            for new, old in zip(found, carried, strict=True)
        ]


def _delegate(run: NestedRun, call: NestedCall, values: _Values, scope: Scope) -> Sides:
    (given,) = _operands(call, values)
    place = (*scope, inner_name(call.name, 0))
    return _joined(run.inner(call.graphs[0], given, place), run.sides)


def _operands(call: NestedCall, values: _Values) -> list[list[Sides]]:
    return [[on_sides(item, values) for item in group] for group in call.operands]


def _truth(value: Any) -> bool | None:  # noqa: ANN401 - a scalar, or unknown
    return None if value is UNKNOWN else bool(value)


def _only(here: Sequence[bool], given: Sequence[Sides]) -> list[Sides]:
    """Return values that are known on some sides only."""
    return [[v if on else UNKNOWN for on, v in zip(here, each, strict=True)] for each in given]


def _joined(results: Sequence[Sides], sides: int) -> Sides:
    """Return the results of a nested graph as those of the node."""
    return [tuple(each[side] for each in results) for side in range(sides)]


def _length(columns: Sequence[Sides]) -> int:
    return next((len(value) for each in columns for value in each if value is not UNKNOWN), 0)


def _row(column: Sides, index: int) -> Sides:
    return [UNKNOWN if value is UNKNOWN else value[index] for value in column]


def _stacked(rows: Sequence[Sequence[Sides]]) -> list[Sides]:
    return [
        [
            UNKNOWN if any(value is UNKNOWN for value in side) else torch.stack(side)
            for side in zip(*column, strict=True)
        ]
        for column in zip(*rows, strict=True)
    ]


_Run = Callable[[NestedRun, NestedCall, _Values, Scope], Sides]
NESTED: dict[str, _Run] = {
    CONDITION: _condition,
    MAP: _map,
    SCAN: _scan,
    LOOP: _loop,
    DELEGATE: _delegate,
}
