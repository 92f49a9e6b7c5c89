"""The events of a block as a sequence over columns: an Event is created on first access."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from inspector.compat.devtools.event import Event, MetadataParser
from inspector.compat.devtools.naming import Naming
from inspector.compat.devtools.perf_data import PerfData
from inspector.compat.devtools.tensors import WritableBuffer
from inspector.compat.devtools.values import NO_VALUES, LazyValues, logged_source
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import inside_delegates
from schema.etdump import DebugValue

TimeConverter = Callable[[Any, Any], Any]
Times = NDArray[np.float64]
_POINTS = (10, 50, 90)
_WRAP = 2**32 - 1  # largest value of a 32-bit clock


@dataclass(frozen=True, slots=True)
class Clock:
    """How ticks become durations.

    Attributes:
        divisor: divisor of ticks
        converter: converts (event name, ticks) for events inside delegates, None to divide
    """

    divisor: float
    converter: TimeConverter | None = None


@dataclass(eq=False)
class TraceEvents(Sequence[Event]):
    """The events of one block of a trace.

    Shapes: times float64[events, runs], NaN without a duration

    Attributes:
        block: the columns
        clock: ticks to time
        naming: names of the events from the record
        buffer: bytes of logged tensors, None without a debug buffer
        parser: of the metadata a backend attached
    """

    block: Block
    clock: Clock
    naming: Naming
    buffer: WritableBuffer | None = None
    parser: MetadataParser | None = None
    _created: dict[int, Event] = field(default_factory=dict[int, Event], repr=False)
    _original: dict[int, dict[str, Any]] = field(default_factory=dict[int, Any], repr=False)

    def __len__(self) -> int:
        return len(self.block)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"event {index} of {len(self)}")
        if at not in self._created:
            self._created[at] = self._event(at)
            self._original[at] = dict(vars(self._created[at]))
        return self._created[at]

    @property
    def changed(self) -> bool:
        """Return whether a caller has set an attribute of an event: columns do not show it."""
        return any(
            vars(self._created[at]).get(name) is not value
            for at, attributes in self._original.items()
            for name, value in attributes.items()
        )

    def _event(self, at: int) -> Event:
        block, facts = self.block, self.naming.facts(at)
        identifier = block.delegate_id(at)
        timed = bool(self.timed[at])
        runs = [self.logged(at, run) for run in range(len(block.runs))] if self._logs[at] else []
        return Event(
            name=block.event_name(at),
            perf_data=PerfData(self.raw(at)) if timed else None,
            op_types=list(facts.op_types),
            delegate_debug_identifier=identifier,
            debug_handles=facts.debug_handles,
            num_outputs=facts.num_outputs,
            stack_traces=dict(facts.stack_traces),
            module_hierarchy=dict(facts.module_hierarchy),
            is_delegated_op=identifier is not None,
            delegate_backend_name=facts.backend,
            _delegate_debug_metadatas=self.metadata(at),
            debug_data=runs[0] if runs else NO_VALUES,
            _instruction_id=block.instruction(at),
            _start_time=block.start[:, at].tolist() if timed else None,
            debug_data_runs=tuple(runs),
            link=self.naming.grade(at),
            _delegate_metadata_parser=self.parser,
            _delegate_time_scale_converter=self.clock.converter,
        )

    # ---- columns
    @cached_property
    def timed(self) -> NDArray[np.bool_]:
        """Return which events have a duration."""
        return self.block.layout.last >= 0

    @cached_property
    def inner(self) -> NDArray[np.bool_]:
        """Return which events happened inside a delegate."""
        return inside_delegates(self.block)

    @cached_property
    def times(self) -> Times:
        """Return the durations in the target scale."""
        block, scale = self.block, self.clock.divisor
        plain = block.elapsed / scale
        # Inside delegates the stock tool scales both ends before it subtracts.
        ends = block.end / scale - block.start / scale
        both = self.inner & ~(block.start > block.end) & ~np.isnan(block.elapsed)
        return np.ascontiguousarray(np.transpose(np.where(both, ends, plain)))

    @cached_property
    def _logs(self) -> NDArray[np.bool_]:
        counts = np.diff(self.block.layout.debug_start)
        return counts[self.block.layout.group] > 0

    def raw(self, at: int) -> list[Any]:
        """Return the durations of one event, one per run."""
        if self.clock.converter is None or not self.inner[at]:
            return self.times[at].tolist()
        name = self.block.event_name(at)
        starts, ends = self.block.start[:, at].tolist(), self.block.end[:, at].tolist()
        return [self._converted(name, start, end) for start, end in zip(starts, ends, strict=True)]

    def _converted(self, name: str, start: int, end: int) -> object:
        convert = self.clock.converter
        assert convert is not None
        first, last = convert(name, start), convert(name, end)
        if start > end:  # the clock of the backend has 32 bits and went around
            return convert(name, _WRAP) - first + last
        return last - first

    def raw_lists(self) -> list[list[Any] | None]:
        """Return the durations of all events, None without one; a converter is left aside."""
        rows: list[list[Any] | None] = self.times.tolist()
        for at in np.flatnonzero(~self.timed).tolist():
            rows[at] = None
        return rows

    def statistics(self) -> dict[str, Times]:
        """Return p10, p50, p90, avg, min and max over runs; a converter is left aside."""
        times: Times = self.times
        if not len(times):
            return {name: np.zeros(0) for name in ("p10", "p50", "p90", "avg", "min", "max")}
        p10, p50, p90 = np.percentile(times, _POINTS, axis=1)
        means = np.mean(times, axis=1)
        low, high = np.min(times, axis=1), np.max(times, axis=1)
        return {"p10": p10, "p50": p50, "p90": p90, "avg": means, "min": low, "max": high}

    def start_lists(self) -> list[list[int] | None]:
        """Return the start of all events, one per run; None without a duration."""
        rows: list[list[int] | None] = np.transpose(self.block.start).tolist()
        for at in np.flatnonzero(~self.timed).tolist():
            rows[at] = None
        return rows

    def logged_lists(self) -> list[Sequence[Any]]:
        """Return the values of the first run that logged any, for every event."""
        empty: list[Sequence[Any]] = [[] for _ in range(len(self))]
        for at in np.flatnonzero(self._logs).tolist():
            empty[at] = self.logged(at, 0)
        return empty

    def logged(self, at: int, run: int) -> LazyValues:
        """Return the values logged for an event's instruction in one run."""
        return self._values(lambda: self.block.debug_values(at, run))

    def outputs(self) -> list[LazyValues]:
        """Return the program outputs of each run."""
        return [self._output(run) for run in range(len(self.block.runs))]

    def _output(self, run: int) -> LazyValues:
        return self._values(lambda: self.block.outputs(run))

    def _values(self, read: Callable[[], tuple[DebugValue | None, ...]]) -> LazyValues:
        return LazyValues(lambda: [logged_source(value, self.buffer) for value in read()])

    def metadata(self, at: int) -> list[Any]:
        """Return the metadata of a backend for an event, one entry per run; empty without it."""
        if not self.timed[at]:
            return []
        found = [self.block.metadata(at, run) or "" for run in range(len(self.block.runs))]
        return found if any(found) else []
