"""The folders that jobs wrote, and how large they are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from inspector.files.written_folders import WrittenFolder, written_folders
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import AUTOMATIC, Units
from inspector.tables.table import Table, Total
from inspector.units import Quantity

_FIELDS = (
    RowField("folder", mono=True),
    RowField("kind"),
    RowField("size", Quantity.SIZE, total=Total.SUM),
    RowField("logged values", Quantity.SIZE, total=Total.SUM),
    RowField("written"),
)


def disk_table(
    folders: Sequence[WrittenFolder],
    place: Path,
    units: Units = AUTOMATIC,
    used: Sequence[bool] | None = None,
) -> Table:
    """Return one row per folder.

    Args:
        folders: to show
        place: that their names are relative to
        units: of the sizes
        used: which folders are open in the window, None outside of it
    """
    rows: list[tuple[object, ...]] = [
        (
            _name(one.path, place),
            one.kind.value,
            one.size,
            one.values_size,
            time.strftime("%Y-%m-%d %H:%M", time.localtime(one.written)),
        )
        for one in folders
    ]
    keys = [str(one.path) for one in folders]
    fields = _FIELDS
    if used is not None:
        fields = (*_FIELDS, RowField("state"))
        rows = [(*row, "open" if on else None) for row, on in zip(rows, used, strict=True)]
    return row_table(fields, rows, "folders", keys=keys, units=units)


def disk(place: Path, units: Units) -> Table:
    """Return the folders that jobs wrote beside a program or in a folder.

    Raises: OSError
    """
    return disk_table(written_folders(place), place, units)


def _name(path: Path, place: Path) -> str:
    base = place if place.is_dir() else place.parent
    base = Path.cwd() / base
    return str(path.relative_to(base)) if path.is_relative_to(base) and path != base else str(path)
