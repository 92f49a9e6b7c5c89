"""Events of a trace: single ones as dataclasses, all of them as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from schema.etdump.values import DebugValue, DebugValues
from schema.origins import EMULATED as EMULATED  # metadata of events, re-exported

Array = NDArray[Any]


class EventKind(IntEnum):
    """Which of the three fields of an Event is set."""

    PROFILE = 0
    ALLOCATION = 1
    DEBUG = 2
    NONE = 3


@dataclass(frozen=True, slots=True)
class ProfileEvent:
    """A timed scope.

    Attributes:
        name: None if the backend logged by id
        chain_index: -1 outside of instructions
        instruction_id: 0 outside of instructions as stock runtimes write it
        delegate_id_int: -1 when unset
        delegate_id_str: None when unset
        metadata: bytes of the backend, or None
        start_time: ticks; the file does not record the length of a tick
        end_time: ticks
    """

    name: str | None = None
    chain_index: int = -1
    instruction_id: int = -1
    start_time: int = 0
    end_time: int = 0
    delegate_id_int: int = -1
    delegate_id_str: str | None = None
    metadata: bytes | memoryview | None = None


@dataclass(frozen=True, slots=True)
class AllocationEvent:
    """Memory taken from an allocator.

    Attributes:
        allocator_id: index into the allocators of the run
        allocation_size: bytes
    """

    allocator_id: int
    allocation_size: int


@dataclass(frozen=True, slots=True)
class DebugEvent:
    """A logged value.

    Attributes:
        value: the logged value, None if missing or unreadable
        chain_index: -1 for program outputs; a handle of 2^63 and above is negative
        instruction_id: 0 for program outputs as stock runtimes write it
        name: None in all stock traces
        delegate_id_int: -1 when unset
        delegate_id_str: None when unset
    """

    value: DebugValue | None = None
    chain_index: int = -1
    instruction_id: int = -1
    name: str | None = None
    delegate_id_int: int = -1
    delegate_id_str: str | None = None


AnyEvent = ProfileEvent | AllocationEvent | DebugEvent | None


class Blobs(Sequence[memoryview]):
    """A read-only sequence of byte runs in one buffer.

    Attributes:
        buffer: contains them
        starts: first byte of each, int64[n]
        sizes: bytes of each, int64[n]
    """

    def __init__(self, buffer: memoryview, starts: Array, sizes: Array) -> None:
        self.buffer = buffer
        self.starts = starts
        self.sizes = sizes

    @classmethod
    def of(cls, blobs: Sequence[bytes | memoryview]) -> Blobs:
        """Return the sequence of copies of these."""
        sizes = np.array([len(blob) for blob in blobs], dtype=np.int64)
        whole = b"".join(bytes(blob) for blob in blobs)
        return cls(memoryview(whole), np.cumsum(sizes) - sizes, sizes)

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> memoryview: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[memoryview, ...]: ...
    def __getitem__(self, index: int | slice) -> memoryview | tuple[memoryview, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        start = int(self.starts[index])
        return self.buffer[start : start + int(self.sizes[index])]


@dataclass(frozen=True, slots=True, eq=False)
class EventStore:
    """The events of an entire trace as read-only columns, n events.

    Attributes:
        kind: EventKind, int8[n]
        name: index into strings, -1 absent, int32[n]
        chain_index: -1 unset; the unsigned handle of debug events wraps, int64[n]
        instruction_id: int32[n]
        delegate_id_int: -1 unset, int32[n]
        delegate_id_str: index into strings, -1 absent, int32[n]
        metadata: index into blobs, -1 absent, int32[n]
        start_time: ticks, uint64[n]
        end_time: ticks, uint64[n]
        allocator_id: -1 unless an allocation, int32[n]
        allocation_size: bytes, uint64[n]
        value: index into values, -1 absent, int32[n]
        strings: distinct strings by first use
        blobs: metadata of backends
        values: logged values
    """

    kind: Array
    name: Array
    chain_index: Array
    instruction_id: Array
    delegate_id_int: Array
    delegate_id_str: Array
    metadata: Array
    start_time: Array
    end_time: Array
    allocator_id: Array
    allocation_size: Array
    value: Array
    strings: tuple[str, ...]
    blobs: Blobs
    values: DebugValues


COLUMNS = tuple(entry.name for entry in fields(EventStore))[:12]
_DTYPES = {
    "kind": "i1",
    "chain_index": "i8",
    "start_time": "u8",
    "end_time": "u8",
    "allocation_size": "u8",
}  # every other column: i4
_UNSET = {
    "kind": EventKind.NONE,
    "start_time": 0,
    "end_time": 0,
    "allocation_size": 0,
}  # every other column: -1


def _dtype(name: str) -> str:
    return _DTYPES.get(name, "i4")


def full_column(name: str, count: int) -> Array:
    """Return a writable column of unset entries."""
    return np.full(count, _UNSET.get(name, -1), dtype=_dtype(name))


def constant_column(name: str, count: int, number: int | None = None) -> Array:
    """Return a read-only column that repeats one value without memory; unset by default."""
    one = np.array(_UNSET.get(name, -1) if number is None else number, dtype=_dtype(name))
    return np.broadcast_to(one, (count,))


def store_of(
    columns: dict[str, Array],
    strings: tuple[str, ...] = (),
    blobs: Blobs | None = None,
    values: DebugValues | None = None,
) -> EventStore:
    """Return a store of these columns, which become read-only; omitted columns are unset."""
    count = len(columns["kind"])
    built: dict[str, Array] = {}
    for name in COLUMNS:
        column = columns.get(name)
        if column is None:
            column = constant_column(name, count)
        column = column.astype(_dtype(name), copy=False)
        if column.flags.writeable:
            column.flags.writeable = False
        built[name] = column
    return EventStore(
        **built,
        strings=strings,
        blobs=Blobs.of(()) if blobs is None else blobs,
        values=DebugValues.of(()) if values is None else values,
    )
