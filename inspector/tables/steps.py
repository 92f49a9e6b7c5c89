"""Tables of a stepped delegate call: nodes, values, elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inspector.files.session import Session
from inspector.graph.delegate_inside import inside_delegate, inside_of
from inspector.graph.model_graph import COMPILED, model_graph
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.table import Table, badge_column, number_column, text_column
from inspector.units import Quantity
from schema.backends import backend_of
from schema.program import instructions
from schema.program import model as m

_DONE, _NEXT, _LATER = "ran", "next", ""
_TONES = {_DONE: "good", _NEXT: "accent"}
_STEPPED = (
    RowField("#", Quantity.COUNT),
    RowField("state", tone=lambda value: _TONES.get(str(value), "muted")),
    RowField("kind"),
    RowField("reads"),
    RowField("makes"),
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


def node_table(nodes: Sequence[Mapping[str, Any]], position: int, places: Places | None) -> Table:
    """Return a row for each node: whether it has run, its kind, inputs and outputs."""
    names = list(places.names) if places is not None and len(places.names) == len(nodes) else []
    badges = badge_column(
        "",
        [_word(number, position) for number in range(len(nodes))],
        tone=lambda value: _TONES.get(str(value), ""),
    )
    return Table(
        (
            text_column("#", [str(node["node"]) for node in nodes], width=4),
            badges,
            text_column("kind", [node["kind"] for node in nodes], width=20),
            text_column("reads", [_ids(node["inputs"]) for node in nodes], width=10),
            text_column("makes", [_ids(node["outputs"]) for node in nodes], width=7),
            text_column("in the graph", names or [""] * len(nodes), mono=True),
        ),
        len(nodes),
        keys=list(range(len(nodes))),
        noun="nodes",
    )


def stepped_nodes(
    nodes: Sequence[Mapping[str, Any]], values: Mapping[int, Mapping[str, Any]]
) -> Table:
    """Return a row for each node of a call that was run: whether it ran, its recorded node.

    Args:
        nodes: of the call, with the nodes of the record that have their debug handles
        values: by id, those that are known
    """
    rows = [
        (
            node["node"],
            _fate(node, values),
            node["kind"],
            _ids(node["inputs"]),
            _ids(node["outputs"]),
            " ".join(node["recorded"]),
            node["where"] or "",
            node["debug_handle"],
        )
        for node in nodes
    ]
    return row_table(_STEPPED, rows, "nodes", keys=[row[0] for row in rows])


def _fate(node: Mapping[str, Any], values: Mapping[int, Mapping[str, Any]]) -> str:
    if any(values.get(value, {}).get("replaced") for value in node["outputs"]):
        return "replaced"
    return _DONE if node["ran"] else "not run"


def _word(number: int, position: int) -> str:
    return _DONE if number < position else _NEXT if number == position else _LATER


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
    """Return the elements of a value with their indices."""
    numbers, real = looked["numbers"], looked.get("real")
    columns = [
        text_column("place", [_place(at, shape) for at in range(len(numbers))], width=14),
        number_column("number", numbers, Quantity.PLAIN),
    ]
    if real is not None:
        columns.append(number_column("stands for", real, Quantity.PLAIN))
    return Table(
        tuple(columns),
        len(numbers),
        keys=list(range(len(numbers))),
        noun="numbers",
    )


def _place(at: int, shape: Sequence[int]) -> str:
    found: list[str] = []
    for size in reversed(shape):
        at, own = divmod(at, max(size, 1))
        found.append(str(own))
    return ", ".join(reversed(found)) or "scalar"


def selection_of(places: Places | None, method: str, row: int) -> Selection | None:
    """Return the graph node of a node of the call, or None."""
    name = places.names[row] if places is not None and row < len(places.names) else ""
    return Selection(SelectionKind.NODE, method, COMPILED, name) if name else None
