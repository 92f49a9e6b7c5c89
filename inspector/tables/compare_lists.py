"""The lists of the compare view: changes by node, partition, operator, arena and output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from inspector.compare.alignment import GraphAlignment
from inspector.compare.change import Change
from inspector.compare.model import (
    Comparison,
    Delta,
    GapRow,
    MethodGraphs,
    OwnerChange,
    PartitionChange,
    RecipeChange,
    TimeRow,
    WeightChange,
)
from inspector.compare.sessions import compare_sessions
from inspector.compare.weighing import time_verdict
from inspector.files.session import Session
from inspector.profile.operator_columns import TRACING
from inspector.tables.compare import (
    CompareLink,
    difference_column,
    letters_of,
    link_of,
    shown_place,
    value_columns,
)
from inspector.tables.figures import Figure, figure_column
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import Table, badge_column, number_column, text_column
from inspector.units import NS_PER_MS, Quantity, choose_unit, column_formatter
from schema.backends import BACKENDS

OWNERS, PARTITIONS, OPERATORS, MODULES, NODES = (
    "owners",
    "partitions",
    "operators",
    "modules",
    "nodes",
)
MEMORY, SIZES, GAPS, WEIGHTS, CHANGES = "memory", "sizes", "gaps", "weights", "changes"
RECIPES, GRAPH, BLOCKS = "recipes", "graph", "blocks"
LISTS = (
    (RECIPES, "recipe"),
    (OWNERS, "nodes that changed owner"),
    (PARTITIONS, "partitions"),
    (GRAPH, "graph"),
    (BLOCKS, "measured blocks"),
    (OPERATORS, "time by operator"),
    (MODULES, "time by module"),
    (NODES, "time by node"),
    (MEMORY, "memory"),
    (SIZES, "size"),
    (GAPS, "numeric gap"),
    (WEIGHTS, "recorded weights"),
    (CHANGES, "every difference"),
)


_IDS = {one.name: one.id for one in BACKENDS.values()}
TIMES = (OPERATORS, MODULES, NODES)
_MOST_BARS = 40
_WIDEST = 72  # characters of a value; JSON has all
_SMALL = 0.05  # of the largest difference


def list_title(kind: str) -> str:
    """Return the title of a list."""
    return dict(LISTS)[kind]


def detail_table(found: Comparison, kind: str, letters: Sequence[str]) -> Table:
    """Return one of the lists, by its name in ``LISTS``."""
    rows = found.graphs if kind == GRAPH else getattr(found, kind)
    return _TABLES[kind](rows, letters)


def _recipes(rows: Sequence[RecipeChange], letters: Sequence[str]) -> Table:
    cells = [(one.field, one.old or "—", one.new or "—", letters[one.session]) for one in rows]
    fields = ("field", letters[0], "now", "variant")
    return row_table(
        [RowField(title, mono=title != "variant") for title in fields], cells, "fields"
    )


def _graph(graphs: Sequence[MethodGraphs], letters: Sequence[str]) -> Table:
    rows = [
        (*row, letters[session])
        for each in graphs
        for session, alignment in enumerate(each.alignments, 1)
        if alignment is not None
        for row in _aligned(alignment)
    ]
    fields = [RowField("change", tone=_change_tone), RowField(letters[0], mono=True)]
    fields += [RowField("now", mono=True), RowField("variant")]
    return row_table(fields, rows, "differences")


def _change_tone(value: object) -> str:
    return {"added": "good", "removed": "bad", "replaced": "accent"}.get(str(value), "warn")


def _aligned(found: GraphAlignment) -> Iterator[tuple[str, str, str]]:
    """Yield the changes of nodes: replaced, removed, added, and changed."""
    old, new = found.old.nodes, found.new.nodes
    for group in found.replaced:
        before = ", ".join(old[node].name for node in group.old)
        yield "replaced", before, ", ".join(new[node].name for node in group.new)
    gone = {node for group in found.replaced for node in group.old}
    come = {node for group in found.replaced for node in group.new}
    yield from (("removed", old[node].name, "") for node in found.removed if node not in gone)
    yield from (("added", "", new[node].name) for node in found.added if node not in come)
    for one in found.changed:
        sides = f"{old[one.pair.old].name}: {one.old}", f"{new[one.pair.new].name}: {one.new}"
        yield f"other {one.what}", *sides


def _owners(rows: Sequence[OwnerChange], letters: Sequence[str]) -> Table:
    columns = [
        text_column("node", [one.new_node or one.old_node for one in rows], mono=True, width=24),
        badge_column("was", [_owner(one.old_owner, one.old_delegate) for one in rows], tone=_by),
        badge_column("is", [_new_owner(one, letters) for one in rows], tone=_by),
        text_column("why", [one.reason or None for one in rows], missing="", width=40),
        text_column("operator", [one.operator for one in rows], width=18),  # the node tells it
        text_column("module", [one.module for one in rows], mono=True),
    ]
    if len(letters) > 2:
        columns.insert(0, text_column("variant", [letters[one.session] for one in rows]))
    keys = [
        CompareLink(
            letters[one.session],
            "graph",
            Selection(SelectionKind.NODE, one.method, "compiled", one.new_node),
        )
        for one in rows
    ]
    return Table(tuple(columns), len(rows), keys, noun="nodes")


def _owner(name: str, delegate: int | None) -> str:
    return name if delegate is None else f"{name} {delegate}"


def _new_owner(one: OwnerChange, letters: Sequence[str]) -> str:
    """Return the owner now; another delegate of the same number is named with its session."""
    found = _owner(one.new_owner, one.new_delegate)
    same = found == _owner(one.old_owner, one.old_delegate)
    return f"{found} (of {letters[one.session]})" if same else found


def _by(value: object) -> str:
    name = str(value).partition(" (")[0].rpartition(" ")[0]
    return f"backend:{_IDS.get(name, f'{name}Backend')}" if name else "muted"


def _partitions(rows: Sequence[PartitionChange], letters: Sequence[str]) -> Table:
    fates = [_fate(one) for one in rows]
    columns = [
        badge_column(
            "what",
            fates,
            tone=lambda value: {"new": "good", "gone": "warn"}.get(str(value), "accent"),
        ),
        text_column("backend", [one.backend for one in rows]),
        number_column(f"in {letters[0]}", [one.old for one in rows], Quantity.COUNT, missing=""),
        number_column("now", [one.new for one in rows], Quantity.COUNT, missing=""),
        number_column("nodes before", [one.old_nodes for one in rows], Quantity.COUNT),
        number_column("nodes now", [one.new_nodes for one in rows], Quantity.COUNT),
        number_column("the same", [one.common for one in rows], Quantity.COUNT),
        text_column("variant", [letters[one.session] for one in rows]),
    ]
    keys = [
        CompareLink(
            letters[0] if one.new is None else letters[one.session],
            "partitions",
            Selection(
                SelectionKind.DELEGATE,
                one.method,
                delegate=one.old if one.new is None else one.new,
            ),
        )
        for one in rows
    ]
    return Table(tuple(columns), len(rows), keys, noun="partitions")


def _fate(one: PartitionChange) -> str:
    if one.old is None:
        return "new"
    return "gone" if one.new is None else "other nodes"


def _times(rows: Sequence[TimeRow], letters: Sequence[str]) -> Table:
    ordered = sorted(rows, key=lambda one: -_largest(one, len(letters)))
    known = [abs(value) for one in ordered for value in one.ms if value is not None]
    unit = choose_unit(
        Quantity.TIME, max(known, default=0.0) * NS_PER_MS
    )  # one for what is compared
    columns = [text_column("name", [one.name for one in ordered], width=28)]
    for number, letter in enumerate(letters):
        values = [None if one.ms[number] is None else _ns(one.ms[number]) for one in ordered]
        column = number_column(letter, values, Quantity.TIME, unit=unit)
        ticks = [one.ticks_ns[number] if one.ticks_ns else 0.0 for one in ordered]
        columns.append(replace(column, least=np.array(ticks, np.float64)))
    for number in range(1, len(letters)):
        changes = [one.difference(number) for one in ordered]
        values = [None if change is None else change * NS_PER_MS for change in changes]
        title = f"{letters[number]} − {letters[0]}"
        columns.append(number_column(title, values, Quantity.TIME, unit=unit, missing=""))
    columns.append(text_column("note", [_time_note(one, letters) for one in ordered], width=24))
    keys = [_time_link(one, letters) for one in ordered]
    return Table(tuple(columns), len(ordered), keys, noun="rows")


def _time_note(one: TimeRow, letters: Sequence[str]) -> str:
    """Return the note of a row, or the sessions whose trace has no such event."""
    measured = zip(letters, one.ms, one.calls, strict=True)
    without = [letter for letter, ms, calls in measured if ms is not None and not calls]
    return one.note or (f"none in {', '.join(without)}" if without else "")


def _blocks(rows: Sequence[tuple[float | None, ...]], letters: Sequence[str]) -> Table:
    """Return the fastest run of each session in each block; block i of all ran one by one."""
    largest = max((one for row in rows for one in row if one is not None), default=0.0)
    unit = choose_unit(Quantity.TIME, largest * NS_PER_MS)
    columns = [number_column("block", range(1, len(rows) + 1), Quantity.COUNT)]
    for number, letter in enumerate(letters):
        values = [_ns(row[number]) for row in rows]
        columns.append(number_column(letter, values, Quantity.TIME, unit=unit))
    for number, letter in enumerate(letters[1:], 1):
        pairs = [(row[0], row[number]) for row in rows]
        changes = [None if a is None or b is None else _ns(b - a) for a, b in pairs]
        title = f"{letter} − {letters[0]}"
        columns.append(number_column(title, changes, Quantity.TIME, unit=unit))
    return Table(tuple(columns), len(rows), noun="blocks")


def time_bars(
    found: Comparison, kind: str, letters: Sequence[str]
) -> tuple[tuple[str, float, str, str], ...]:
    """Return (name, difference in ns, words, tone) of a list of times, the largest first.

    The second session is compared with the first. Recorded runs were not made together, so that a
    difference is only good or bad where programs that were measured together differ as well; what
    the trace costs is none of the program.
    """
    rows: Sequence[TimeRow] = getattr(found, kind)
    verdict = time_verdict(found, 1)
    real = verdict is not None and verdict.real and 1 not in found.unlike
    known = [(one, one.difference(1)) for one in rows if len(letters) > 1]
    changes = [(one, change) for one, change in known if change]
    changes.sort(key=lambda pair: -abs(pair[1]))
    largest = abs(changes[0][1]) if changes else 0.0
    unit = choose_unit(Quantity.TIME, largest * NS_PER_MS)
    words = column_formatter(Quantity.TIME, unit, largest * NS_PER_MS)
    bars: list[tuple[str, float, str, str]] = []
    for one, change in changes[:_MOST_BARS]:
        sign = "+" if change > 0 else "−"
        small = not real or abs(change) < largest * _SMALL
        tone = "muted" if small or one.name == TRACING else "bad" if change > 0 else "good"
        bars.append(
            (
                one.name,
                change * NS_PER_MS,
                f"{sign}{words(abs(change) * NS_PER_MS)} {unit.symbol}",
                tone,
            )
        )
    return tuple(bars)


def _ns(value: float | None) -> float | None:
    return None if value is None else value * NS_PER_MS


def _largest(one: TimeRow, count: int) -> float:
    known = (one.difference(number) for number in range(1, count))
    return max((abs(value) for value in known if value is not None), default=-1.0)


def _time_link(one: TimeRow, letters: Sequence[str]) -> CompareLink | None:
    nodes = next((names for names in reversed(one.nodes) if names), ())
    if not nodes:
        return None
    number = max(at for at, names in enumerate(one.nodes) if names)
    chosen = Selection(SelectionKind.NODE, one.method, "compiled", nodes[0])
    return CompareLink(letters[number], "graph", chosen)


def _deltas(rows: Iterable[Delta], letters: Sequence[str]) -> Table:
    found = sorted(rows, key=lambda one: not one.differs)
    columns = [text_column("figure", [_with_method(one) for one in found], width=30)]
    columns += value_columns(found, letters)
    columns += [difference_column(found, number, letters) for number in range(1, len(letters))]
    keys = [link_of(shown_place(one), letters) for one in found]
    return Table(tuple(columns), len(found), keys, noun="figures")


def _with_method(one: Delta) -> str:
    return f"{one.method} {one.what}" if one.method and one.method != "forward" else one.what


def _gaps(rows: Sequence[GapRow], letters: Sequence[str]) -> Table:
    columns = [
        text_column("node", [_output(one) for one in rows], mono=True, width=24),
        text_column("operator", [one.operator for one in rows]),
    ]
    for number, letter in enumerate(letters):
        values = [one.max_abs[number] for one in rows]
        columns.append(number_column(f"{letter} max abs", values, Quantity.PLAIN))
    for number, letter in enumerate(letters):
        values = [one.own[number] for one in rows]
        columns.append(number_column(f"{letter} own", values, Quantity.PLAIN))
    keys = [
        CompareLink(
            letters[-1], "gap", Selection(SelectionKind.NODE, one.method, "compiled", one.node)
        )
        for one in rows
    ]
    return Table(tuple(columns), len(rows), keys, noun="outputs")


def _output(one: GapRow) -> str:
    return one.node if one.output == 0 else f"{one.node}, output {one.output}"


def _weights(rows: Sequence[WeightChange], letters: Sequence[str]) -> Table:
    columns = (
        text_column("weight", [one.name for one in rows], mono=True, width=28),
        text_column(letters[0], [one.old for one in rows], missing="not there", mono=True),
        text_column("now", [one.new for one in rows], missing="not there", mono=True),
        number_column("largest difference", [one.largest for one in rows], Quantity.PLAIN),
        number_column("share that differs", [one.share for one in rows], Quantity.SHARE),
        text_column("variant", [letters[one.session] for one in rows]),
    )
    return Table(columns, len(rows), noun="weights")


def change_table(changes: Sequence[Sequence[Change]], letters: Sequence[str]) -> Table:
    """Return every difference of sessions from the first one.

    Args:
        changes: of each session after the first
        letters: of all sessions
    """
    pairs = zip(letters[1:], changes, strict=False)
    rows = [(letter, one) for letter, own in pairs for one in own]
    found = [one for _, one in rows]
    columns = [
        badge_column("area", [one.area for one in found]),
        text_column("what", [one.what for one in found], width=36),
        figure_column(letters[0], [_side(one.old, one.unit) for one in found], missing=""),
        figure_column("now", [_side(one.new, one.unit) for one in found], missing=""),
        text_column("difference", [_difference(one) for one in found], missing=""),
        text_column("note", [one.note or None for one in found], missing="", width=24),
    ]
    if len(letters) > 2:
        columns.append(text_column("variant", [letter for letter, _ in rows]))
    return Table(tuple(columns), len(rows), noun="differences")


def sample_table(changes: Sequence[Change]) -> Table:
    """Return the first elements of each tensor that differ."""
    rows = [(one.what, str(each.at), each.old, each.new) for one in changes for each in one.samples]
    fields = (RowField("tensor"), RowField("element"))
    sides = (RowField("A", Quantity.PLAIN), RowField("B", Quantity.PLAIN))
    return row_table((*fields, *sides), rows, "elements")


def _side(value: object, unit: str) -> Figure | str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        text = None if value is None else str(value)
        return text if text is None or len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
    return Figure(value, unit)


def _difference(one: Change) -> str | None:
    old, new = one.old, one.new
    if not isinstance(old, (int, float)) or not isinstance(new, (int, float)):
        return None
    share = f" ({100 * (new - old) / abs(old):+.1f} %)" if old else ""
    return Figure(new - old, one.unit).signed() + share


_TABLES: dict[str, Callable[[Any, Sequence[str]], Table]] = {
    RECIPES: _recipes,
    OWNERS: _owners,
    PARTITIONS: _partitions,
    GRAPH: _graph,
    BLOCKS: _blocks,
    **dict.fromkeys(TIMES, _times),
    **dict.fromkeys((MEMORY, SIZES), _deltas),
    GAPS: _gaps,
    WEIGHTS: _weights,
    CHANGES: change_table,
}


def _list(kind: str) -> Callable[[Sequence[Session], str, Units], Table]:
    def table(sessions: Sequence[Session], method: str, _units: Units) -> Table:
        found = compare_sessions(sessions, method=method)
        return detail_table(found, kind, letters_of(len(sessions)))

    return table


owners, partitions, operators, modules, nodes = map(
    _list, (OWNERS, PARTITIONS, OPERATORS, MODULES, NODES)
)
memory, sizes, weights, changes, recipes, graph = map(
    _list, (MEMORY, SIZES, WEIGHTS, CHANGES, RECIPES, GRAPH)
)
