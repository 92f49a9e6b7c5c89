"""The stages of a compile, step by step: changes of the nodes of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inspector.files.session import Session
from inspector.files.stage_files import session_stages
from inspector.files.stage_log import StageLog, StageNode, Step, delegated
from inspector.graph.model_graph import COMPILED, model_graph
from inspector.graph.node_text import short_operators, short_place, short_types
from inspector.tables.query import QueryError
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import (
    Column,
    Table,
    Total,
    number_column,
    text_column,
)
from inspector.units import NS_PER_MS, Quantity
from schema.objects.plural import plural

CHANGED, ALL = "changed", "all"
_SHOWN_NAMES = 4
_NAME = 40  # characters
_DELEGATED = "delegated"
_TONES = {"added": "good", "removed": "bad", "replaced": "accent", _DELEGATED: "accent"}
_NODES = (
    RowField("change", tone=lambda value: _TONES.get(str(value), "")),
    RowField("before", mono=True, width=_NAME),
    RowField("after", mono=True, width=_NAME),
    RowField("value", short=short_types),
    RowField("operator", width=_NAME, short=short_operators),
    RowField("source", mono=True, short=short_place),
)


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The stages of one session, for display.

    Attributes:
        log: the stages, or None
        why: reason if missing
        names: by method, node of the recorded program -> its name in the compiled graph
    """

    log: StageLog | None
    why: str
    names: dict[str, dict[str, str]]


def steps_of(session: Session) -> Steps:
    """Return the stages of the compile that built a session's program."""
    found = session_stages(session)
    names: dict[str, dict[str, str]] = {}
    for method in session.methods if found.log is not None else ():
        graph = model_graph(session, method, COMPILED)
        nodes = graph.nodes if graph is not None else ()
        names[method] = {node.node.name: node.name for node in nodes}
    return Steps(found.log, found.why, names)


def step_table(log: StageLog, numbers: Sequence[int] | None = None) -> Table:
    """Return a row for each stage: time, resulting nodes, and how many were added or removed.

    Args:
        log: the stages
        numbers: of the requested stages, None for all; they are the keys of the rows
    """
    requested = range(len(log.steps)) if numbers is None else numbers
    steps = [log.steps[number] for number in requested]
    return Table(
        (
            text_column("stage", [one.stage for one in steps], width=14),
            text_column("method", [one.method for one in steps], width=9),
            number_column(
                "time", [one.time_ms * NS_PER_MS for one in steps], Quantity.TIME, total=Total.SUM
            ),
            _counts("nodes", [one.nodes for one in steps]),
            _counts("new", [one.change.plus if one.change else None for one in steps]),
            _counts("gone", [one.change.minus if one.change else None for one in steps]),
        ),
        len(steps),
        keys=list(requested),
        noun="stages",
    )


def _counts(title: str, values: Sequence[int | None]) -> Column:
    return number_column(title, values, Quantity.COUNT, missing="")


def step_summary(log: StageLog, number: int) -> str:
    """Return a line about the effect of a stage."""
    step = log.steps[number]
    if step.change is None:
        if step.nodes is None:
            return "has no graph"
        return plural(step.nodes, "node") + ("" if step.after is not None else f"; {log.note}")
    one = step.change
    parts = [
        f"{count:,} {word}"
        for count, word in (
            (len(one.added), "added"),
            (len(one.removed), "removed"),
            (len(one.replaced), "replaced"),
        )
        if count
    ]
    return f"{', '.join(parts) or 'nothing changed'}; {one.kept:,} kept"


@dataclass(frozen=True, slots=True)
class _StepRow:
    what: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def node_table(steps: Steps, number: int, which: str) -> Table:
    """Return the nodes that a stage added, removed or replaced, or all resulting nodes.

    A key is the node in the compiled graph, followed through the stages in between.
    """
    found = list(_cells(steps, number, which))
    keys = [key or ("row", at) for at, (key, _) in enumerate(found)]
    return row_table(_NODES, [cells for _, cells in found], "nodes", keys=keys)


def stage_nodes(session: Session, _units: Units) -> Table:
    """Return the nodes that each stage of the compile added, removed or replaced.

    Raises: QueryError where no stages are recorded
    """
    log, steps = _recorded(session), steps_of(session)
    rows: list[tuple[object, ...]] = []
    keys: list[object] = []
    for number, step in enumerate(log.steps):
        for key, cells in _cells(steps, number, CHANGED) if step.change is not None else ():
            rows.append((step.stage, step.method, *cells))
            keys.append(key or ("row", len(rows)))
    return row_table((RowField("stage"), RowField("method"), *_NODES), rows, "nodes", keys=keys)


def _cells(
    steps: Steps, number: int, which: str
) -> Iterator[tuple[Selection | None, tuple[str, ...]]]:
    """Yield the key and the cells of the nodes of a stage."""
    log = steps.log
    assert log is not None
    step = log.steps[number]
    old, new = _by_name(log, step.before), _by_name(log, step.after)
    for row in _rows(step, new, which):
        first = _described(row, old, new)
        value, source = (first.value, first.source) if first else ("", "")
        cells = (_names(row.before), _names(row.after), value, _operators(row, old, new), source)
        yield _key(steps, number, row), (row.what, *cells)


def _by_name(log: StageLog, graph: int | None) -> dict[str, StageNode]:
    return {} if graph is None else {node.name: node for node in log.graphs[graph]}


def _rows(step: Step, new: dict[str, StageNode], which: str) -> Iterator[_StepRow]:
    change = step.change
    if change is None:
        yield from (_StepRow("", (), (name,)) for name in new)
        return
    operators = {name: node.operator for name, node in new.items()}
    for group in change.replaced:
        inside = delegated(group, operators)
        yield from (_StepRow(_DELEGATED if own else "added", own, calls) for own, calls in inside)
        if not inside:
            yield _StepRow("replaced", *group)
    yield from (_StepRow("added", (), (name,)) for name in change.added)
    yield from (_StepRow("removed", (name,), ()) for name in change.removed)
    if which == ALL:
        reported = {name for row in change.replaced for name in row[1]} | set(change.added)
        for name in new:
            if name not in reported:
                yield _StepRow("", change.behind(name), (name,))


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_NAMES:,} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


def _operators(row: _StepRow, old: dict[str, StageNode], new: dict[str, StageNode]) -> str:
    sides = [
        _names(list(dict.fromkeys(nodes[name].operator for name in names if name in nodes)))
        for names, nodes in ((row.before, old), (row.after, new))
    ]
    return " → ".join(dict.fromkeys(side for side in sides if side))


def _described(
    row: _StepRow, old: dict[str, StageNode], new: dict[str, StageNode]
) -> StageNode | None:
    """Return the node whose value and source a row has.

    That is the result, but of a delegated node itself: the call makes the values of many others.
    """
    before = [old[name] for name in row.before if name in old]
    after = [new[name] for name in _results_first(row.after, new)]
    both = [*before, *after] if row.what == _DELEGATED else [*after, *before]
    return both[0] if both else None


def _results_first(names: Sequence[str], nodes: dict[str, StageNode]) -> list[str]:
    """Return the names of nodes that there are, the one whose value is the result first.

    An operator taken apart ends in its result; a selection from it is a part of the result.
    """
    there = [name for name in reversed(names) if name in nodes]
    return sorted(there, key=lambda name: nodes[name].operator == "getitem")


def _key(steps: Steps, number: int, row: _StepRow) -> Selection | None:
    """Return the node of the compiled graph of a row, of several the one with the result."""
    log = steps.log
    assert log is not None
    method = log.steps[number].method
    recorded, known = log.lowered(method), steps.names.get(method, {})
    if recorded is None:
        return None
    if row.what == "delegated" and log.steps[number].before == log.steps[recorded].after:
        name = row.before[0]
        return (
            Selection(SelectionKind.NODE, method, COMPILED, known[name]) if name in known else None
        )
    new = _by_name(log, log.steps[number].after)
    for name in _results_first(row.after, new):
        found = next((n for n in log.traced(number, name, recorded) if n in known), None)
        if found is not None:
            return Selection(SelectionKind.NODE, method, COMPILED, known[found])
    return None


def left_nodes(nodes: Sequence[StageNode]) -> Table:
    """Return the nodes of the graph after a stage."""
    rows = [(node.name, node.operator, node.value, node.source) for node in nodes]
    titles = ("node", "operator", "value", "source")
    return row_table([RowField(title, mono=title != "operator") for title in titles], rows, "nodes")


@dataclass(frozen=True, slots=True, eq=False)
class ShownNodes:
    """The nodes of one stage.

    Attributes:
        number: of the stage
        table: the nodes
    """

    number: int
    table: Table


def rows_of(table: Table, names: Sequence[str]) -> list[int]:
    """Return the rows that are about nodes of the compiled graph."""
    requested = set(names)
    return [
        row
        for row in range(table.length)
        if isinstance(key := table.key(row), Selection) and key.node in requested
    ]


def stages(session: Session, _units: Units) -> Table:
    """Return the stages of the compile that built the program.

    Raises: QueryError where none are recorded
    """
    return step_table(_recorded(session))


def _recorded(session: Session) -> StageLog:
    found = session_stages(session)
    if found.log is None:
        raise QueryError(f"no compile stages: {found.why}")
    return found.log
