"""Errors of several sessions side by side, by output; each has its own reference."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.compare.alignment import GraphAlignment
from inspector.compare.model import LESS, ComparePlace, Delta, GapRow
from inspector.numerics.metrics import Metrics, is_floating
from inspector.numerics.report import GapReport, Row

_NOT_FINITE = "NaN or infinite in one of the two only"
Reports = Sequence[GapReport | None]


def gap_rows(
    method: str, reports: Reports, alignments: Sequence[GraphAlignment | None]
) -> tuple[GapRow, ...]:
    """Return the outputs that are compared in some session, largest difference of errors first."""
    count = len(reports)
    found: dict[tuple[str, int, int], list[Row | None]] = {}
    for number, report in enumerate(reports):
        alignment = alignments[number - 1] if number else None
        for row in _rows(report, method):
            if row.node:
                key = _key(row, number, alignment)
                found.setdefault(key, [None] * count)[number] = row
    rows = [_row(method, key, each) for key, each in found.items()]
    return tuple(sorted(rows, key=_change))


def _rows(report: GapReport | None, method: str) -> list[Row]:
    runs = report.first_of_each() if report is not None else ()
    return [row for run in runs if run.method == method for row in run.rows]


def _references(method: str, reports: Reports) -> str:
    """Return words about references other than the recorded programs, to add to a note."""
    runs = [run for report in reports if report is not None for run in report.runs]
    kinds = {run.is_float for run in runs if run.method == method}
    if kinds == {True}:
        return "; beside the float programs"
    return "; not comparable: only some are beside a float program" if len(kinds) > 1 else ""


def _key(row: Row, number: int, alignment: GraphAlignment | None) -> tuple[str, int, int]:
    """Return the node of the first session for a row, else its own node with its session."""
    if number == 0:
        return row.node, row.slot, 0
    if alignment is not None:
        there = alignment.new.by_name.get(row.node)
        here = alignment.to_old.get(there) if there is not None else None
        if here is not None:
            return alignment.old.nodes[here].name, row.slot, 0
    return row.node, row.slot, number


def _row(method: str, key: tuple[str, int, int], rows: Sequence[Row | None]) -> GapRow:
    operator = next(row.operator for row in rows if row is not None)
    return GapRow(
        method,
        key[0],
        key[1],
        operator,
        tuple(_largest(None if row is None else row.total) for row in rows),
        tuple(_largest(None if row is None else row.own) for row in rows),
        tuple("not there" if row is None else row.reason or _odd((row,)) for row in rows),
    )


def _largest(metrics: Metrics | None) -> float | None:
    """Return the largest difference; None where only one of the two is a finite number."""
    return None if metrics is None or metrics.odd else metrics.max_abs


def _odd(rows: Sequence[Row]) -> str:
    return _NOT_FINITE if any(row.total is not None and row.total.odd for row in rows) else ""


def _change(row: GapRow) -> float:
    old = row.max_abs[0]
    gaps = [abs(new - old) for new in row.max_abs[1:] if new is not None and old is not None]
    return -max(gaps, default=-1.0)


def gap_summary(method: str, reports: Reports) -> tuple[Delta, ...]:
    """Return the largest error, and how many outputs exceed the tolerance by their own error."""
    if all(not _rows(report, method) for report in reports):
        return ()
    largest: list[float | None] = []
    diverging: list[int | None] = []
    where: list[ComparePlace | None] = []
    words: list[str] = []
    for number, report in enumerate(reports):
        rows = _rows(report, method)
        compared = [row for row in rows if row.total is not None and not row.doubtful]
        # Indices and classes that differ are counted below; their differences are not errors.
        measured = [row for row in compared if is_floating(row.dtype)] or compared
        found = [_largest(row.total) for row in measured]
        known = [one for one in found if one is not None]
        largest.append(max(known) if known and len(known) == len(found) else None)
        diverging.append(sum(row.diverges for row in compared) if compared else None)
        first = next((row for row in rows if row.diverges), None)
        where.append(
            ComparePlace(number, "gap", method, first.node if first else "") if rows else None
        )
        odd = _odd(measured)
        word = first.node if first is not None else "none" if compared else "unknown"
        words.append(f"{word} ({odd})" if odd else word)
    note = f"first divergence: {', '.join(words)}{_references(method, reports)}"
    return (
        Delta("gap", "largest error", "", tuple(largest), LESS, method, (), note, tuple(where)),
        Delta(
            "gap",
            "outputs out of tolerance",
            "",
            tuple(diverging),
            LESS,
            method,
            (),
            "",
            tuple(where),
        ),
    )
