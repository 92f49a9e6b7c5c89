"""Reads ETDump files: prefix, root, blocks; damaged blocks are truncated, the others are complete.

Source: etdump_schema_flatcc.fbs; the size prefix is written by the C++ runtime only.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from schema.errors import FormatError, Notes, Severity
from schema.etdump.events import EventKind, EventStore
from schema.etdump.from_json import decode_json, is_json
from schema.etdump.model import ETDump, RunData
from schema.etdump.read_events import EventReader
from schema.etdump.read_runs import RunColumns, read_runs
from schema.etdump.recover import recover
from schema.etdump.table import EventTable
from schema.etdump.tables import ETDUMP
from schema.flatbuf.columns import Ints, Region, Rows
from schema.flatbuf.header import HeaderField, header_field
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import Spec
from schema.objects.cyclic_gc import gc_suspended
from schema.objects.plural import plural

Buffer = bytes | bytearray | memoryview
IDENTIFIER = b"ED00"
_HEAD_BYTES = 256  # white space and a version may precede the mark of a JSON trace
_SMALLEST = 16  # root offset, identifier, an empty table with its vtable
_HALF_HINT = (
    "ExecuTorch up to 1.5.1 writes such traces when it logs float16 or bfloat16 tensors; "
    "recorded without a debug buffer they are complete"
)


def sniff(head: bytes) -> bool:
    """Return whether these first bytes are those of an ETDump, binary or as JSON."""
    return head[8:12] == IDENTIFIER or head[4:8] == IDENTIFIER or is_json(head)


@gc_suspended()
def decode(buffer: Buffer, *, file: str = "") -> ETDump:
    """Read a trace, binary or as JSON; metadata stays a view into the buffer.

    Raises: FormatError if it is not a trace or its root cannot be read
    """
    data = memoryview(buffer).toreadonly()
    try:
        if is_json(bytes(data[:_HEAD_BYTES])):
            return decode_json(data, file)
        return _decode(data, file)
    except FormatError as error:
        raise error.in_file(file) from None


def header_fields(buffer: Buffer, *, file: str = "") -> tuple[HeaderField, ...]:
    """Return the fields before the tables.

    Raises: FormatError if it is not a trace
    """
    head = bytes(memoryview(buffer)[:_SMALLEST])
    try:
        base = 4 if _is_prefixed(head, len(buffer)) else 0
        root = header_field(head, "root offset", base, "I", f"position of the root minus {base}")
        name = header_field(head, "file_identifier", base + 4, "4s", "names the format")
        if not base:
            return (root, name)
        size = header_field(head, "size prefix", 0, "I", "bytes of the file that follow")
    except FormatError as error:
        raise error.in_file(file) from None
    return (size, root, name)


def _is_prefixed(head: bytes, nbytes: int) -> bool:
    if nbytes < _SMALLEST or not sniff(head):
        raise FormatError(
            "the identifier ED00 at byte 8 or 4",
            f"{head[:12]!r}"[1:] if head else "an empty file",
            field="file_identifier",
            offset=4,
        )
    if head[4:8] != IDENTIFIER:
        return True
    prefix = struct.unpack_from("<I", head)[0]
    return head[8:12] == IDENTIFIER and prefix == nbytes - 4


def root_table(data: memoryview) -> tuple[Reader, Spec[Any], int]:
    """Return a reader, the field table of the root and where its offset is, for walking.

    Raises: FormatError if it is not a trace
    """
    prefixed = _is_prefixed(bytes(data[:_SMALLEST]), len(data))
    return Reader(data, _limit(data, prefixed, Notes(""))), ETDUMP, 4 if prefixed else 0


def _decode(data: memoryview, file: str) -> ETDump:
    prefixed = _is_prefixed(bytes(data[:_SMALLEST]), len(data))
    notes = Notes(file)
    limit = _limit(data, prefixed, notes)
    try:
        version, run_vector = _root(data, limit, 4 if prefixed else 0)
        runs = _runs(data, limit, run_vector, notes)
    except FormatError as error:
        version, runs = 0, _recovered(data, limit, str(error), notes)
        if not runs:
            raise
    if version:
        notes.add(f"schema version {version}, read with the fields of version 0", Severity.INFO)
    return ETDump(version, prefixed, runs, file, notes.all())


def _recovered(data: memoryview, limit: int, why: str, notes: Notes) -> tuple[RunData, ...]:
    runs = recover(data, limit)
    if runs:
        count = sum(len(run.events) for run in runs)
        notes.add(f"the tables that lead to the events are damaged: {why}", Severity.ERROR)
        notes.add(
            f"{plural(count, 'event was', 'events were')} found by their shape and grouped into"
            f" {plural(len(runs), 'block')} in the order in which runtimes log; others may be"
            f" missing. {_HALF_HINT}"
        )
    return runs


def _limit(data: memoryview, prefixed: bool, notes: Notes) -> int:
    if not prefixed:
        return len(data)
    requested = struct.unpack_from("<I", data)[0] + 4
    if requested > len(data):
        notes.add(f"the file is cut short: {len(data)} of {requested} bytes", Severity.ERROR)
    elif requested < len(data):
        notes.add(f"{len(data) - requested} bytes after the end are ignored")
    return min(requested, len(data))


def _root(data: memoryview, limit: int, base: int) -> tuple[int, int]:
    """Return version and position of the vector of runs, -1 if it is missing."""
    if limit < _SMALLEST:
        raise FormatError(f"{_SMALLEST} bytes or more", str(limit), field="size prefix", offset=0)
    reader = Reader(data, limit)
    at = reader.follow(base)
    entries, inline = reader.slots(at)
    version_at, runs_at = (*entries, 0, 0)[:2]
    if max(version_at, runs_at) + 4 > max(inline, 4):
        raise FormatError("fields inside their table", "one outside", field="ETDump", offset=at)
    version = reader.u32(at + version_at) if version_at else 0
    return version, reader.follow(at + runs_at) if runs_at else -1


def _runs(data: memoryview, limit: int, vector: int, notes: Notes) -> tuple[RunData, ...]:
    runs = read_runs(Region(data, limit), vector) if vector >= 0 else None
    if runs is None or not len(runs.name):
        notes.add("no runs: tracing was off when this file was written")
        return ()
    if runs.legacy:
        notes.add("written by ExecuTorch 0.1: logged values of that release are not shown")
    damage = Notes(notes.file)
    store = _read_whole(data, limit, runs, damage)
    built = [_run(runs, store, index) for index in np.flatnonzero(~runs.rows.bad).tolist()]
    _note_lost(runs.rows, damage)
    if damage.all() and not len(store.kind):
        found = _recovered(data, limit, damage.all()[0].message, notes)
        if found:
            return found
    notes.extend(damage)
    _note_shapes(store, notes)
    return tuple(built)


def _note_shapes(store: EventStore, notes: Notes) -> None:
    columns = store.values.columns
    bad = int((columns.numbers[: int(columns.sizes_count.sum())] < 0).sum())
    if bad:
        sizes = plural(bad, "size")
        notes.add(
            f"logged tensors have {sizes} below zero: their bytes are unknown", Severity.ERROR
        )


def _note_lost(rows: Rows, notes: Notes) -> None:
    lost = np.flatnonzero(rows.bad)
    room = notes.room
    for index in lost[:room].tolist():
        notes.add(f"run block {index} is lost: {_where(rows, index)}", Severity.ERROR)
    notes.skip(max(len(lost) - room, 0))


def _run(runs: RunColumns, store: EventStore, index: int) -> RunData:
    start, stop = int(runs.first[index]), int(runs.first[index] + runs.count[index])
    return RunData(
        runs.text(int(runs.name[index])),
        int(runs.bundled_input_index[index]),
        runs.allocators_of(index),
        EventTable(store, start, stop),
    )


def _read_whole(data: memoryview, limit: int, runs: RunColumns, notes: Notes) -> EventStore:
    """Return the events of all blocks, each block cut before its first damaged event."""
    while True:
        reader = EventReader(Region(data, limit), data, runs.slots, legacy=runs.legacy)
        store = reader.read()
        if not reader.rows.bad.any():
            break
        # The rows before it are read once more: damaged rows would leave holes in the numbering.
        _cut(runs, reader.rows, notes)
    if reader.several:
        notes.add("some events set several of profile, allocation and debug; the first is shown")
    empty = int((store.kind == EventKind.NONE).sum())
    if empty:
        notes.add(plural(empty, "event is empty", "events are empty"))
    if reader.odd_string:
        notes.add("some strings are not UTF-8 and are shown escaped")
    return store


def _cut(runs: RunColumns, rows: Rows, notes: Notes) -> None:
    """Shorten each damaged block to the events before its first damaged one.

    A damaged block without a name is not a block but leftover bytes of a broken writer.
    """
    owner = np.repeat(np.arange(len(runs.count)), runs.count)
    bad = np.flatnonzero(rows.bad)
    blocks, first_bad = np.unique(owner[bad], return_index=True)
    row = bad[first_bad]
    kept: Ints = np.array(runs.count)
    kept[blocks] = row - runs.first[blocks]
    room = notes.room
    for block, at_row in zip(blocks[:room].tolist(), row.tolist(), strict=False):
        if runs.name[block] >= 0:
            where = _where(rows, at_row)
            count, left = int(runs.count[block]), int(kept[block])
            notes.add(
                f"run block {block}: {count - left} of its {count} events are lost, from event "
                f"{left} on: {where}",
                Severity.ERROR,
            )
    notes.skip(max(len(blocks) - room, 0))
    unnamed = runs.name[blocks] < 0
    runs.rows.mark(blocks[unnamed], runs.slots[row[unnamed]], "it has no name and is damaged")
    kept[blocks[unnamed]] = 0
    keep = np.arange(len(owner)) - runs.first[owner] < kept[owner]
    runs.slots = runs.slots[keep]
    runs.count = kept
    runs.first = np.cumsum(kept) - kept


def _where(rows: Rows, row: int) -> str:
    at, why = rows.reason(row)
    return f"{why} at byte {at:#x}"
