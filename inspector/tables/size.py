"""Parts of files as a table: every byte, its owner and its kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from inspector.files.session import LoadedFile, Session
from inspector.size.files import PlacedParts, session_sizes
from inspector.size.owners import FilePart
from inspector.size.users import Users, part_title, stored_users, users_of, users_text
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import AUTOMATIC, Selection, SelectionKind, Units
from inspector.tables.table import Keys, Table, Total, number_column, share_column, text_column
from inspector.units import Quantity, choose_unit

_PLACE = re.compile(r"(?P<path>.*)@(?P<offset>\d+)\+(?P<nbytes>\d+)", re.DOTALL)


def part_selection(file: LoadedFile, part: FilePart) -> Selection:
    """Return the selection of a part."""
    return Selection(SelectionKind.PART, part=f"{file.path}@{part.offset}+{part.nbytes}")


class _PartKeys(Keys):
    """Selections of parts, of which a large program has hundreds of thousands."""

    def __init__(self, parts: Sequence[tuple[LoadedFile, FilePart]]) -> None:
        self._parts = parts
        self._places = _offsets(parts), np.array([part.nbytes for _, part in parts], np.int64)

    @override
    def __len__(self) -> int:
        return len(self._parts)

    @override
    def at(self, row: int) -> Selection:
        """Return the key of an existing row."""
        return part_selection(*self._parts[row])

    @override
    def find(self, key: Hashable) -> int:
        """Return the first row with a key, or -1."""
        found = isinstance(key, Selection) and _PLACE.fullmatch(key.part)
        if not found:
            return -1
        offset, nbytes = self._places
        try:
            there = (offset == int(found["offset"])) & (nbytes == int(found["nbytes"]))
        except OverflowError:  # a place of another file, or of none
            return -1
        rows: list[int] = np.flatnonzero(there).tolist()
        return next((row for row in rows if part_selection(*self._parts[row]) == key), -1)


def parts_table(
    parts: Sequence[tuple[LoadedFile, FilePart]],
    size_unit: str = "auto",
    *,
    files: bool = False,
    users: Users | None = None,
    compared: bool = False,
) -> Table:
    """Return the parts as a table; keys are Selections, so that a row can be selected.

    Args:
        parts: each with its file
        size_unit: of the sizes
        files: whether a column names the file
        users: readers of each part, for a column; or None
        compared: whether contents were compared, so that a blank means "none"
    """
    total = sum(part.nbytes for _, part in parts)
    sizes = np.array([part.nbytes for _, part in parts], np.int64)
    unit = choose_unit(Quantity.SIZE, float(sizes.max(initial=0)), size_unit)
    shares = sizes / total if total else np.zeros(len(sizes))
    titles = [part_title(part, users or {}) for _, part in parts]
    columns = [
        text_column("part", titles, mono=True),
        number_column("size", sizes, Quantity.SIZE, unit=unit, total=Total.SUM),
        share_column("share", shares),
        text_column("kind", [part.kind for _, part in parts]),
        number_column("bytes", sizes, Quantity.COUNT, total=Total.SUM),
        number_column("offset", _offsets(parts), Quantity.ADDRESS),
    ]
    if users is not None:
        read_by = [users_text(users_of(part, users)) or None for _, part in parts]
        columns.append(text_column("used by", read_by, missing=""))
    names = [
        part.name if part.name != title else None
        for (_, part), title in zip(parts, titles, strict=True)
    ]
    if any(names):
        columns.append(text_column("stored as", names, missing="", mono=True))
    if files:
        columns.append(text_column("file", [Path(file.path).name for file, _ in parts]))
    if compared or any(part.duplicate_of for _, part in parts):
        again = [part.duplicate_of or None for _, part in parts]
        columns.append(text_column("same content as", again, missing="", mono=True))
    return Table(tuple(columns), len(parts), _PartKeys(parts), noun="parts")


def _offsets(
    parts: Sequence[tuple[LoadedFile, FilePart]],
) -> NDArray[np.int64]:
    return np.array([part.offset for _, part in parts], np.int64)


def parts(session: Session, units: Units) -> Table:
    """Return all parts of all files with known structure."""
    known = [one for one in session_sizes(session) if one.size is not None]
    return parts_table(
        PlacedParts(known), units.size, files=len(known) > 1, users=stored_users(session)
    )


_KINDS = (
    RowField("kind"),
    RowField("parts", Quantity.COUNT, Total.SUM),
    RowField("size", Quantity.SIZE, Total.SUM),
    RowField("share", Quantity.SHARE, Total.SUM),
)


def kind_table(parts: Sequence[FilePart], units: Units = AUTOMATIC) -> Table:
    """Return the parts summed by kind, the largest first."""
    counts: Counter[str] = Counter(part.kind for part in parts)
    sizes: Counter[str] = Counter()
    for part in parts:
        sizes[part.kind] += part.nbytes
    whole = max(sizes.total(), 1)
    rows = [(kind, counts[kind], size, size / whole) for kind, size in sizes.most_common()]
    return row_table(_KINDS, rows, "kinds", keys=[row[0] for row in rows], units=units)


def kinds(session: Session, units: Units) -> Table:
    """Return the parts of all files summed by kind."""
    known = (one.size for one in session_sizes(session))
    return kind_table([part for one in known if one is not None for part in one.parts], units)
