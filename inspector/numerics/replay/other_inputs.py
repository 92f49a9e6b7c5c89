"""Distinguishes a run with different inputs from a wrong computation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from inspector.numerics.flat_graph import FlatGraph, Value, inner_name
from inspector.numerics.join_facts import Join
from inspector.numerics.replay.inputs import EXPORTED, Inputs
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
_EITHER = "not distinguishable: it computed otherwise, or the run had another input than assumed"
_NOTE = "the run had another input here than the one assumed"


def with_other_inputs(
    rows: Sequence[Row], join: Join, inputs: Inputs
) -> tuple[tuple[Row, ...], list[str]]:
    """Return rows, without divergences that a wrong assumed input explains, and notes.

    An input differed if all its readers differ, and there are several or they only move data.
    """
    if join.graph is None:
        return tuple(rows), []
    names: dict[Value, int] = {value: place for place, value in enumerate(join.graph.inputs)}
    entered = _entered(join.graph)
    readers: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        for place in _reads(row, join, names, entered):
            if place not in inputs.traced and row.total is not None:
                readers.setdefault(place, []).append(index)
    other = [place for place, indices in readers.items() if _contradicted(rows, indices)]
    changed = list(rows)
    if not other:
        return _open_questions(changed, join, readers, named=inputs.source != EXPORTED)
    for indices in readers.values():
        for index in indices:
            if changed[index].diverges:
                changed[index] = replace(changed[index], diverges=False, note=_NOTE)
    named = ", ".join(join.graph.inputs[place][1] for place in sorted(other))
    source = inputs.source or "ones assumed"
    return tuple(changed), [f"the run had other inputs than the {source}: {named}"]


def _open_questions(
    rows: list[Row], join: Join, readers: dict[int, list[int]], *, named: bool
) -> tuple[tuple[Row, ...], list[str]]:
    """Mark errors that a different input than the assumed one may explain.

    Args:
        rows: changed in place
        join: of the method
        readers: input -> rows that read it
        named: whether such an error remains a divergence: inputs recorded for this
            purpose are more reliable than the example inputs of the export
    """
    assert join.graph is not None
    notes: list[str] = []
    for place, indices in sorted(readers.items()):
        if not all(rows[index].diverges for index in indices):
            continue
        notes.append(
            f"not distinguishable: {rows[indices[0]].node} computed otherwise, or the run had"
            f" another {join.graph.inputs[place][1]} than the one assumed; --inputs FILE names them"
        )
        for index in indices if not named else ():
            rows[index] = replace(rows[index], diverges=False, note=_EITHER)
    return tuple(rows), notes


def _reads(
    row: Row, join: Join, names: dict[Value, int], entered: Mapping[Value, Value]
) -> set[int]:
    graph = join.graph
    target = join.targets.get((row.instruction, row.slot))
    if graph is None or target is None or (not row.diverges and row.own is None):
        return set()
    maker = graph.producers.get(target.value)
    if not target.same:
        return set()
    read = maker[0].reads if maker is not None else (target.value,)  # a row that a loop is given
    roots = {_outermost(graph, entered, value) for value in read}
    return {names[root] for root in roots if root in names}


def _outermost(graph: FlatGraph, entered: Mapping[Value, Value], value: Value) -> Value:
    """Return the source of a view or of a row of a loop, outside of all branches and loops."""
    at = graph.root(value)
    for _ in range(len(value[0])):
        if at in entered:
            at = graph.root(entered[at])
    return at


def _entered(graph: FlatGraph) -> dict[Value, Value]:
    """Return input of a nested graph -> value that its node initially passes to it."""
    found: dict[Value, Value] = {}
    for node in graph.nodes:
        given = [name for argument in node.node.args for name in argument.values]
        for index in range(len(node.node.subgraphs)):
            scope = (*node.scope, inner_name(node.node.name, index))
            names = graph.graphs[scope].inputs if scope in graph.graphs else ()
            pairs = zip(names, given[len(given) - len(names) :], strict=False)
            found.update(((scope, name), (node.scope, outer)) for name, outer in pairs)
    return found


def _contradicted(rows: Sequence[Row], indices: Sequence[int]) -> bool:
    found = [rows[index] for index in indices]
    if not all(row.diverges for row in found):
        return False
    moved = any(_stem(row.operator) in _MOVES for row in found)
    return moved or len({row.instruction for row in found}) > 1


def _stem(operator: str) -> str:
    return operator.rpartition("::")[2].split(".")[0]
