"""The events of one run: a slice of the columns of its trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from typing_extensions import override

from schema.etdump.events import (
    AllocationEvent,
    AnyEvent,
    Array,
    Blobs,
    DebugEvent,
    EventKind,
    EventStore,
    ProfileEvent,
)
from schema.etdump.values import DebugValue, DebugValues


@dataclass(frozen=True, slots=True, eq=False)
class EventTable(Sequence[AnyEvent]):
    """Consecutive events of a store, in the order of the file; columns are views.

    Two tables are equal if their events are, regardless of the indices of strings and values.

    Attributes:
        store: columns of the whole trace
        start: first row
        stop: one past the last row
    """

    store: EventStore
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def kind(self) -> Array:
        """Return the EventKind of each event, int8."""
        return self.store.kind[self.start : self.stop]

    @property
    def name(self) -> Array:
        """Return the index of each name in `strings`, -1 where absent, int32."""
        return self.store.name[self.start : self.stop]

    @property
    def chain_index(self) -> Array:
        """Return chain indices, -1 unset, int64."""
        return self.store.chain_index[self.start : self.stop]

    @property
    def instruction_id(self) -> Array:
        """Return instruction indices, int32."""
        return self.store.instruction_id[self.start : self.stop]

    @property
    def delegate_id_int(self) -> Array:
        """Return integer ids of delegates, -1 unset, int32."""
        return self.store.delegate_id_int[self.start : self.stop]

    @property
    def delegate_id_str(self) -> Array:
        """Return the index of each string id in `strings`, -1 where absent, int32."""
        return self.store.delegate_id_str[self.start : self.stop]

    @property
    def metadata(self) -> Array:
        """Return the index of each metadata in `blobs`, -1 where absent, int32."""
        return self.store.metadata[self.start : self.stop]

    @property
    def start_time(self) -> Array:
        """Return start times in ticks, uint64."""
        return self.store.start_time[self.start : self.stop]

    @property
    def end_time(self) -> Array:
        """Return end times in ticks, uint64."""
        return self.store.end_time[self.start : self.stop]

    @property
    def allocator_id(self) -> Array:
        """Return allocator ids, -1 unless an allocation, int32."""
        return self.store.allocator_id[self.start : self.stop]

    @property
    def allocation_size(self) -> Array:
        """Return allocated bytes, uint64."""
        return self.store.allocation_size[self.start : self.stop]

    @property
    def value(self) -> Array:
        """Return the index of each logged value in `values`, -1 where absent, int32."""
        return self.store.value[self.start : self.stop]

    @property
    def strings(self) -> tuple[str, ...]:
        """Return the strings that names and string ids are indices of."""
        return self.store.strings

    @property
    def blobs(self) -> Blobs:
        """Return the metadata of backends."""
        return self.store.blobs

    @property
    def values(self) -> DebugValues:
        """Return the logged values of the entire trace."""
        return self.store.values

    def text(self, index: int) -> str | None:
        """Return a string by its index, None for -1."""
        return self.store.strings[index] if index >= 0 else None

    @overload
    def __getitem__(self, index: int) -> AnyEvent: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[AnyEvent, ...]: ...
    def __getitem__(self, index: int | slice) -> AnyEvent | tuple[AnyEvent, ...]:
        if isinstance(index, slice):
            return tuple(self._event(i) for i in range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(f"event {index} of {len(self)}")
        return self._event(index % len(self))

    def __iter__(self) -> Iterator[AnyEvent]:
        return (self._event(i) for i in range(len(self)))

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EventTable):
            return NotImplemented
        return len(self) == len(other) and _same_events(self, other)

    @override
    def __hash__(self) -> int:
        return len(self)

    def _event(self, index: int) -> AnyEvent:
        row = self.start + index
        store = self.store
        kind = int(store.kind[row])
        if kind == EventKind.ALLOCATION:
            return AllocationEvent(int(store.allocator_id[row]), int(store.allocation_size[row]))
        if kind == EventKind.NONE:
            return None
        name = self.text(int(store.name[row]))
        chain, instruction = int(store.chain_index[row]), int(store.instruction_id[row])
        id_int = int(store.delegate_id_int[row])
        id_str = self.text(int(store.delegate_id_str[row]))
        if kind == EventKind.DEBUG:
            value = int(store.value[row])
            logged = store.values[value] if value >= 0 else None
            return DebugEvent(logged, chain, instruction, name, id_int, id_str)
        blob = int(store.metadata[row])
        metadata = store.blobs[blob] if blob >= 0 else None
        start, end = int(store.start_time[row]), int(store.end_time[row])
        return ProfileEvent(name, chain, instruction, start, end, id_int, id_str, metadata)


_NUMBERS = (
    "kind",
    "chain_index",
    "instruction_id",
    "delegate_id_int",
    "start_time",
    "end_time",
    "allocator_id",
    "allocation_size",
)


def _same_events(a: EventTable, b: EventTable) -> bool:
    if not all(np.array_equal(getattr(a, name), getattr(b, name)) for name in _NUMBERS):
        return False
    common: dict[str, int] = {}
    for text in a.strings + b.strings:
        common.setdefault(text, len(common))
    for name in ("name", "delegate_id_str"):
        if not np.array_equal(_common(a, name, common), _common(b, name, common)):
            return False
    return _same_blobs(a, b) and _same_values(a, b)


def _common(table: EventTable, name: str, common: dict[str, int]) -> Array:
    # The index -1 of an absent entry picks the last one.
    numbers = np.array([common[text] for text in table.strings] + [-1], dtype=np.int64)
    return numbers[getattr(table, name)]


def _same_blobs(a: EventTable, b: EventTable) -> bool:
    present = a.metadata >= 0
    if not np.array_equal(present, b.metadata >= 0):
        return False
    pairs = zip(a.metadata[present], b.metadata[present], strict=True)
    return all(a.blobs[int(i)] == b.blobs[int(j)] for i, j in pairs)


def _same_values(a: EventTable, b: EventTable) -> bool:
    present = a.value >= 0
    if not np.array_equal(present, b.value >= 0):
        return False
    mine, theirs = a.value[present], b.value[present]
    if np.array_equal(mine, theirs) and a.values.columns.same_as(b.values.columns):
        return True
    pairs = zip(mine, theirs, strict=True)
    return all(_same_value(a.values[int(i)], b.values[int(j)]) for i, j in pairs)


def _same_value(a: DebugValue, b: DebugValue) -> bool:
    return a == b or repr(a) == repr(b)  # NaN equals itself here
