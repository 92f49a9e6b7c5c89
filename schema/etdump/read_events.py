"""Reads Event tables as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schema.etdump.events import Array, Blobs, EventKind, EventStore, full_column, store_of
from schema.etdump.read_values import read_values
from schema.etdump.tables import DEBUG_EVENT, EVENT, EVENT_TABLES, column_of
from schema.etdump.values import DebugValues
from schema.flatbuf.columns import Columns, Ints, Region, Rows, columns, extents, follow
from schema.flatbuf.spec import Blob, Field, Scalar, String
from schema.flatbuf.strings import intern

_ROW_BYTES = 16  # an offset and an Event of 8 bytes, and as much again for one shared by many
_KINDS = (EventKind.PROFILE, EventKind.ALLOCATION, EventKind.DEBUG)


@dataclass(slots=True)
class _StringColumn:
    """Positions of the strings of one kind of event, by column of the store and event row."""

    column: str
    rows: Ints
    at: Ints


class EventReader:
    """Reads the events whose offsets are stored at given positions, or that are there directly.

    Attributes:
        rows: one per event, marked where damaged
        several: whether some event had more than one of its three fields set
        odd_text: whether some string was not UTF-8
    """

    def __init__(
        self,
        region: Region,
        view: memoryview,
        slots: Ints,
        *,
        legacy: bool = False,
        direct: bool = False,
    ) -> None:
        self.rows = Rows(len(slots))
        self.several = False
        self.odd_string = False
        self._region = region
        self._view = view
        self._legacy = legacy
        self._direct = direct
        self._slots = slots
        self._columns: dict[str, Array] = {"kind": full_column("kind", len(slots))}
        self._string_columns: list[_StringColumn] = []
        self._blobs: Blobs | None = None
        self._values: DebugValues | None = None

    def read(self) -> EventStore:
        """Return all rows; damaged ones contain what could be read.

        Raises: FormatError if they declare more bytes than the file can contain
        """
        self._read_kinds()  # the local arrays are freed before strings are read
        strings = self._strings()
        return store_of(self._columns, strings, self._blobs, self._values)

    def _read_kinds(self) -> None:
        region, rows = self._region, self.rows
        region.spend(_ROW_BYTES * len(self._slots), "events")
        numbers = np.arange(len(self._slots), dtype=np.int64)
        if self._direct:
            events, _ = columns(region, rows, self._slots, numbers)
        else:
            target, good = follow(region, rows, self._slots, numbers)
            events, _ = columns(region, rows, target[good], numbers[good])
        places = [events.offsets(field) for field in EVENT.fields]
        present = [at >= 0 for at in places]
        # Exactly one is set in a legal file; the first decides otherwise.
        kind = np.select(present, [int(k) for k in _KINDS], int(EventKind.NONE)).astype(np.int8)
        self.several = int(np.sum(present)) > int((kind != EventKind.NONE).sum())
        self._columns["kind"][events.owners] = kind
        for at, which, table in zip(places, _KINDS, EVENT_TABLES, strict=True):
            mine = np.flatnonzero(kind == which)
            tables, _ = columns(region, rows, at[mine], events.owners[mine])
            if len(tables):
                # A debug event of 0.1 had a handle of 8 bytes, then inline structs.
                old = self._legacy and table is DEBUG_EVENT
                for field in table.fields[:1] if old else table.fields:
                    self._read_field(field, tables)

    def _put(self, name: str, rows: Ints, numbers: Array) -> None:
        whole = len(rows) == len(self._slots)
        if name not in self._columns:
            if whole:  # rows are in order, so this is the column
                self._columns[name] = numbers
                return
            self._columns[name] = full_column(name, len(self._slots))
        self._columns[name][rows] = numbers

    def _put_rare(self, name: str, rows: Ints, numbers: Array) -> None:
        # A column of unset values costs no memory.
        used = numbers != -1
        if used.any():
            self._put(name, rows[used], numbers[used])

    def _read_field(self, field: Field, tables: Columns) -> None:
        column, rows = column_of(field), tables.owners
        if isinstance(field.type, Scalar):
            put = self._put_rare if column == "delegate_id_int" else self._put
            put(column, rows, tables.scalar(field))
        elif isinstance(field.type, String):
            self._string_columns.append(_StringColumn(column, rows, tables.offsets(field)))
        elif isinstance(field.type, Blob):
            self._metadata(tables, tables.offsets(field))
        else:
            values, owners = tables.children(field)
            self._values = read_values(values)
            self._put(column, rows[owners], np.arange(len(owners), dtype=np.int32))

    def _metadata(self, tables: Columns, at: Ints) -> None:
        present = np.flatnonzero(at >= 0)
        if not len(present):
            return
        rows = tables.owners[present]
        starts, counts = extents(self._region, self.rows, at[present], rows, 1)
        self._blobs = Blobs(self._view, starts, counts)
        self._put("metadata", rows, np.arange(len(rows), dtype=np.int32))

    def _strings(self) -> tuple[str, ...]:
        texts = [entry for entry in self._string_columns if (entry.at >= 0).any()]
        if not texts:
            return ()
        at = np.concatenate([entry.at for entry in texts])
        rows = np.concatenate([entry.rows for entry in texts])
        numbers, raw = intern(self._region, self.rows, at, rows)
        first = 0
        for entry in texts:
            part = numbers[first : first + len(entry.at)]
            self._put_rare(entry.column, entry.rows, part)
            first += len(entry.at)
        return tuple(self._text(item) for item in raw)

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.odd_string = True
            return raw.decode("utf-8", "backslashreplace")
