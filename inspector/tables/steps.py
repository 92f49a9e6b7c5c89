"""Tables of a stepped delegate call: nodes, values, elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inspector.files.session import Session
from inspector.graph.delegate_inside import inside_delegate, inside_of
from inspector.graph.model_graph import COMPILED, model_graph
from inspector.graph.source import user_frame
from inspector.join import record_maps
from inspector.numerics.flat_graph import flat_graph
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.table import Table, number_column, text_column
from inspector.tables.tensor import element_table
from inspector.units import Quantity
from schema.backends import backend_of
from schema.etrecord import RecordFile
from schema.graph import GraphNode
from schema.program import instructions
from schema.program import model as m

_DONE, _NEXT, _LATER, _REPLACED = "ran", "next", "not run", "replaced"
_TONES = {_DONE: "good", _NEXT: "accent", _REPLACED: "warn"}
_STEPPED = (
    RowField("#", Quantity.COUNT),
    RowField("state", tone=lambda value: _TONES.get(str(value), "muted")),
    RowField("kind"),
    RowField("inputs"),
    RowField("outputs"),
    RowField("recorded node", mono=True),
    RowField("source"),
    RowField("handle", Quantity.COUNT, missing=""),
)


@dataclass(frozen=True, slots=True)
class StepCall:
    """A delegate call of a method that can be stepped through.

    Attributes:
        number: index among the delegate calls of the method
        delegate: index of the delegate
        nodes: number of nodes inside
    """

    number: int
    delegate: int
    nodes: int


def calls_of(session: Session, method: str) -> tuple[StepCall, ...]:
    """Return the calls of a method, in the order of its instructions."""
    program = session.program
    if program is None or method not in {plan.name for plan in program.plans}:
        return ()
    plan = program.plan(method)
    found = [
        step.instr_args.delegate_index
        for _, _, step in instructions(plan)
        if isinstance(step.instr_args, m.DelegateCall)
    ]
    return tuple(
        StepCall(number, delegate, len(inside_delegate(session, method, delegate).nodes))
        for number, delegate in enumerate(found)
        if 0 <= delegate < len(plan.delegates) and backend_of(plan.delegates[delegate].id).steps
    )


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Maps nodes of a call to the graph.

    Attributes:
        names: by index in the call, name in the graph, empty without an operator
        rows: by name in the graph, indices in the call
    """

    names: tuple[str, ...]
    rows: Mapping[str, tuple[int, ...]]


def places_of(session: Session, method: str, delegate: int) -> Places:
    """Return where the nodes inside a delegate are in the graph."""
    inside = inside_delegate(session, method, delegate)
    at = {one.node.name: place for place, one in enumerate(inside.nodes)}
    names = [""] * len(inside.nodes)
    rows: dict[str, tuple[int, ...]] = {}
    graph = model_graph(session, method, COMPILED)
    for node in graph.nodes if graph is not None else ():
        if node.delegate != delegate:
            continue
        found = tuple(at[one.node.name] for one in inside_of(session, method, node))
        rows[node.name] = found
        for place in found:
            names[place] = names[place] or node.name
    return Places(tuple(names), rows)


def with_recorded(
    record: RecordFile | None, method: str, nodes: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the nodes of a call with those of the record that have their debug handles.

    Each has ``recorded``, their names, and ``where``, the source line of the first; empty and None
    without a record.
    """
    found: dict[int, list[GraphNode]] = {}
    graph = record_maps.edge_graph(record, method) if record is not None else None
    for node in flat_graph(graph).nodes if graph is not None else ():
        found.setdefault(node.node.debug_handle or 0, []).append(node.node)
    rows: list[dict[str, Any]] = []
    for node in nodes:
        own = found.get(node["debug_handle"] or -1, [])
        frames = (user_frame(one.stack_trace) for one in own)
        frame = next((one for one in frames if one is not None), None)
        where = None if frame is None else frame.label
        rows.append({**node, "recorded": [one.name for one in own], "where": where})
    return rows


def node_table(
    nodes: Sequence[Mapping[str, Any]],
    values: Mapping[int, Mapping[str, Any]],
    position: int | None = None,
) -> Table:
    """Return a row for each node of a call: whether it ran, its kind, values and recorded node.

    Args:
        nodes: of the call, of ``with_recorded`` where the record is known
        values: by id, those that are known
        position: index of the next node of a call that waits, None if it has ended
    """
    rows = [
        (
            node["node"],
            _state(node, values, position),
            node["kind"],
            _ids(node["inputs"]),
            _ids(node["outputs"]),
            " ".join(node.get("recorded", ())),
            node.get("where") or "",
            node["debug_handle"],
        )
        for node in nodes
    ]
    return row_table(_STEPPED, rows, "nodes", keys=[row[0] for row in rows])


def _state(
    node: Mapping[str, Any], values: Mapping[int, Mapping[str, Any]], position: int | None
) -> str:
    number = node["node"]
    if position is not None and number >= position:
        return _NEXT if number == position else _LATER
    if any(values.get(value, {}).get("replaced") for value in node["outputs"]):
        return _REPLACED
    return _DONE if position is not None or node["ran"] else _LATER


def _ids(values: Iterable[int]) -> str:
    return " ".join(map(str, values))


def value_table(values: Mapping[int, Mapping[str, Any]]) -> Table:
    """Return a row for each computed value, the latest first."""
    rows = sorted(values.values(), key=lambda one: (_age(one), -one["value"]), reverse=True)
    return Table(
        (
            text_column("value", [str(one["value"]) for one in rows], width=6),
            replace(text_column("producer", [_maker(one) for one in rows], width=8), key="made_by"),
            text_column("type", [_kind(one) for one in rows], width=20),
            number_column("min", [one["min"] for one in rows], Quantity.PLAIN),
            number_column("mean", [one["mean"] for one in rows], Quantity.PLAIN),
            number_column("max", [one["max"] for one in rows], Quantity.PLAIN),
            text_column("note", [_note(one) for one in rows]),
        ),
        len(rows),
        keys=[int(one["value"]) for one in rows],
        noun="values",
    )


def _age(value: Mapping[str, Any]) -> int:
    built = value["made_by"]
    return -1 if built is None else int(built)


def _maker(value: Mapping[str, Any]) -> str:
    return "given" if value["made_by"] is None else f"node {value['made_by']}"


def _kind(value: Mapping[str, Any]) -> str:
    return f"{value['dtype']} [{', '.join(map(str, value['shape']))}]"


def _note(value: Mapping[str, Any]) -> str:
    notes = ["replaced"] if value["replaced"] else []
    notes += [
        f"{value[name]:,} {word}"
        for name, word in (("nan", "NaN"), ("inf", "infinite"))
        if value[name]
    ]
    real = value.get("real")
    if real is not None and real["min"] is not None:
        notes.append(f"stands for {real['min']:.4g} to {real['max']:.4g}")
    return ", ".join(notes)


def number_table(looked: Mapping[str, Any], shape: Sequence[int]) -> Table:
    """Return the first elements of a value with their indices."""
    numbers, real = looked["numbers"], looked.get("real")
    sizes = np.array([max(size, 1) for size in shape], np.int64)
    steps = np.append(np.cumprod(sizes[::-1])[::-1][1:], 1)[: len(sizes)]
    places = np.arange(len(numbers), dtype=np.int64)[:, None] // steps % sizes
    parts = [("value", np.array(numbers))]
    if real is not None:
        parts.append(("real", np.array(real)))
    return element_table(places, parts)


def selection_of(places: Places | None, method: str, row: int) -> Selection | None:
    """Return the graph node of a node of the call, or None."""
    name = places.names[row] if places is not None and row < len(places.names) else ""
    return Selection(SelectionKind.NODE, method, COMPILED, name) if name else None
