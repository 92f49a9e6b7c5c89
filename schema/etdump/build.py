"""Builds traces from events or columns: for tests, benchmarks and the runtime."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from schema.etdump.events import (
    AllocationEvent,
    AnyEvent,
    Array,
    Blobs,
    DebugEvent,
    EventKind,
    EventStore,
    ProfileEvent,
    full_column,
    store_of,
)
from schema.etdump.model import ETDump, RunData
from schema.etdump.table import EventTable
from schema.etdump.values import DebugValue, DebugValues


def dump(runs: Iterable[RunData], *, size_prefixed: bool = True, version: int = 0) -> ETDump:
    """Return a trace of these blocks."""
    return ETDump(version, size_prefixed, tuple(runs))


def run(
    name: str,
    events: EventTable | Sequence[AnyEvent],
    *,
    bundled_input_index: int = -1,
    allocators: Sequence[str] = (),
) -> RunData:
    """Return a block of events, given as a table or one by one."""
    built = events if isinstance(events, EventTable) else table(events)
    return RunData(name, bundled_input_index, tuple(allocators), built)


def table(events: Sequence[AnyEvent]) -> EventTable:
    """Return events as columns; None is an event with no field set."""
    store = _Collector(len(events)).store(events)
    return EventTable(store, 0, len(events))


class _Collector:
    """Fills columns event by event."""

    def __init__(self, count: int) -> None:
        self._columns: dict[str, Array] = {"kind": full_column("kind", count)}
        self._count = count
        self._texts: dict[str, int] = {}
        self._blobs: list[bytes | memoryview] = []
        self._values: list[DebugValue] = []

    def store(self, events: Sequence[AnyEvent]) -> EventStore:
        for row, event in enumerate(events):
            if isinstance(event, ProfileEvent):
                self._profile(row, event)
            elif isinstance(event, AllocationEvent):
                self._put("kind", row, EventKind.ALLOCATION)
                self._put("allocator_id", row, event.allocator_id)
                self._put("allocation_size", row, event.allocation_size)
            elif isinstance(event, DebugEvent):
                self._debug(row, event)
        blobs, values = Blobs.of(self._blobs), DebugValues.of(self._values)
        return store_of(self._columns, tuple(self._texts), blobs, values)

    def _put(self, name: str, row: int, number: int) -> None:
        if name not in self._columns:
            self._columns[name] = full_column(name, self._count)
        self._columns[name][row] = number

    def _put_text(self, name: str, row: int, text: str | None) -> None:
        if text is not None:
            self._put(name, row, self._texts.setdefault(text, len(self._texts)))

    def _ids(self, row: int, event: ProfileEvent | DebugEvent) -> None:
        self._put("chain_index", row, event.chain_index)
        self._put("instruction_id", row, event.instruction_id)
        self._put("delegate_id_int", row, event.delegate_id_int)
        self._put_text("delegate_id_str", row, event.delegate_id_str)
        self._put_text("name", row, event.name)

    def _profile(self, row: int, event: ProfileEvent) -> None:
        self._put("kind", row, EventKind.PROFILE)
        self._ids(row, event)
        self._put("start_time", row, event.start_time)
        self._put("end_time", row, event.end_time)
        if event.metadata is not None:
            self._put("metadata", row, len(self._blobs))
            self._blobs.append(event.metadata)

    def _debug(self, row: int, event: DebugEvent) -> None:
        self._put("kind", row, EventKind.DEBUG)
        self._ids(row, event)
        if event.value is not None:
            self._put("value", row, len(self._values))
            self._values.append(event.value)


def synthetic(
    events: int, *, runs: int = 10, kernels: Sequence[str] = (), shared_names: bool = False
) -> ETDump:
    """Return a trace of many events as a runtime would write it, built without a Python loop.

    Each run is a block of instructions, every one a kernel call inside an OPERATOR_CALL, and
    one Method::execute around all of them.

    Args:
        events: events in all blocks together
        runs: blocks, all named Execute
        kernels: names of the kernels that take turns; by default 200 that no program has
        shared_names: write each name once; runtimes write it again for every event
    """
    kernels = kernels or [f"native_call_op_{index}.out" for index in range(200)]
    strings: tuple[str, ...] = ("OPERATOR_CALL", "Method::execute", *kernels)
    row = np.arange(events, dtype=np.int64)
    length = -(-events // runs)
    inside = row % length
    instruction = inside // 2
    name = np.where(inside % 2 == 0, 2 + instruction % len(kernels), 0)
    last = (inside == length - 1) | (row == events - 1)
    name[last] = 1
    start = row // length * length * 1000 + instruction * 2000
    end = start + 1000 + instruction * 37 % 900 + inside % 2 * 50
    start[last] -= instruction[last] * 2000
    if not shared_names:
        strings = tuple([strings[int(index)] for index in name])
        name = row
    columns = {
        "kind": np.full(events, EventKind.PROFILE, dtype=np.int8),
        "name": name,
        "chain_index": np.where(last, -1, 0),
        "instruction_id": np.where(last, 0, instruction),
        "start_time": start,
        "end_time": end,
    }
    store = store_of(columns, strings)
    edges = range(0, events, length)
    tables = [EventTable(store, edge, min(edge + length, events)) for edge in edges]
    return dump(run("Execute", events) for events in tables)
