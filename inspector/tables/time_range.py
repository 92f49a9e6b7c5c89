"""The part of each operator inside of a range of time, and the sums of the range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.profile.operator_columns import KINDS, LEFT, REST, delegate_label
from inspector.profile.time_range import (
    WHOLE_RUN,
    RangeError,
    RangeRows,
    RangeSums,
    TimeRange,
    range_times,
)
from inspector.tables.event_keys import EventKeys
from inspector.tables.operators import DELEGATE
from inspector.tables.query import QueryError
from inspector.tables.selection import AUTOMATIC, Units
from inspector.tables.table import (
    Categories,
    Column,
    Table,
    Total,
    bounded_share,
    bounds_in,
    number_column,
    share_column,
    text_column,
)
from inspector.units import Quantity, choose_unit, format_quantity, format_share
from schema.objects.plural import plural

_OTHER_CLOCK = "other clock"


def time_range(
    session: Session, method: str, units: Units = AUTOMATIC, span: TimeRange = WHOLE_RUN
) -> Table:
    """Return one row per operator that overlaps a range of time, longest first.

    Only the part inside of the range counts: times add up to that of the method in it.

    Raises: QueryError for an unknown run, an empty range and a session without runs
    """
    try:
        return range_table(method, *range_times(session, method, span), units)
    except RangeError as error:
        raise QueryError(str(error)) from error


class _RangeCells:
    """Columns of the rows of all blocks, longest time first."""

    def __init__(self, rows: Sequence[RangeRows]) -> None:
        self._rows = rows
        inside = np.concatenate([np.zeros(0), *(one.inside for one in rows)])
        self.order = np.argsort(-np.nan_to_num(inside), kind="stable")
        self.inside = inside[self.order]

    def of(self, values: Callable[[RangeRows], NDArray[Any]]) -> NDArray[Any]:
        """Return a column of one value per row."""
        found = np.concatenate([np.zeros(0, np.int64), *(values(one) for one in self._rows)])
        return found[self.order]

    def text(
        self,
        codes: Callable[[RangeRows], NDArray[Any]],
        texts: Callable[[RangeRows], Sequence[str]],
    ) -> Categories:
        """Return a column of strings that rows refer to by number."""
        found = Categories.of((codes(one)[one.rows], texts(one)) for one in self._rows)
        return Categories(found.codes[self.order], found.labels)

    def of_part(self, name: str) -> NDArray[Any]:
        """Return a column of the operators."""
        return self.of(lambda one: getattr(one.part, name)[one.rows])

    def keys(self, method: str) -> EventKeys:
        """Return the selection of each row."""
        links = [link for one in self._rows for link in one.part.links]
        first = np.cumsum([0, *(len(one.part.links) for one in self._rows)]).tolist()
        numbered = [
            one.part.link[one.rows] + first[number] for number, one in enumerate(self._rows)
        ]
        link = np.concatenate([np.zeros(0, np.int64), *numbered])[self.order]
        events, kinds = self.of_part("events"), self.of_part("kind")
        events = np.where(self.of_part("event") >= 0, events, -1)
        others = {row: KINDS[int(kinds[row])] for row in np.flatnonzero(events < 0).tolist()}
        delegates = tuple(one.delegate for one in links)
        return EventKeys(method, events, self.of_part("instruction"), link, delegates, others)


def range_table(
    method: str, sums: RangeSums, rows: Sequence[RangeRows], units: Units = AUTOMATIC
) -> Table:
    """Return the operators of a range as a table.

    Args:
        method: that ran
        sums: of the range
        rows: its operators
        units: of times
    """
    cells = _RangeCells(rows)
    base = sums.method if sums.method > 0 else float(np.nansum(cells.inside))
    base = base if base > 0 and not sums.logged else float("nan")
    shares = cells.inside / base
    share = share_column("share of range", shares)
    unit = choose_unit(sums.quantity, float(np.nanmax(cells.inside, initial=0.0)), units.time)

    ticks = cells.of_part("tick_ns")
    least = bounds_in(base, ticks)

    def time(title: str, values: NDArray[Any], missing: str = "—") -> Column:
        column = number_column(
            title, values, sums.quantity, unit=unit, total=Total.SUM, missing=missing
        )
        return replace(column, least=ticks) if sums.quantity is Quantity.TIME else column

    def count(title: str, values: NDArray[Any]) -> Column:
        return number_column(title, values, Quantity.COUNT, total=Total.SUM)

    steps = cells.of_part("instruction")
    columns = (
        text_column("operator", cells.text(_labels, lambda one: one.part.labels), width=23),
        text_column(DELEGATE, cells.text(_links, _delegates), width=13),
        time("time in range", cells.inside, _OTHER_CLOCK),
        share if sums.quantity is not Quantity.TIME else bounded_share(share, least),
        count("events", cells.of(lambda one: one.events)),
        count("cut", cells.of(lambda one: one.cut)),
        time("uncut time", cells.of(lambda one: one.whole)),
        text_column(
            "module", cells.text(_links, lambda one: one.part.modules), missing="", width=16
        ),
        number_column(
            "instruction", np.where(steps < 0, np.nan, steps), Quantity.COUNT, missing="—"
        ),
        number_column(
            "start", cells.of(lambda one: one.start), sums.quantity, unit=unit, missing="—"
        ),
    )
    muted = np.isin(cells.of_part("kind"), (REST, LEFT))
    return Table(columns, len(cells.inside), cells.keys(method), muted, "operators")


def _labels(one: RangeRows) -> NDArray[Any]:
    return one.part.label


def _links(one: RangeRows) -> NDArray[Any]:
    return one.part.link


def _delegates(one: RangeRows) -> list[str]:
    return [delegate_label(link) or "—" for link in one.part.links]


def range_summary(sums: RangeSums, time_unit: str = "auto") -> str:
    """Return the sums of a range as a line, all in one unit."""
    unit = choose_unit(sums.quantity, max(sums.end, sums.method), time_unit).symbol

    def time(value: float) -> str:
        return format_quantity(value, sums.quantity, unit)

    parts = [f"{time(sums.end - sums.start)}, from {time(sums.start)} to {time(sums.end)}"]
    if sums.all_runs > 1:
        others = f" of {sums.all_runs:,}" if sums.runs < sums.all_runs else ""
        parts.append(f"sums over {sums.runs:,}{others} runs")
    named = {
        "delegates": sums.delegates,
        "operators": sums.operators,
        "control flow": sums.control,
        "unattributed": sums.unattributed,
    }
    shares = sums.method > 0 and not sums.logged
    for name, value in named.items():
        if value > 0:
            share = f" ({format_share(value / sums.method)})" if shares else ""
            parts.append(f"{name} {time(value)}{share}")
    calls = plural(sums.calls, "call")  # behind the sums, which a narrow window then shows
    if sums.cut:
        calls += f", {sums.cut:,} cut by the borders: only what lies inside counts"
    return " · ".join([*parts, calls])
