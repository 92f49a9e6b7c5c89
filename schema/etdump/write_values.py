"""Writes logged values by columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from schema.etdump import records as rec
from schema.etdump import values as v
from schema.etdump.events import Array
from schema.etdump.tables import TENSOR, VALUE
from schema.flatbuf.columns import Ints, reinterpret
from schema.flatbuf.spec import Spec

_LIST_BYTES = 8  # of a TensorList: its vtable and the offset of its vector


@dataclass(slots=True)
class _Box:
    """Tables with a single field: the rows that have one, its bytes, record and vtable."""

    field: str
    scalar: str
    owners: Ints
    items: Array
    record: np.dtype[np.void]
    vtable: int
    start: int = 0

    @property
    def at(self) -> Ints:
        """Return the position of each table."""
        return self.start + self.record.itemsize * np.arange(len(self.owners), dtype=np.int64)


class ValueWriter:
    """Writes all values of a trace.

    Attributes:
        at: position of each Value table once `place` has run, int64[values]
    """

    def __init__(self, values: v.DebugValues, vtables: rec.Vtables) -> None:
        self._columns = values.columns
        self._count = len(values)
        self.at: Ints = np.zeros(self._count, dtype=np.int64)
        self._boxes = self._all_boxes(vtables)
        self._vtables = vtables.each(
            *rec.vtable_of(VALUE, rec.VALUE), rec.optional(VALUE), self._present()
        )
        self._tensor_vtable = vtables.add(*rec.vtable_of(TENSOR, rec.TENSOR))
        self._list_owners = np.flatnonzero(self._columns.has & v.HAS_LIST)
        self._list_vtable = vtables.add(_LIST_BYTES, (4,))

    def _present(self) -> Array:
        c = self._columns
        flags = (
            c.tensor >= 0,
            c.has & v.HAS_LIST,
            c.has & v.HAS_INT,
            c.has & v.HAS_FLOAT,
            c.has & v.HAS_DOUBLE,
            c.has & v.HAS_BOOL,
            c.output >= 0,
        )
        present = np.zeros(self._count, dtype=np.uint8)
        for bit, flag in enumerate(flags):
            present |= (flag != 0).astype(np.uint8) << bit
        return present

    def _all_boxes(self, vtables: rec.Vtables) -> list[_Box]:
        c = self._columns
        found: list[_Box] = []
        for name, flag in (
            ("int_value", c.has & v.HAS_INT),
            ("float_value", c.has & v.HAS_FLOAT),
            ("double_value", c.has & v.HAS_DOUBLE),
            ("bool_value", c.has & v.HAS_BOOL),
            ("output", c.output >= 0),
        ):
            table: Spec[Any] = VALUE.field(name).type
            record = rec.record_of(table)
            vtable = vtables.add(*rec.vtable_of(table, record))
            owners = np.flatnonzero(flag)
            items: Array = getattr(c, name)
            found.append(_Box(name, table.fields[0].name, owners, items[owners], record, vtable))
        return found

    def place(self, start: int) -> int:
        """Choose all positions from an 8-aligned one on; return the first byte after them."""
        c = self._columns
        self.at = start + rec.VALUE.itemsize * np.arange(self._count, dtype=np.int64)
        end = _aligned(start + rec.VALUE.itemsize * self._count)
        for box in self._boxes:
            box.start = end
            end = _aligned(end + box.record.itemsize * len(box.owners))
        counts = c.list_count[self._list_owners].astype(np.int64)
        sizes = _LIST_BYTES + 4 + 4 * counts  # the table, then its vector
        self._lists_at = end + np.cumsum(sizes) - sizes
        end = _aligned(end + int(sizes.sum()))
        self._tensors_at = end
        end += rec.TENSOR.itemsize * len(c.scalar_type)
        self._numbers_at, end = _vectors(end, np.concatenate([c.sizes_count, c.strides_count]))
        return end

    def write(self, out: bytearray) -> None:
        """Write all tables at their positions."""
        if not self._count:
            return
        c = self._columns
        records = np.ndarray((self._count,), rec.VALUE, out, int(self.at[0]))
        records["vtable"] = self.at - self._vtables
        records["val"] = reinterpret(c.type, "u1")
        tensor_at = self._tensors_at + rec.TENSOR.itemsize * c.tensor.astype(np.int64)
        field_at = self.at + _field("tensor")
        records["tensor"] = np.where(c.tensor >= 0, tensor_at - field_at, 0)
        records["tensor_list"][self._list_owners] = (
            self._lists_at - self.at[self._list_owners] - _field("tensor_list")
        )
        for box in self._boxes:
            target = box.at
            records[box.field][box.owners] = target - self.at[box.owners] - _field(box.field)
            tables = np.ndarray((len(box.owners),), box.record, out, box.start)
            tables["vtable"] = target - box.vtable
            tables[box.scalar] = box.items
        self._write_lists(out)
        self._write_tensors(out)

    def _write_lists(self, out: bytearray) -> None:
        c = self._columns
        words = np.ndarray((len(out) // 4,), "<u4", out)
        at = self._lists_at
        words[at // 4] = at - self._list_vtable
        words[at // 4 + 1] = 4
        counts = c.list_count[self._list_owners].astype(np.int64)
        words[at // 4 + 2] = counts
        first = np.cumsum(counts) - counts
        inside = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(first, counts)
        slots = np.repeat(at + 12, counts) + 4 * inside
        tensor = np.repeat(c.list_start[self._list_owners].astype(np.int64), counts) + inside
        words[slots // 4] = self._tensors_at + rec.TENSOR.itemsize * tensor - slots

    def _write_tensors(self, out: bytearray) -> None:
        c = self._columns
        count = len(c.scalar_type)
        if not count:
            return
        at = self._tensors_at + rec.TENSOR.itemsize * np.arange(count, dtype=np.int64)
        tensors = np.ndarray((count,), rec.TENSOR, out, self._tensors_at)
        tensors["vtable"] = at - self._tensor_vtable
        tensors["scalar_type"] = reinterpret(c.scalar_type, "u1")
        tensors["offset"] = c.offset
        tensors["sizes"] = self._numbers_at[:count] - (at + rec.offset_of(rec.TENSOR, "sizes"))
        tensors["strides"] = self._numbers_at[count:] - (at + rec.offset_of(rec.TENSOR, "strides"))
        counts = np.concatenate([c.sizes_count, c.strides_count])
        starts = np.concatenate([c.sizes_start, c.strides_start])
        words = np.ndarray((len(out) // 4,), "<u4", out)
        words[self._numbers_at // 4] = counts
        wide = np.ndarray((len(out) // 8,), "<i8", out)
        first = np.cumsum(counts) - counts
        inside = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(first, counts)
        to = np.repeat((self._numbers_at + 4) // 8, counts) + inside
        wide[to] = c.numbers[np.repeat(starts, counts) + inside]


def _aligned(at: int) -> int:
    return -(-at // 8) * 8


def _field(name: str) -> int:
    return rec.offset_of(rec.VALUE, name)


def _vectors(start: int, counts: Ints) -> tuple[Ints, int]:
    """Place vectors of 8-byte integers so that the elements, not the counts, are aligned."""
    sizes = 8 * (1 + counts)
    ends = start + np.cumsum(sizes)
    return ends - sizes + 4, int(ends[-1]) if len(counts) else start
