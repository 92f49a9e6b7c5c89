"""The operators table: what ran, where it belongs, how long it took and how sure the join is."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from devtools_app.state import Units
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
from inspector.delegation import analyse_delegation
from inspector.join_index import join_index
from inspector.model_graph import model_graph, short_backend
from inspector.session import Session
from schema.graph import NodeKind

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
_TONES = {"exact": "good", "instruction": "good", "inferred": "warn", "call only": "warn"}


def operators_table(session: Session, method: str, units: Units) -> Table:
    """Return one row an operator; without a trace the times are missing."""
    rows = operator_rows(session, method)
    if rows:
        return _timed(rows, units)
    return _untimed(session, method)


def _timed(rows: tuple[OperatorRow, ...], units: Units) -> Table:
    samples = [row.samples_ns for row in rows]
    means = _points(rows, None)
    unit = choose_unit(Quantity.TIME, float(np.nanmax(means, initial=0.0)), units.time)

    def timed(title: str, point: float | None, total: Total = Total.NONE) -> Column:
        values = means if point is None else _points(rows, point)
        return number_column(title, values, Quantity.TIME, unit=unit, total=total)

    shares = np.array([np.nan if row.share is None else row.share for row in rows])
    kernels = np.array([np.nan if row.kernel_ns is None else row.kernel_ns for row in rows])
    joins = [JOIN_WORDS[row.link.grade.value] if row.kind != UNATTRIBUTED else "" for row in rows]
    runs = max((len(sample) for sample in samples if sample is not None), default=0)
    columns = (
        text_column("operator", [row.label for row in rows], width=30),
        text_column("module", [row.module for row in rows], missing="", width=22),
        text_column("delegate", [row.delegate or "—" for row in rows], width=12),
        timed("p50", 50.0, Total.SUM),
        timed("mean", None, Total.SUM),
        timed("min", 0.0),
        timed("max", 100.0),
        share_column("share of method", shares),
        number_column("kernel", kernels, Quantity.TIME, unit=unit, missing="—"),
        number_column("passes", np.array([row.passes for row in rows]), Quantity.COUNT),
        badge_column("join", joins, tone=_tone, explain=_reason),
        text_column("block", [row.block for row in rows]),
        number_column("runs", np.full(len(rows), runs), Quantity.COUNT),
    )
    muted = np.array([row.kind in (UNATTRIBUTED, "rest") for row in rows])
    return Table(columns, len(rows), [_key(row) for row in rows], muted, "operators")


def _key(row: OperatorRow) -> Hashable:
    return ("event", row.event) if row.event is not None else (row.kind, row.block)


def _points(rows: tuple[OperatorRow, ...], point: float | None) -> NDArray[np.float64]:
    values = np.full(len(rows), np.nan)
    for index, row in enumerate(rows):
        if row.samples_ns is not None:
            one = row.samples_ns.mean() if point is None else np.percentile(row.samples_ns, point)
            values[index] = float(one)
    return values


def _tone(value: object) -> str:
    return _TONES.get(str(value), "muted")


def _reason(value: object) -> str:
    return JOIN_REASONS.get(str(value), "")


def _untimed(session: Session, method: str) -> Table:
    graph = model_graph(session, method)
    passive = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)
    nodes = [node for node in graph.nodes if node.node.kind not in passive] if graph else []
    index = join_index(session, method)
    steps = [index.node_instructions.get(node.name, ()) for node in nodes]
    delegates = [
        f"{short_backend(node.backend)} {node.delegate}" if node.delegate is not None else "—"
        for node in nodes
    ]
    missing = np.full(len(nodes), np.nan)
    sizes = [node.output_bytes for node in nodes]
    weights = [sum(weight.nbytes or 0 for weight in node.weights) for node in nodes]
    columns = (
        text_column("operator", [node.node.target for node in nodes], width=30),
        text_column("module", [node.node.module_path for node in nodes], missing="", width=22),
        text_column("delegate", delegates, width=12),
        number_column("instruction", [own[0] if own else None for own in steps], Quantity.COUNT),
        number_column("p50", missing, Quantity.TIME),
        number_column("output", sizes, Quantity.SIZE, total=Total.SUM),
        number_column("weights", weights, Quantity.SIZE, total=Total.SUM),
    )
    keys: list[Hashable] = [("node", node.name) for node in nodes]
    return Table(columns, len(nodes), keys, None, "operators")


def delegation_words(session: Session, method: str) -> str:
    """Return how much of a method is delegated, in one phrase; empty when it is unknown."""
    for entry in analyse_delegation(session):
        if entry.method == method:
            total = entry.num_delegated_nodes + entry.num_non_delegated_nodes
            return f"{entry.num_delegated_nodes} of {total} nodes delegated"
    return ""
