"""Finds the events of a trace whose blocks cannot be read.

The runtime of ExecuTorch up to 1.5.1 aborts in the middle of a table when it meets a
tensor type that it cannot log (float16, bfloat16). The tables that refer to the events are then
invalid, but each event was completed before, one below the other. They are found by their structure
and grouped into blocks by the order in which runtimes log: loading, then runs that each end with
Method::execute and the outputs of the program.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from schema.errors import FormatError
from schema.etdump.events import EventKind, EventStore
from schema.etdump.model import RunData
from schema.etdump.read_events import EventReader
from schema.etdump.table import EventTable
from schema.etdump.tables import EVENT, PROFILE_EVENT
from schema.etdump.values import HAS_BOOL, HAS_DOUBLE, HAS_FLOAT, HAS_INT, HAS_LIST, ValueType
from schema.flatbuf.columns import Columns, Ints, Region, Rows, columns

Flags = NDArray[np.bool_]
_CHUNK = 1 << 18  # positions examined together; bounds memory
_EVENT_BYTES = 8  # a table with one offset; flatcc now and then counts 2 bytes more
_MOST_DIMS = 16  # kTensorDimensionLimit
_LONGEST_NAME = 1000  # longer ones are taken for other data of a damaged trace
_LOADING = ("Program::load_method", "Method::init")
_EXECUTE = "Method::execute"


def recover(data: memoryview, limit: int) -> tuple[RunData, ...]:
    """Return the events found by their structure as blocks; empty if none is found."""
    at = np.concatenate([_candidates(Region(data, limit), *part) for part in _parts(limit)])
    try:
        at = at[_believable(data, limit, at)]
        store = EventReader(Region(data, limit), data, at, direct=True).read()
    except FormatError:  # more candidates than the file could contain
        return ()
    profile = store.kind == EventKind.PROFILE
    if not profile.any():
        return ()
    ended = store.end_time[profile]
    if ended[0] <= ended[-1]:
        return _blocks(store)
    if not profile.all():  # not written by a runtime; the owners of values cannot be determined
        return ()
    return _blocks(EventReader(Region(data, limit), data, at[::-1], direct=True).read())


def _parts(limit: int) -> list[tuple[int, int]]:
    # From the end: the builder fills its buffer downwards, so later events lie lower.
    last = max(limit - _EVENT_BYTES, 0)
    return [(low, min(low + 4 * _CHUNK, last + 1)) for low in range(0, last + 1, 4 * _CHUNK)][::-1]


def _candidates(region: Region, low: int, high: int) -> Ints:
    """Return positions in [low, high) of tables with one field among the first three slots."""
    at = np.arange(low, high, 4, dtype=np.int64)
    vtable = at - region.numbers(at, "<i4")
    inside = (vtable >= 0) & (vtable + 10 <= region.limit)
    at, vtable = at[inside], vtable[inside]
    table_bytes = region.numbers(vtable + 2, "<u2")
    sized = (table_bytes >= _EVENT_BYTES) & (table_bytes <= _EVENT_BYTES + 4)
    at, vtable = at[sized], vtable[sized]
    vtable_bytes = region.numbers(vtable, "<u2")
    known = (vtable_bytes >= 6) & (vtable_bytes <= 10) & (vtable_bytes & 1 == 0)
    total = np.zeros(len(at), dtype=np.int64)
    for slot in range(3):
        place = region.numbers(vtable + 4 + 2 * slot, "<u2").astype(np.int64)
        total += np.where(vtable_bytes >= 6 + 2 * slot, place, 0)
    return at[known & (total == 4)][::-1]


def _believable(data: memoryview, limit: int, at: Ints) -> Flags:
    """Return which candidates are events: all of their fields must be plausible."""
    region, rows = Region(data, limit), Rows(len(at))
    tables, _ = columns(region, rows, at, np.arange(len(at), dtype=np.int64))
    timed = np.zeros(len(at), dtype=np.bool_)
    profiles, _ = tables.children(EVENT.fields[EventKind.PROFILE])
    timed[profiles.owners] = _is_timed(profiles)
    reader = EventReader(Region(data, limit), data, at, direct=True)
    store = reader.read()
    logged = np.zeros(len(at), dtype=np.bool_)
    debug = np.flatnonzero((store.kind == EventKind.DEBUG) & (store.value >= 0))
    logged[debug] = _is_logged(store)[store.value[debug]]
    named = (store.name >= 0) | (store.delegate_id_str >= 0) | (store.delegate_id_int >= 0)
    profile = (store.kind == EventKind.PROFILE) & timed & named
    return np.logical_and(profile | logged, ~reader.rows.bad)


def _is_timed(profiles: Columns) -> Flags:
    start, end, name = map(PROFILE_EVENT.field, ("start_time", "end_time", "name"))
    both = (profiles.place(start) >= 0) & (profiles.place(end) >= 0)
    names = profiles.offsets(name)
    at = np.where(names < 0, 0, names)
    size = profiles.region.numbers(at, "<u4").astype(np.int64)
    last = np.minimum(at + 4 + size, profiles.region.limit - 1)
    ended = (profiles.region.numbers(last, "u1") == 0) & (size <= _LONGEST_NAME)
    return np.logical_and(both, ended | (names < 0))


def _is_logged(store: EventStore) -> Flags:
    """Return which values have the field of their type, and tensors that can exist."""
    c = store.values.columns
    dims = (c.sizes_count == c.strides_count) & (c.sizes_count <= _MOST_DIMS)
    sound = np.concatenate([dims & (c.offset >= -1), [False]])  # -1 picks the last: no tensor
    requested = {
        ValueType.INT: c.has & HAS_INT,
        ValueType.FLOAT: c.has & HAS_FLOAT,
        ValueType.DOUBLE: c.has & HAS_DOUBLE,
        ValueType.BOOL: c.has & HAS_BOOL,
        ValueType.TENSOR_LIST: c.has & HAS_LIST,
        ValueType.TENSOR: sound[c.tensor],
    }
    logged = np.zeros(len(c.type), dtype=np.bool_)
    for kind, present in requested.items():
        logged |= (c.type == kind) & (present != 0)
    return logged


def _blocks(store: EventStore) -> tuple[RunData, ...]:
    numbers = {text: index for index, text in enumerate(store.strings)}
    profile = store.kind == EventKind.PROFILE
    ends = profile & (store.name == numbers.get(_EXECUTE, -2))
    loads = profile & np.isin(store.name, [numbers.get(name, -2) for name in _LOADING])
    # Scalar outputs are logged without the mark that tensor outputs get.
    output = (store.kind == EventKind.DEBUG) & (store.chain_index == -1)
    # A row opens a block when the row before it, program outputs aside, closed one.
    rows = np.arange(len(store.kind))
    latest = np.maximum.accumulate(np.where(output, 0, rows))
    before = np.concatenate([[0], latest[:-1]])
    opens = ~output & (ends[before] | (loads != loads[before]))
    edges = [0, *(np.flatnonzero(opens[1:]) + 1).tolist(), len(rows)]
    return tuple(
        RunData("Default" if loads[a] else "Execute", -1, (), EventTable(store, a, b))
        for a, b in pairwise(edges)
    )
