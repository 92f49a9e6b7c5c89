"""Values of tables for programs: JSON, TSV and CSV; unrounded, in base units."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

from inspector.render.delimited import TextFormat, table_lines
from inspector.tables.figures import Figure
from inspector.tables.query import Selected
from inspector.tables.selection import Selection


def json_value(selected: Selected) -> dict[str, Any]:
    """Return rows of a table as JSON: columns with id, title and unit, then rows of values.

    A row is ``{"key": …, "depth": …, "values": […]}``; the key is the row's identity (kind and its
    ids) where it is something of the session, depth is there for trees.
    """
    return {
        "columns": [
            {"id": column.id, "title": column.title, "unit": column.raw_unit}
            for column in selected.table.columns
        ],
        "rows": [_row(selected, place) for place in range(len(selected.rows))],
    }


def _row(selected: Selected, place: int) -> dict[str, Any]:
    row = int(selected.rows[place])
    found: dict[str, Any] = {"key": _key(selected.table.key(row))}
    if selected.depths is not None:
        found["depth"] = int(selected.depths[place])
    found["values"] = [json_cell(column.values[row]) for column in selected.table.columns]
    return found


def _key(key: Hashable) -> Mapping[str, Any] | None:
    if not isinstance(key, Selection) or not key:
        return None
    known = ((one.name, getattr(key, one.name)) for one in fields(key) if one.name != "kind")
    return {
        "kind": key.kind.value,
        **{name: value for name, value in known if value not in ("", None)},
    }


def json_cell(value: object) -> str | int | float | dict[str, Any] | None:
    """Return a cell as a JSON value; a figure, whose column has no unit, with its own."""
    if isinstance(value, Figure):
        return {"value": plain_value(value), "unit": value.symbol}
    return plain_value(value)


def plain_value(value: object) -> str | int | float | None:
    """Return a cell without its unit; missing ones and those that are not finite as None."""
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else None
    return str(value)


def separated_rows(selected: Selected, delimiter: str) -> Iterator[str]:
    """Yield rows of a table as lines of TSV or CSV."""
    kind = TextFormat.TSV if delimiter == "\t" else TextFormat.CSV
    return table_lines(selected.table, selected.rows.tolist(), kind)
