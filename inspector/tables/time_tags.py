"""Remarks to show with tables that have times: values logged, an assumed unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.files.session import Session
from inspector.profile.methods import analyse_profile
from inspector.tables.table import Table
from inspector.units import Quantity, base_symbol


def time_tags(sessions: Iterable[Session], tables: Sequence[Table]) -> tuple[str, ...]:
    """Return the remarks to show with the times of tables; empty for tables without times."""
    unit = base_symbol(Quantity.TIME)
    if not any(column.raw_unit == unit for table in tables for column in table.columns):
        return ()
    return tuple(dict.fromkeys(tag for one in sessions for tag in analyse_profile(one).tags))


def tag_line(tags: Sequence[str]) -> str:
    """Return remarks as one line, empty without any."""
    return f"times: {', '.join(tags)}" if tags else ""
