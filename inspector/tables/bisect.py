"""Content of the bisection panel: available requirements, trials so far, nodes found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from inspector.experiments.bisect.bound import LOADS, Bound
from inspector.files.session import Session
from inspector.graph.node_text import operator_title
from inspector.jobs.bisect_trials import (
    STATE,
    BisectState,
    CandidateNode,
    StateError,
    numbers_of,
    read_state,
)
from inspector.jobs.messages import Trying
from inspector.tables.exported_nodes import exported_place
from inspector.tables.query import QueryError
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import AUTOMATIC, Selection, Units
from inspector.tables.table import Table, text_column
from inspector.units import NS_PER_S, Quantity, as_number

OTHER = "other"
_TONES = {"holds": "good", "trying": "accent"}
_ALL, _NONE = "everything", "nothing"
_TRIALS = (
    RowField("trial", Quantity.COUNT),
    RowField("kept off", width=12),
    RowField("verdict", tone=lambda value: _TONES.get(str(value), "muted")),
    RowField("value", Quantity.PLAIN, missing=""),
    RowField("time", Quantity.TIME, missing=""),
    RowField("note"),
)


@dataclass(frozen=True, slots=True)
class OfferedRequirement:
    """A requirement offered for a program.

    Attributes:
        metric: as in bounds
        words: its description
        sign: between metric and value, may be empty
        value: the default
    """

    metric: str
    words: str
    sign: str = ""
    value: str = ""


OFFERED_REQUIREMENTS = (
    OfferedRequirement("output.max_abs", "largest error of the outputs", "<=", "1e-3"),
    OfferedRequirement("output.snr_db", "signal to noise of the outputs", ">=", "40 dB"),
    OfferedRequirement("output.mse", "mean squared error of the outputs", "<=", "1e-6"),
    OfferedRequirement("gap.max_abs", "largest error of any node", "<=", "1e-3"),
    OfferedRequirement("latency", "median latency", "<=", "5 ms"),
    OfferedRequirement(LOADS, "it loads"),
    OfferedRequirement(OTHER, "a bound as text", "", "output.cosine>=0.999"),
)


def offered_requirement(metric: str) -> OfferedRequirement:
    """Return the requirement of a metric.

    Raises: StopIteration for an unknown name
    """
    return next(one for one in OFFERED_REQUIREMENTS if one.metric == metric)


def bound_text(metric: str, value: str) -> str:
    """Return the requested bound as text."""
    one = offered_requirement(metric)
    if metric == LOADS:
        return LOADS
    return value.strip() if metric == OTHER else f"{metric}{one.sign}{value.strip()}"


def trials(folder: Path, units: Units) -> Table:
    """Return the programs that a bisection tried, of the state in its folder.

    Raises: QueryError for a folder without a bisection; FormatError, OSError
    """
    return trial_table(_state_in(folder), units=units)


def excluded(folder: Path, _units: Units) -> Table:
    """Return the nodes to exclude from delegates: the smallest set that a bisection found so far.

    Raises: QueryError for a folder without a bisection, or one that has found none; FormatError,
        OSError
    """
    state = _state_in(folder)
    held = [one for one in state.trials if one.holds]
    if not held:
        raise QueryError(f"{folder}: the bound holds for none of the {len(state.trials)} trials")
    smallest = min(held, key=lambda one: one.count)
    nodes = [state.candidates[number] for number in numbers_of(smallest.removed)]
    return node_table(nodes, None)


def _state_in(folder: Path) -> BisectState:
    try:
        state = read_state(folder / STATE if folder.is_dir() else folder)
    except StateError as error:
        raise QueryError(str(error)) from error
    if state is None:
        raise QueryError(f"{folder} holds no bisection: {STATE} is missing")
    return state


def trial_table(
    state: BisectState,
    bound: Bound | None = None,
    trying: Trying | None = None,
    units: Units = AUTOMATIC,
) -> Table:
    """Return one row per trial, the running one last.

    Args:
        state: the trials so far
        bound: the requirement, which has the unit of the values; None if unknown
        trying: the running trial
        units: of times
    """
    total = len(state.candidates)
    rows: list[tuple[object, ...]] = [
        (
            number,
            _out(one.count, total),
            "holds" if one.holds else "does not hold",
            one.value,
            one.seconds * NS_PER_S,
            one.words,
        )
        for number, one in enumerate(state.trials, 1)
    ]
    if trying is not None:
        removed = _out(len(numbers_of(trying.removed)), total)
        rows.append((len(rows) + 1, removed, "trying", None, None, ""))
    found = row_table(_TRIALS, rows, "trials", keys=[row[0] for row in rows], units=units)
    return found if bound is None else _in_unit(found, bound)


def _in_unit(table: Table, bound: Bound) -> Table:
    """Return a table of trials whose values have the unit of the bound."""

    def text(value: object) -> str:
        return "" if value is None else bound.shown(as_number(value)).removeprefix(prefix)

    prefix = f"{bound.metric} "
    title = bound.metric if bound.requirement is not None else "partitions"
    columns = [
        replace(one, title=title, text=text, key=one.id) if one.id == "value" else one
        for one in table.columns
    ]
    return replace(table, columns=tuple(columns))


def _out(count: int, total: int) -> str:
    if count == 0:
        return _NONE
    return _ALL if count == total else f"{count:,} of {total:,}"


def node_table(nodes: Sequence[CandidateNode], session: Session | None) -> Table:
    """Return the nodes to exclude; each links to its place in the current session."""
    return Table(
        (
            text_column("node", [one.name for one in nodes], mono=True),
            text_column("operator", [operator_title(one.operator) for one in nodes]),
            text_column("rule", [one.rule for one in nodes], mono=True),
            text_column("source", [PurePath(one.source).name for one in nodes], mono=True),
            text_column("method", [one.method for one in nodes]),
        ),
        len(nodes),
        keys=[place_of(one, session) for one in nodes],
        noun="nodes",
    )


def place_of(node: CandidateNode, session: Session | None) -> Selection | None:
    """Return the place of an exported node in the graph of a session, None if missing."""
    if session is None:
        return None
    return exported_place(session, node.method, node.name, node.operator)
