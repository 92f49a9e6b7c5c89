"""Writes ETDump files by columns, a million events without a Python loop.

Order in the file: root, blocks, vectors of events, events, values, tensors, sizes, metadata,
strings. Offsets of flatbuffers only point forward, so referenced objects are written later.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schema.etdump import records as rec
from schema.etdump.events import Array, EventKind
from schema.etdump.join import joined
from schema.etdump.model import ETDump, RunData
from schema.etdump.table import EventTable
from schema.etdump.tables import EVENT, EVENT_TABLES, RUN_DATA, column_of
from schema.etdump.write_values import ValueWriter
from schema.flatbuf.columns import Ints
from schema.flatbuf.spec import Blob, Field, Scalar, String

_MOST_BYTES = 2**31 - 1  # of a flatbuffer


def encode(dump: ETDump) -> bytes:
    """Return the bytes of a trace, size-prefixed if the dump is.

    Raises: ValueError if they exceed what a flatbuffer can address
    """
    return _TraceWriter(dump).bytes()


@dataclass(slots=True)
class _Kind:
    """The events of one kind: their table, rows, vtables and where their records begin."""

    fields: tuple[Field, ...]
    record: np.dtype[np.void]
    rows: Ints
    event_vtable: int
    vtables: Ints
    at: Ints


class _TraceWriter:
    def __init__(self, dump: ETDump) -> None:
        self._runs = dump.run_data
        self._base = 4 if dump.size_prefixed else 0
        self._version = dump.version
        self._events = joined([run.events for run in dump.run_data])
        self._texts, self._text_of = _all_texts(self._events, dump.run_data)
        self._vtables = rec.Vtables(self._base + 8)
        self._kinds = self._all_kinds()
        self._values = ValueWriter(self._events.values, self._vtables)
        self._root_vtable = self._vtables.add(12, (4, 8))
        self._run_vtables = self._vtables.each(
            *rec.vtable_of(RUN_DATA, rec.RUN),
            (RUN_DATA.field("allocators").slot,),
            np.array([bool(run.allocators) for run in self._runs], dtype=np.uint8),
        )
        self._allocator_vtable = self._vtables.add(8, (4,))
        self._end = self._vtables.end

    def bytes(self) -> bytes:
        self._place()
        if self._end > _MOST_BYTES:
            raise ValueError(f"a trace of {self._end} bytes cannot be written as one flatbuffer")
        out = bytearray(self._end)
        self._write_head(out)
        self._write_runs(out)
        for kind, entry in self._kinds.items():
            self._write_events(out, kind, entry)
        self._values.write(out)
        for at, blob in zip(self._blob_at.tolist(), self._events.blobs, strict=True):
            struct.pack_into(f"<I{len(blob)}s", out, at, len(blob), bytes(blob))
        for at, text in zip(self._text_at.tolist(), self._texts, strict=True):
            struct.pack_into(f"<I{len(text)}s", out, at, len(text), text)
        return bytes(out)

    # --- collecting --------------------------------------------------------------------------

    def _all_kinds(self) -> dict[EventKind, _Kind]:
        events, vtables = self._events, self._vtables
        found: dict[EventKind, _Kind] = {}
        for kind in EventKind:
            rows = np.flatnonzero(events.kind == kind)
            if not len(rows):
                continue
            slots = [4 if kind == field.slot else 0 for field in EVENT.fields]
            event_vtable = vtables.add(rec.EVENT_BYTES, slots)
            if kind == EventKind.NONE:
                found[kind] = _Kind((), rec.NONE, rows, event_vtable, rows[:0], rows)
                continue
            table, record = EVENT_TABLES[kind], rec.EVENT_RECORDS[kind]
            optional = rec.optional(table)
            present = np.zeros(len(rows), dtype=np.uint8)
            for bit, slot in enumerate(optional):
                column = getattr(events, column_of(table.fields[slot]))
                present |= (column[rows] >= 0).astype(np.uint8) << bit
            of_table = vtables.each(*rec.vtable_of(table, record), optional, present)
            found[kind] = _Kind(table.fields, record, rows, event_vtable, of_table, rows)
        return found

    # --- placing ------------------------------------------------------------------------

    def _take(self, nbytes: int, align: int = 4) -> int:
        at = -(-self._end // align) * align
        self._end = at + nbytes
        return at

    def _place(self) -> None:
        runs = self._runs
        self._root_at = self._take(12)
        self._run_vector = self._take(4 + 4 * len(runs))
        self._runs_at = self._take(rec.RUN.itemsize * len(runs))
        self._allocators_at = [self._take(4 + 12 * len(run.allocators)) for run in runs]
        counts = np.array([len(run.events) for run in runs], dtype=np.int64)
        sizes = 4 + 4 * counts
        self._vectors_at = self._take(int(sizes.sum())) + np.cumsum(sizes) - sizes
        self._counts = counts
        for entry in self._kinds.values():
            width = entry.record.itemsize
            start = self._take(width * len(entry.rows), 8)
            entry.at = start + width * np.arange(len(entry.rows), dtype=np.int64)
        self._end = self._values.place(self._take(0, 8))
        self._blob_at = self._padded([len(blob) for blob in self._events.blobs])
        self._text_at = self._padded([len(text) + 1 for text in self._texts])

    def _padded(self, lengths: Sequence[int]) -> Ints:
        sizes = 4 + (np.array(lengths, dtype=np.int64) + 3) // 4 * 4
        return self._take(int(sizes.sum())) + np.cumsum(sizes) - sizes

    # --- writing ---------------------------------------------------------------------------

    def _write_head(self, out: bytearray) -> None:
        base = self._base
        if base:
            struct.pack_into("<I", out, 0, len(out) - 4)
        struct.pack_into("<I4s", out, base, self._root_at - base, b"ED00")
        raw = self._vtables.tobytes()
        out[base + 8 : base + 8 + len(raw)] = raw
        root = self._root_at
        to_runs = self._run_vector - (root + 8)
        struct.pack_into("<iII", out, root, root - self._root_vtable, self._version, to_runs)

    def _write_runs(self, out: bytearray) -> None:
        count = len(self._runs)
        struct.pack_into("<I", out, self._run_vector, count)
        runs = np.ndarray((count,), rec.RUN, out, self._runs_at)
        at = self._runs_at + rec.RUN.itemsize * np.arange(count, dtype=np.int64)
        slots = np.ndarray((count,), "<u4", out, self._run_vector + 4)
        slots[:] = at - (self._run_vector + 4 + 4 * np.arange(count, dtype=np.int64))
        runs["vtable"] = at - self._run_vtables
        names = [self._text_of[run.name] for run in self._runs]
        runs["name"] = self._text_at[names] - (at + rec.offset_of(rec.RUN, "name")) if names else 0
        runs["bundled_input_index"] = [run.bundled_input_index for run in self._runs]
        allocators_at = np.array(self._allocators_at, dtype=np.int64)
        runs["allocators"] = allocators_at - (at + rec.offset_of(rec.RUN, "allocators"))
        runs["events"] = self._vectors_at - (at + rec.offset_of(rec.RUN, "events"))
        for run, vector in zip(self._runs, self._allocators_at, strict=True):
            self._write_allocators(out, run, vector)
        words = np.ndarray((len(out) // 4,), "<u4", out)
        words[self._vectors_at // 4] = self._counts
        shift = self._vectors_at + 4 - 4 * (np.cumsum(self._counts) - self._counts)
        total = int(self._counts.sum())
        slots_at = np.repeat(shift, self._counts) + 4 * np.arange(total, dtype=np.int64)
        event_at = np.zeros(total, dtype=np.int64)
        for entry in self._kinds.values():
            event_at[entry.rows] = entry.at
        words[slots_at // 4] = event_at - slots_at

    def _write_allocators(self, out: bytearray, run: RunData, vector: int) -> None:
        count = len(run.allocators)
        struct.pack_into("<I", out, vector, count)
        for index, name in enumerate(run.allocators):
            slot = vector + 4 + 4 * index
            table = vector + 4 + 4 * count + 8 * index
            struct.pack_into("<I", out, slot, table - slot)
            text = int(self._text_at[self._text_of[name]])
            to_text = text - (table + 4)
            struct.pack_into("<iI", out, table, table - self._allocator_vtable, to_text)

    def _write_events(self, out: bytearray, kind: EventKind, entry: _Kind) -> None:
        events, rows, at = self._events, entry.rows, entry.at
        records = np.ndarray((len(rows),), entry.record, out, int(at[0]))
        records["event_vtable"] = at - entry.event_vtable
        if kind == EventKind.NONE:
            return
        records["event_to"] = 4
        records["vtable"] = at + rec.EVENT_BYTES - entry.vtables
        for field in entry.fields:
            column = getattr(events, column_of(field))[rows]
            if isinstance(field.type, Scalar):
                # The handle of a debug event is unsigned in the file, signed in the column.
                records[field.name] = column.astype(entry.record[field.name], copy=False)
                continue
            field_at = at + rec.offset_of(entry.record, field.name)
            records[field.name] = _steps(column, self._targets(field), field_at)

    def _targets(self, field: Field) -> Ints:
        if isinstance(field.type, String):
            return self._text_at
        return self._blob_at if isinstance(field.type, Blob) else self._values.at


def _steps(numbers: Array, targets: Ints, field_at: Ints) -> Ints:
    """Return the offset from each field to its target, 0 where absent."""
    if not len(targets):
        return np.zeros(len(numbers), dtype=np.int64)
    return np.where(numbers < 0, 0, targets[numbers] - field_at)


def _all_texts(events: EventTable, runs: tuple[RunData, ...]) -> tuple[list[bytes], dict[str, int]]:
    # Strings of events keep their indices; names of blocks reuse them or are appended.
    texts = list(events.strings)
    number = {text: index for index, text in enumerate(texts)}
    for run in runs:
        for text in (run.name, *run.allocators):
            if text not in number:
                number[text] = len(texts)
                texts.append(text)
    return [text.encode("utf-8") for text in texts], number
