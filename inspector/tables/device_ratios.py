"""The same program on several devices: the time of each operator and its ratio to the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from inspector.compare.model import Comparison
from inspector.compare.sessions import compare_sessions
from inspector.files.origin import HERE, device_name
from inspector.files.session import Session
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import AUTOMATIC, Units
from inspector.tables.table import Table
from inspector.units import NS_PER_MS, Quantity

WHOLE = "all of a run"
_Times = tuple[float | None, ...]


def device_ratios(sessions: Sequence[Session], method: str, units: Units) -> Table:
    """Return one row per operator: its time in each session, and over that of the first."""
    return ratios_table(compare_sessions(sessions, None, (), method), sessions, units)


def ratios_table(found: Comparison, sessions: Sequence[Session], units: Units = AUTOMATIC) -> Table:
    """Return the ratios of a comparison; times that were not measured together have no verdict.

    Args:
        found: of the sessions
        sessions: in the order of the comparison
        units: of times
    """
    titles = _titles(sessions)
    several = len({row.method for row in found.operators}) > 1
    rows = [
        (
            f"{row.method}: {row.name}" if several else row.name,
            row.ms,
            row.ticks_ns or (0.0,) * len(row.ms),
        )
        for row in found.operators
    ]
    if rows:
        whole = tuple(_sum(column) for column in zip(*(ms for _, ms, _ in rows), strict=True))
        rows.insert(0, (WHOLE, whole, (0.0,) * len(whole)))
    fields = [RowField("operator", mono=True)]
    fields += [RowField(title, Quantity.TIME) for title in titles]
    fields += [RowField(f"{title} / {titles[0]}", Quantity.PLAIN) for title in titles[1:]]
    cells = [(name, *map(_ns, ms), *_ratios(ms, ticks)) for name, ms, ticks in rows]
    table = row_table(fields, cells, "operators", units=units)
    steps = np.array([ticks for _, _, ticks in rows], np.float64)
    columns = list(table.columns)
    for place in range(len(titles)) if rows else ():
        columns[place + 1] = replace(columns[place + 1], least=steps[:, place])
    return replace(table, columns=tuple(columns))


def _titles(sessions: Sequence[Session]) -> list[str]:
    names = [device_name(session) or HERE for session in sessions]
    return [
        f"{name} ({number})" if names.count(name) > 1 else name
        for number, name in enumerate(names, 1)
    ]


def _sum(column: Sequence[float | None]) -> float | None:
    known = [ms for ms in column if ms is not None]
    return sum(known) if known else None


def _ns(ms: float | None) -> float | None:
    return None if ms is None else ms * NS_PER_MS


def _ratios(ms: _Times, ticks_ns: Sequence[float]) -> list[float | None]:
    """Return the ratios to the first; missing where one of the two is below a step of its clock."""
    known = [
        one if one is not None and abs(one) * NS_PER_MS >= tick else None
        for one, tick in zip(ms, ticks_ns, strict=True)
    ]
    first = known[0]
    return [one / first if one is not None and first else None for one in known[1:]]
