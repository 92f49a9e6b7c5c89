"""Reads the run blocks of a trace: names, allocators, and where their events are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from schema.errors import FormatError
from schema.etdump.tables import ALLOCATOR, EVENT, RUN_DATA
from schema.flatbuf.columns import (
    Array,
    Columns,
    Ints,
    Region,
    Rows,
    columns,
    extents,
    follow,
    items,
)
from schema.flatbuf.strings import intern

_NAME, _BUNDLED, _ALLOCATORS, _EVENTS = RUN_DATA.fields
# 0.1 had no bundled_input_index.
_OLD_ALLOCATORS, _OLD_EVENTS = replace(_ALLOCATORS, slot=1), replace(_EVENTS, slot=2)
_RUN_BYTES = 24  # no smaller block has a name and events; bounds how many there can be


@dataclass(slots=True)
class RunColumns:
    """Run blocks as columns, r blocks with e events.

    Attributes:
        rows: one a block, marked where damaged
        legacy: whether the slots are those of 0.1
        names: distinct names of blocks and allocators
        name: index into names, -1 absent, int32[r]
        bundled_input_index: int32[r]
        allocator_first: index of the first allocator, int64[r]
        allocator_count: int64[r]
        allocator_name: index into names, one an allocator
        first: row of the first event, int64[r]
        count: events of the block, 0 for damaged blocks, int64[r]
        slots: byte position of the offset of each event, int64[e]
    """

    rows: Rows
    legacy: bool
    names: tuple[str, ...]
    name: Array
    bundled_input_index: Array
    allocator_first: Ints
    allocator_count: Ints
    allocator_name: Array
    first: Ints
    count: Ints
    slots: Ints

    def allocators_of(self, index: int) -> tuple[str, ...]:
        """Return the names of the allocators of a block."""
        first, count = int(self.allocator_first[index]), int(self.allocator_count[index])
        return tuple(self.text(int(i)) for i in self.allocator_name[first : first + count])

    def text(self, index: int) -> str:
        """Return a name by its index, empty for -1."""
        return self.names[index] if index >= 0 else ""


def read_runs(region: Region, vector: int) -> RunColumns:
    """Return the blocks of the vector at a position; damaged ones are marked and empty.

    Raises: FormatError if the vector leaves the file
    """
    top = Rows(1)
    one = np.zeros(1, dtype=np.int64)
    starts, counts = extents(region, top, np.array([vector], dtype=np.int64), one, 4)
    if top.bad.any():
        raise FormatError(
            "a vector inside the file", "one that ends outside", field="run_data", offset=vector
        )
    slots = items(region, starts, counts, 4)
    region.spend(_RUN_BYTES * len(slots), "runs")
    rows = Rows(len(slots))
    numbers = np.arange(len(slots), dtype=np.int64)
    target, good = follow(region, rows, slots, numbers)
    runs, _ = columns(region, rows, target[good], numbers[good])
    return _columns(region, rows, runs)


def _columns(region: Region, rows: Rows, runs: Columns) -> RunColumns:
    legacy = _is_legacy(runs)
    count = len(rows.bad)
    names_at = np.full(count, -1, dtype=np.int64)
    names_at[runs.owners] = runs.offsets(_NAME)
    bundled = np.full(count, -1, dtype=np.int32)
    if not legacy:
        bundled[runs.owners] = runs.scalar(_BUNDLED)
    first_allocator, allocators, allocator_names = _allocators(runs, legacy, count)
    owners = np.concatenate([np.arange(count), allocator_names.owners])
    at = np.concatenate([names_at, allocator_names.offsets(ALLOCATOR.field("name"))])
    _check_ends(region, rows, at, owners)
    numbers, raw = intern(region, rows, at, owners)
    # Events last: a block whose name is damaged has none.
    events = runs.offsets(_OLD_EVENTS if legacy else _EVENTS)
    starts, found = extents(region, rows, events, runs.owners, 4)
    found[rows.bad[runs.owners]] = 0
    counts = np.zeros(count, dtype=np.int64)
    counts[runs.owners] = found
    return RunColumns(
        rows,
        legacy,
        tuple(item.decode("utf-8", "backslashreplace") for item in raw),
        numbers[:count],
        bundled,
        first_allocator,
        allocators,
        numbers[count:],
        np.cumsum(counts) - counts,
        counts,
        items(region, starts, found, 4),
    )


def _check_ends(region: Region, rows: Rows, at: Ints, owners: Ints) -> None:
    # A table mistaken for a string may have a plausible length, but rarely a zero after it.
    present = np.flatnonzero(at >= 0)
    starts, counts = extents(region, rows, at[present], owners[present], 1)
    ends = np.minimum(starts + counts, region.limit - 1)
    open_ended = region.numbers(ends, "u1") != 0
    rows.mark(owners[present[open_ended]], at[present[open_ended]], "a name without its end")


def _allocators(runs: Columns, legacy: bool, count: int) -> tuple[Ints, Ints, Columns]:
    region, rows = runs.region, runs.rows
    vectors = runs.offsets(_OLD_ALLOCATORS if legacy else _ALLOCATORS)
    starts, counts = extents(region, rows, vectors, runs.owners, 4)
    at = items(region, starts, counts, 4)
    owners = np.repeat(runs.owners, counts)
    target, good = follow(region, rows, at, owners)
    tables, _ = columns(region, rows, target[good], owners[good])
    # Damaged allocators are skipped; their blocks are marked and entirely lost.
    found = np.bincount(tables.owners, minlength=count).astype(np.int64)
    return np.cumsum(found) - found, found, tables


def _is_legacy(runs: Columns) -> bool:
    """Return whether slot 2 holds events, as in 0.1, and not allocators.

    A table of events then has no slot 3, and the first offset of its entries leads to a table
    (ProfileEvent), that of an allocator to a string.
    """
    if not len(runs) or (runs.place(_EVENTS) >= 0).any():
        return False
    probe = Rows(len(runs.rows.bad))
    quiet = replace(runs, rows=probe)
    starts, counts = extents(runs.region, probe, quiet.offsets(_OLD_EVENTS), runs.owners, 4)
    some = np.flatnonzero(counts)[:1]
    if not len(some):
        return False
    owner = runs.owners[some]
    target, good = follow(runs.region, probe, starts[some], owner)
    entry, _ = columns(runs.region, probe, target[good], owner[good])
    child, _ = entry.children(EVENT.field("profile_event"))
    sound = len(child) == 1 and not probe.bad.any()
    return bool(sound and (entry.table_bytes > 4).all() and (child.vtable_bytes >= 4 + 2 * 7).all())
