"""Records as which `encode` writes tables, and their vtables.

Each event is one record: the Event table and the table it points to. An absent field keeps its
bytes; the vtable marks it as absent.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from schema.etdump import tables
from schema.etdump.events import Array
from schema.etdump.tables import EVENT_TABLES
from schema.flatbuf.columns import Ints
from schema.flatbuf.spec import Field, Scalar, Spec

_EVENT = (("event_vtable", "<i4"), ("event_to", "<u4"))
EVENT_BYTES = 8  # in front of the table of its kind
NONE = np.dtype([*_EVENT])


def record_of(table: Spec[Any], before: Sequence[tuple[str, str]] = ()) -> np.dtype[np.void]:
    """Return the record of a table: its vtable, fields of 4 bytes or fewer, then those of 8.

    A scalar of fewer bytes takes 4. Records have no gaps; one that starts at a multiple of 8
    has its fields aligned.

    Args:
        table: its fields give the record's fields, by name
        before: fields of 8 bytes placed before the table
    """
    kinds = [(field.name, _dtype(field)) for field in table.fields]
    narrow = [row for row in kinds if row[1][-1] != "8"]
    wide = [row for row in kinds if row[1][-1] == "8"]
    gap = [("unused", "<u4")] if wide and len(narrow) % 2 == 0 else []
    return np.dtype([*before, ("vtable", "<i4"), *narrow, *gap, *wide])


def _dtype(field: Field) -> str:
    dtype = field.type.dtype if isinstance(field.type, Scalar) else "<u4"
    return f"{dtype[:2]}{max(int(dtype[2:]), 4)}"


EVENT_RECORDS = tuple(record_of(table, _EVENT) for table in EVENT_TABLES)  # by EventKind
VALUE, TENSOR, RUN = record_of(tables.VALUE), record_of(tables.TENSOR), record_of(tables.RUN_DATA)


def offset_of(record: np.dtype[np.void], name: str) -> int:
    """Return where a field is in a record."""
    names = record.names or ()
    return sum(record[before].itemsize for before in names[: names.index(name)])


def vtable_of(table: Spec[Any], record: np.dtype[np.void]) -> tuple[int, tuple[int, ...]]:
    """Return the bytes of a table and the offset of each slot in it, as a vtable has them."""
    base = offset_of(record, "vtable")
    offsets = tuple(offset_of(record, field.name) - base for field in table.fields)
    return record.itemsize - base, offsets


def optional(table: Spec[Any]) -> tuple[int, ...]:
    """Return the slots that rows may omit: those of offsets."""
    return tuple(field.slot for field in table.fields if not isinstance(field.type, Scalar))


class Vtables:
    """Collects vtables and their future positions.

    Attributes:
        end: first byte after them
    """

    def __init__(self, at: int) -> None:
        self._known: dict[tuple[int, ...], int] = {}
        self._parts: list[bytes] = []
        self.end = at

    def add(self, table_bytes: int, offsets: Sequence[int]) -> int:
        """Return the position of the vtable of a table; equal ones are written once."""
        key = (table_bytes, *offsets)
        if key not in self._known:
            size = 4 + 2 * len(offsets)
            self._known[key] = self.end
            self._parts.append(struct.pack(f"<{2 + len(offsets)}H", size, *key))
            self.end += size
        return self._known[key]

    def each(
        self, table_bytes: int, offsets: Sequence[int], optional: Sequence[int], present: Array
    ) -> Ints:
        """Return the vtable position of each row of a table with optional fields.

        Args:
            table_bytes: inline size
            offsets: of each slot
            optional: the slots that a row may omit
            present: bit i is set where ``optional[i]`` is present, unsigned[rows]
        """
        lookup = np.zeros(1 << len(optional), dtype=np.int64)
        for mask in np.flatnonzero(np.bincount(present, minlength=1)).tolist():
            absent = {slot for bit, slot in enumerate(optional) if not mask >> bit & 1}
            places = [0 if slot in absent else place for slot, place in enumerate(offsets)]
            lookup[mask] = self.add(table_bytes, places)
        return lookup[present]

    def tobytes(self) -> bytes:
        """Return all vtables."""
        return b"".join(self._parts)
