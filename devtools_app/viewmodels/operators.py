"""The operators table: what ran, where it belongs, how long it took and how sure the join is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from devtools_app.state import Selection, SelectionKind, Units
from devtools_app.viewmodels.operator_rows import UNATTRIBUTED, OperatorRow, operator_rows
from devtools_app.viewmodels.table import (
    Column,
    Table,
    Total,
    badge_column,
    number_column,
    share_column,
    text_column,
)
from devtools_app.viewmodels.units import Quantity, choose_unit
from inspector.join_index import Related, join_index
from inspector.model_graph import COMPILED, model_graph, short_backend
from inspector.profile import analyse_profile
from inspector.session import Session
from schema.graph import NodeKind

Floats = NDArray[np.float64]
JOIN_WORDS = {
    "INSTRUCTION": "instruction",
    "DEBUG_HANDLE": "exact",
    "DELEGATE_ID": "exact",
    "ORDER": "inferred",
    "DELEGATE_CALL_ONLY": "call only",
    "NONE": "none",
}
JOIN_REASONS = {
    "instruction": "matched by instruction number; the record names no node for it",
    "exact": "matched by the numbers in the files",
    "inferred": "no number of its own: same operator, matched by position",
    "call only": "only the delegate call it happened in is known",
    "none": "matched to nothing in the program",
}
JOIN_TONES = {"exact": "good", "instruction": "good", "inferred": "warn", "call only": "warn"}
_POINTS = (50.0, 10.0, 90.0, 0.0, 100.0)


@dataclass(frozen=True, slots=True, eq=False)
class OperatorsTable:
    """A table of operators or events, and how its rows answer to what is selected.

    Attributes:
        table: the rows
        runs: samples of the row with the most
        samples_of: time of a row in each run in ns; None where it has none
        by_event: profile row -> row
        by_step: instruction -> rows outside of delegates
        by_node: node -> row
    """

    table: Table
    runs: int
    samples_of: Callable[[int], Floats | None]
    by_event: Mapping[int, int]
    by_step: Mapping[int, tuple[int, ...]]
    by_node: Mapping[str, int]

    def rows_of(self, related: Related) -> list[int]:
        """Return the rows of what is selected: its events, else its instructions, else nodes."""
        rows = [self.by_event[one] for one in related.events if one in self.by_event]
        if not rows:
            rows = [row for step in related.instructions for row in self.by_step.get(step, ())]
        if not rows:
            rows = [self.by_node[name] for name in related.nodes if name in self.by_node]
        return list(dict.fromkeys(rows))

    def selection(self, row: int) -> Selection:
        """Return what a row selects; nothing for time that no operator has."""
        key = self.table.key(row)
        return key if isinstance(key, Selection) else Selection()


def operators_table(session: Session, method: str, units: Units) -> OperatorsTable:
    """Return one row an operator; without a trace the times are missing."""
    rows = operator_rows(session, method)
    if rows:
        return _timed(session, method, rows, units)
    return _untimed(session, method)


def _timed(
    session: Session, method: str, rows: tuple[OperatorRow, ...], units: Units
) -> OperatorsTable:
    samples = [row.samples_ns for row in rows]
    shares = np.array([np.nan if row.share is None else row.share for row in rows])
    kernels = np.array([np.nan if row.kernel_ns is None else row.kernel_ns for row in rows])
    joins = [JOIN_WORDS[row.link.grade.value] if row.kind != UNATTRIBUTED else "" for row in rows]
    points = sample_points(samples)
    times = time_columns(points, units)
    unit = choose_unit(Quantity.TIME, float(np.nanmax(points[-1], initial=0.0)), units.time)
    columns = (
        text_column("operator", [row.label for row in rows], width=23),
        text_column("module", [row.module for row in rows], missing="", width=16),
        text_column("delegate", [_delegate(row) for row in rows], width=13),
        *times[:3],
        replace(share_column("share of method", shares), width=17),
        join_column(joins),
        *times[3:],
        *_ticks(session, rows),
        number_column("kernel, mean", kernels, Quantity.TIME, unit=unit, missing="—"),
        number_column("passes", np.array([row.passes for row in rows]), Quantity.COUNT),
        text_column("block", [row.block for row in rows]),
        text_column("backend", [_backend(row) for row in rows]),
        text_column("node", [_nodes(row) for row in rows], missing="", mono=True, width=24),
    )
    muted = np.array([row.kind in (UNATTRIBUTED, "rest") for row in rows])
    keys = [_key(row, method) for row in rows]
    steps: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        if row.instruction is not None and row.kind != "inner":
            steps.setdefault(row.instruction, []).append(number)
    return OperatorsTable(
        Table(columns, len(rows), keys, muted, "operators"),
        max((len(sample) for sample in samples if sample is not None), default=0),
        samples.__getitem__,
        {row.event: number for number, row in enumerate(rows) if row.event is not None},
        {step: tuple(own) for step, own in steps.items()},
        {},
    )


def _key(row: OperatorRow, method: str) -> Hashable:
    if row.event is None:
        return row.kind, row.block
    return event_selection(method, row.event, row.instruction, row.link.delegate)


def event_selection(
    method: str, event: int, instruction: int | None, delegate: int | None = None
) -> Selection:
    """Return the selection of a profile row."""
    return Selection(
        SelectionKind.EVENT,
        method=method,
        event=event,
        instruction=instruction,
        delegate=delegate,
    )


def _backend(row: OperatorRow) -> str:
    if row.kind == UNATTRIBUTED:
        return UNATTRIBUTED
    return backend_words(row.link.backend, inside=row.in_delegate)


def _nodes(row: OperatorRow) -> str:
    """Return the recorded names, by which people look for what has another name as a kernel."""
    if row.kind == UNATTRIBUTED:
        return ""
    return row.link.node or ", ".join(row.link.nodes or row.link.payload_nodes)


def _delegate(row: OperatorRow) -> str:
    return row.delegate or ("unknown" if row.in_delegate else "—")


def backend_words(backend: str, *, inside: bool) -> str:
    """Return a backend in short; a trace alone does not name the one a delegate ran on."""
    if backend:
        return short_backend(backend)
    return "unknown" if inside else "not delegated"


def sample_points(samples: Iterable[Floats | None]) -> list[Floats]:
    """Return p50, p10, p90, min, max and mean of each row; NaN where it has no samples.

    Rows of the same number of runs are computed at once: one at a time, 100,000 take half a minute.
    """
    listed = list(samples)
    found = [np.full(len(listed), np.nan) for _ in range(len(_POINTS) + 1)]
    by_runs: dict[int, list[int]] = {}
    for row, sample in enumerate(listed):
        if sample is not None and len(sample):
            by_runs.setdefault(len(sample), []).append(row)
    for rows in by_runs.values():
        block: Floats = np.stack([sample for row in rows if (sample := listed[row]) is not None])
        points: Floats = np.percentile(block, _POINTS, axis=1)
        for number in range(len(_POINTS)):
            found[number][rows] = points[number]
        found[-1][rows] = block.mean(axis=1)
    return found


def time_columns(points: list[Floats], units: Units) -> tuple[Column, ...]:
    """Return the columns of p50, p10, p90, min, max and mean, all in one unit.

    The plot of runs shows the extremes: they may be the columns that have to be scrolled to.
    """
    unit = choose_unit(Quantity.TIME, float(np.nanmax(points[-1], initial=0.0)), units.time)
    totals = (Total.SUM, Total.NONE, Total.NONE, Total.MIN, Total.MAX, Total.SUM)
    titles = ("p50", "p10", "p90", "min", "max", "mean")
    return tuple(
        number_column(title, values, Quantity.TIME, unit=unit, total=total)
        for title, values, total in zip(titles, points, totals, strict=True)
    )


def join_column(words: list[str]) -> Column:
    """Return the column that says how sure the joins are."""
    return badge_column("join", words, tone=_tone, explain=_reason)


def _tone(value: object) -> str:
    return JOIN_TONES.get(str(value), "muted")


def _reason(value: object) -> str:
    return JOIN_REASONS.get(str(value), "")


def _ticks(session: Session, rows: tuple[OperatorRow, ...]) -> tuple[Column, ...]:
    """Return a column of ticks for what is not measured in time; none when all is."""
    events = [row.event if row.samples_ns is None else None for row in rows]
    if all(event is None for event in events):
        return ()
    profile = analyse_profile(session).rows
    values = [
        np.nan if event is None else float(np.median(profile[event].raw_ticks)) for event in events
    ]
    return (number_column("p50 of ticks", np.array(values), Quantity.TICKS, missing="—"),)


def _untimed(session: Session, method: str) -> OperatorsTable:
    graph = model_graph(session, method)
    passive = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)
    nodes = [node for node in graph.nodes if node.node.kind not in passive] if graph else []
    index = join_index(session, method)
    steps = [index.node_instructions.get(node.name, ()) for node in nodes]
    delegates = [
        f"{short_backend(node.backend)} {node.delegate}" if node.delegate is not None else "—"
        for node in nodes
    ]
    backends = [short_backend(node.backend) if node.backend else "not delegated" for node in nodes]
    weights = [sum(weight.nbytes or 0 for weight in node.weights) for node in nodes]
    columns = (
        text_column("operator", [node.node.target for node in nodes], width=23),
        text_column("module", [node.node.module_path for node in nodes], missing="", width=16),
        text_column("delegate", delegates, width=13),
        number_column("instruction", [own[0] if own else None for own in steps], Quantity.COUNT),
        number_column("p50", np.full(len(nodes), np.nan), Quantity.TIME),
        number_column(
            "output", [node.output_bytes for node in nodes], Quantity.SIZE, total=Total.SUM
        ),
        number_column("weights", weights, Quantity.SIZE, total=Total.SUM),
        text_column("backend", backends),
    )
    keys: list[Hashable] = [
        Selection(
            SelectionKind.NODE,
            method=method,
            graph=COMPILED,
            node=node.name,
            instruction=node.instruction,
            delegate=node.delegate,
        )
        for node in nodes
    ]
    by_node = {node.name: row for row, node in enumerate(nodes)}
    table = Table(columns, len(nodes), keys, None, "operators")
    return OperatorsTable(table, 0, _no_samples, {}, {}, by_node)


def _no_samples(_row: int) -> Floats | None:
    return None
