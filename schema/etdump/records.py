"""Fixed layouts of the tables that `encode` writes, and the vtables that describe them.

Each event is one record: the Event table and the table it points to. An absent field keeps its
bytes; only the vtable says that it is absent.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from schema.etdump.events import Numbers
from schema.flatbuf.columns import Ints

EVENT_BYTES = 8  # in front of the table of its kind
_EVENT = [("event_vtable", "<i4"), ("event_to", "<u4")]
PROFILE = np.dtype(
    [
        *_EVENT,
        ("vtable", "<i4"),
        ("name", "<u4"),
        ("chain_index", "<i4"),
        ("instruction_id", "<i4"),
        ("delegate_id_int", "<i4"),
        ("delegate_id_str", "<u4"),
        ("metadata", "<u4"),
        ("unused", "<u4"),
        ("start_time", "<u8"),
        ("end_time", "<u8"),
    ]
)
ALLOCATION = np.dtype(
    [*_EVENT, ("vtable", "<i4"), ("allocator_id", "<i4"), ("allocation_size", "<u8")]
)
DEBUG = np.dtype(
    [
        *_EVENT,
        ("vtable", "<i4"),
        ("instruction_id", "<i4"),
        ("chain_index", "<u8"),
        ("value", "<u4"),
        ("delegate_id_int", "<i4"),
        ("delegate_id_str", "<u4"),
        ("name", "<u4"),
    ]
)
NONE = np.dtype(_EVENT)
VALUE = np.dtype(
    [
        ("vtable", "<i4"),
        ("tensor", "<u4"),
        ("tensor_list", "<u4"),
        ("int_value", "<u4"),
        ("float_value", "<u4"),
        ("double_value", "<u4"),
        ("bool_value", "<u4"),
        ("output", "<u4"),
        ("type", "<i4"),  # one byte is read
    ]
)
TENSOR = np.dtype(
    [
        ("vtable", "<i4"),
        ("sizes", "<u4"),
        ("strides", "<u4"),
        ("scalar_type", "<i4"),  # one byte is read
        ("offset", "<i8"),
    ]
)
NARROW = np.dtype([("vtable", "<i4"), ("item", "<u4")])  # bool, float, an offset
WIDE = np.dtype([("vtable", "<i4"), ("unused", "<u4"), ("item", "<u8")])  # int, double
RUN = np.dtype(
    [
        ("vtable", "<i4"),
        ("name", "<u4"),
        ("bundled_input_index", "<i4"),
        ("allocators", "<u4"),
        ("events", "<u4"),
    ]
)


def offsets_of(record: np.dtype[np.void], names: Sequence[str], base: int) -> tuple[int, ...]:
    """Return where fields are, counted from a table that starts ``base`` bytes into the record."""
    return tuple(offset_of(record, name) - base for name in names)


def offset_of(record: np.dtype[np.void], name: str) -> int:
    """Return where a field is in a record; records have no gaps."""
    names = record.names or ()
    return sum(record[before].itemsize for before in names[: names.index(name)])


class Vtables:
    """Collects vtables and where they will be.

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
        self, table_bytes: int, offsets: Sequence[int], optional: Sequence[int], present: Numbers
    ) -> Ints:
        """Return the vtable position of each row of a table with optional fields.

        Args:
            table_bytes: inline size
            offsets: place of each slot
            optional: the slots that a row may leave out
            present: bit i says that ``optional[i]`` is there, unsigned[rows]
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
