"""The table of operators with FLOPs, bytes and the limit they are near."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from typing_extensions import override

from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED
from inspector.join.int_maps import places_of
from inspector.roofline.rows import Limit, Limits, RooflineRow, known_limits, roofline
from inspector.tables.rows import RowField, bounded_times, row_table
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import Column, Keys, Table, Total, badge_column
from inspector.units import Formatter, Quantity
from schema.objects.plural import plural

_TONES = {Limit.COMPUTE: "good", Limit.MEMORY: "accent", Limit.OVERHEAD: "warn"}


def _tone(value: object) -> str:
    word = str(value).partition(":")[0]
    return next((tone for bound, tone in _TONES.items() if bound.value == word), "muted")


_RATES = (
    RowField("FLOPs a byte", Quantity.PLAIN),
    RowField("compute rate", Quantity.OPERATION_RATE),
    RowField("memory rate", Quantity.BANDWIDTH),
    RowField("share of limit", Quantity.SHARE),
)
_FIELDS = (
    RowField("operator", width=23),
    RowField("module", width=16),
    RowField("delegate", missing="—", width=13),
    RowField("mean", Quantity.TIME, Total.SUM),
    RowField("FLOPs", Quantity.OPERATIONS, Total.COMPLETE),
    RowField("read", Quantity.SIZE, Total.COMPLETE),
    RowField("written", Quantity.SIZE, Total.COMPLETE),
    *_RATES,
    RowField("limit", tone=_tone),
    RowField("dtype"),
    RowField("note"),
)

_WORK_FIELDS = (
    RowField("FLOPs", Quantity.OPERATIONS, Total.COMPLETE),
    RowField("bytes", Quantity.SIZE, Total.COMPLETE),
    *_RATES,
)
_LIMIT = "limit"
WORK_TITLES = (*(field.title for field in _WORK_FIELDS), _LIMIT)


def operators_at_limits(session: Session, method: str, units: Units) -> Table:
    """Return one row per operator: FLOPs, bytes, rates and the limit it is near."""
    found = roofline(session, method, known_limits(session))
    return roofline_table(found.rows, method, units)


def roofline_table(rows: tuple[RooflineRow, ...], method: str, units: Units) -> Table:
    """Return a table of rows."""
    cells = [_cells(row) for row in rows]
    table = row_table(_FIELDS, cells, "operators", keys=_RowKeys(rows, method), units=units)
    return bounded_times(table, [row.tick_ns for row in rows])


def work_columns(rows: Sequence[RooflineRow], limits: Limits, units: Units) -> tuple[Column, ...]:
    """Return the columns of work for the rows of another table."""
    cells = [_work_cells(row) for row in rows]
    columns = [
        field.column([row[place] for row in cells], units)
        for place, field in enumerate(_WORK_FIELDS)
    ]
    words = [_limit_words(row, limits) for row in rows]
    return (*columns, badge_column(_LIMIT, words, tone=_tone, explain=_explained(limits)))


def _explained(limits: Limits) -> Formatter:
    """Return the hover text of a limit: what is assumed, and how missing ones are measured."""
    parts = [limits.note]
    if limits.calibration is not None:
        machine = limits.calibration.described
        parts.append(f"limits of {plural(limits.threads, 'thread')} on {machine}")
    if limits.missing:
        parts.append("etscope roofline --calibrate measures the limits")
    return lambda value: "; ".join(filter(None, (str(value or ""), *parts)))


def _work_cells(row: RooflineRow) -> tuple[object, ...]:
    work = row.work
    rates = (row.flops_per_s, row.bytes_per_s, row.share)
    return (work.flops, work.nbytes, work.intensity, *rates)


def _limit_words(row: RooflineRow, limits: Limits) -> str | None:
    """Return the limit of an operator, or why it is unknown."""
    if row.words:
        return row.words
    if row.without_rate:
        return row.without_rate
    return limits.missing or None if row.time_ns else None


def _cells(row: RooflineRow) -> tuple[object, ...]:
    work = row.work
    return (
        row.label,
        row.module,
        row.delegate or None,
        row.time_ns,
        work.flops,
        work.read,
        work.written,
        work.intensity,
        row.flops_per_s,
        row.bytes_per_s,
        row.share,
        row.words or None,
        work.dtype or None,
        note(row) or None,
    )


def note(row: RooflineRow) -> str:
    """Return why something is missing, or which sizes were used."""
    return row.without_rate or ("upper bounds of dynamic sizes" if row.work.bounded else "")


class _RowKeys(Keys):
    """The subjects of rows, created on access and searchable without creating all of them."""

    def __init__(self, rows: Sequence[RooflineRow], method: str) -> None:
        self._rows = rows
        self._method = method
        self._of_event = places_of(row.event for row in rows)
        self._of_instruction = places_of(row.instruction for row in rows)

    @override
    def __len__(self) -> int:
        return len(self._rows)

    @override
    def at(self, row: int) -> Hashable:
        """Return the key of an existing row."""
        return row_selection(self._rows[row], self._method)

    @override
    def find(self, key: Hashable) -> int:
        """Return the first row with a key, or -1."""
        if not isinstance(key, Selection):
            return -1
        rows: Iterable[int] = range(len(self._rows))
        if key.event is not None:
            rows = self._of_event.get(key.event, ())
        elif key.instruction is not None:
            rows = self._of_instruction.get(key.instruction, ())
        same = (row for row in rows if self._rows[row].node == key.node)
        return next((row for row in same if self.at(row) == key), -1)


def row_selection(row: RooflineRow, method: str) -> Selection:
    """Return the subject of a row: its event, else its instruction, else its node."""
    if row.event is not None:
        kind = SelectionKind.EVENT
    elif row.instruction is not None:
        kind = SelectionKind.INSTRUCTION
    else:
        kind = SelectionKind.NODE
    return Selection(
        kind,
        method=method,
        graph=COMPILED,
        node=row.node,
        instruction=row.instruction,
        event=row.event,
        delegate=row.index,
    )
