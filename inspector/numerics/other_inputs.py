"""Tells a run that had other inputs than those assumed from one that computed wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.numerics.flat_graph import Value
from inspector.numerics.inputs import Inputs
from inspector.numerics.join_facts import Join
from inspector.numerics.report import Row

# What moves elements and computes none cannot be wrong by itself: its input was another one.
_MOVES = (
    "slice_copy",
    "select_copy",
    "permute_copy",
    "transpose_copy",
    "view_copy",
    "expand_copy",
    "squeeze_copy",
    "unsqueeze_copy",
    "split_with_sizes_copy",
    "embedding",
    "index",
    "cat",
    "clone",
    "_clone_dim_order",
)
_NOTE = "the run had another input here than the one assumed"


def with_other_inputs(
    rows: Sequence[Row], join: Join, inputs: Inputs
) -> tuple[tuple[Row, ...], list[str]]:
    """Return rows that read an input the run did not have without blaming them, and notes.

    An input was another one when all that read it differ, and they are several or only move it.
    """
    if join.graph is None:
        return tuple(rows), []
    names: dict[Value, int] = {value: place for place, value in enumerate(join.graph.inputs)}
    readers: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        for place in _reads(row, join, names):
            if place not in inputs.traced and row.total is not None:
                readers.setdefault(place, []).append(number)
    other = [place for place, numbers in readers.items() if _contradicted(rows, numbers)]
    if not other:
        return tuple(rows), _open_questions(rows, join, readers)
    changed = list(rows)
    for numbers in readers.values():
        for number in numbers:
            if changed[number].diverges:
                changed[number] = replace(changed[number], diverges=False, note=_NOTE)
    told = ", ".join(join.graph.inputs[place][1] for place in sorted(other))
    source = inputs.source or "ones assumed"
    return tuple(changed), [f"the run had other inputs than the {source}: {told}"]


def _open_questions(rows: Sequence[Row], join: Join, readers: dict[int, list[int]]) -> list[str]:
    """Say where an error may as well be another input than the one assumed."""
    assert join.graph is not None
    return [
        f"not distinguishable: {rows[numbers[0]].node} computed otherwise, or the run had another"
        f" {join.graph.inputs[place][1]} than the one assumed; --inputs FILE says which"
        for place, numbers in sorted(readers.items())
        if all(rows[number].diverges for number in numbers)
    ]


def _reads(row: Row, join: Join, names: dict[Value, int]) -> set[int]:
    graph = join.graph
    target = join.targets.get((row.instruction, row.slot))
    if graph is None or target is None or (not row.diverges and row.own is None):
        return set()
    maker = graph.makers.get(target.value)
    if maker is None or not target.same:
        return set()
    roots = {graph.root(value) for value in maker[0].reads}
    return {names[root] for root in roots if root in names}


def _contradicted(rows: Sequence[Row], numbers: Sequence[int]) -> bool:
    found = [rows[number] for number in numbers]
    if not all(row.diverges for row in found):
        return False
    moved = any(_stem(row.operator) in _MOVES for row in found)
    return moved or len({row.instruction for row in found}) > 1


def _stem(operator: str) -> str:
    return operator.rpartition("::")[2].split(".")[0]
