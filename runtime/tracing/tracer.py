"""Records the events of a program with their times, and the contents of tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import torch

from runtime.memory.slots import CODE_OF
from runtime.platform import clock
from runtime.tracing.sinks import DebugSink, MemorySink
from schema import etdump
from schema.etdump import DebugEvent, DebugTensor, DebugValue, ProfileEvent, ValueType
from schema.etdump.clock import clock_marker

NO_CHAIN = -1
_OUTSIDE = 0  # instruction index that the stock runtime writes outside of instructions


class DebugLevel(IntEnum):
    """Which values are logged."""

    NONE = 0
    OUTPUTS = 1
    INTERMEDIATE = 2


class ProfilingLevel(IntEnum):
    """Which times are logged."""

    METHOD_ONLY = 0
    ALL_EVENTS = 1


@dataclass(frozen=True, slots=True)
class DebugFilter:
    """Which intermediate values are logged; None passes everything.

    Attributes:
        operators: regular expression for the full name of the operator or backend
        instructions: indices of instructions, such as those of a module or of debug handles
        delegate_ids: regular expression for the full id of a value inside a delegate
    """

    operators: str | None = None
    instructions: frozenset[int] | None = None
    delegate_ids: str | None = None

    def takes(self, instruction: int, operator: str) -> bool:
        """Return whether the values of an instruction are logged."""
        if self.instructions is not None and instruction not in self.instructions:
            return False
        return self.operators is None or re.fullmatch(self.operators, operator) is not None

    def takes_inner(self, instruction: int, identity: int | str) -> bool:
        """Return whether a value inside of a delegate call is logged."""
        if self.instructions is not None and instruction not in self.instructions:
            return False
        pattern = self.delegate_ids
        return pattern is None or re.fullmatch(pattern, str(identity)) is not None


@dataclass(frozen=True, slots=True)
class DelegateRow:
    """Consecutive scopes inside a delegate.

    A library that times its own operators returns all times after its run; they are turned into
    events when
    the trace is read, not between runs.

    Attributes:
        names: of the scopes
        start: of the first, nanoseconds
        times: how long each took, microseconds
        metadata: of each of them
        place: chain and instruction of the delegate
    """

    names: Sequence[str]
    start: int
    times: Sequence[int]
    metadata: bytes | None
    place: tuple[int, int]

    def events(self) -> Iterator[ProfileEvent]:
        """Yield the scopes."""
        end = self.start
        for name, micros in zip(self.names, self.times, strict=True):
            start, end = end, end + 1000 * micros
            yield _delegate_event(name, start, end, self.metadata, self.place)


class EventTracer:
    """Collects the events of a program's runs.

    Args:
        debug_level: which values are logged
        profiling_level: which times are logged
        sink: stores the bytes of tensors; None for memory
        only: which intermediate values are logged
        allocations: whether the memory of methods is logged; the stock reader accepts such events,
            the stock Inspector rejects traces that contain them
    """

    def __init__(
        self,
        debug_level: DebugLevel = DebugLevel.NONE,
        profiling_level: ProfilingLevel = ProfilingLevel.ALL_EVENTS,
        *,
        sink: DebugSink | None = None,
        only: DebugFilter | None = None,
        allocations: bool = False,
    ) -> None:
        self.debug_level = debug_level
        self.profiling_level = profiling_level
        self.sink: DebugSink = MemorySink() if sink is None else sink
        self.only = DebugFilter() if only is None else only
        self.allocations = allocations
        self.bundled_input_index = -1
        self._blocks: list[tuple[str, int, list[Any]]] = []
        self.rows: list[Any] = []
        self._allocators: list[str] = []

    def create_event_block(self, name: str) -> None:
        """Begin a new block, to which later events belong."""
        self.rows = []
        self._blocks.append((name, self.bundled_input_index, self.rows))

    def need_block(self, name: str) -> None:
        """Begin a block unless the current one has this name."""
        if not self._blocks or self._blocks[-1][0] != name:
            self.create_event_block(name)

    def profile(
        self, name: str, start: int, end: int, chain: int = NO_CHAIN, instruction: int = _OUTSIDE
    ) -> None:
        """Log a scope that ended."""
        self.rows.append((name, chain, instruction, start, end))

    def profile_delegate(
        self,
        identity: int | str,
        start: int,
        end: int,
        metadata: bytes | None,
        place: tuple[int, int],
    ) -> None:
        """Log a scope inside a delegate, by the delegate's own id."""
        self.rows.append([identity, start, end, metadata, place])

    def profile_delegates(self, row: DelegateRow) -> None:
        """Log consecutive scopes inside of a delegate."""
        self.rows.append(row)

    def log_value(
        self,
        value: Any,  # noqa: ANN401 - any value of a program
        chain: int = NO_CHAIN,
        instruction: int = _OUTSIDE,
        *,
        output: bool | None = None,
        identity: int | str | None = None,
    ) -> None:
        """Log the contents of a value; types that an ETDump cannot hold are skipped."""
        logged = self._debug_value(value, output)
        if logged is None:
            return
        number = identity if isinstance(identity, int) else -1
        name = identity if isinstance(identity, str) else None
        self.rows.append(DebugEvent(logged, chain, instruction, None, number, name))

    def track_allocator(self, name: str) -> int:
        """Return the id of an allocator, for `track_allocation`."""
        self._allocators.append(name)
        return len(self._allocators) - 1

    def track_allocation(self, allocator: int, size_bytes: int) -> None:
        """Log an allocation."""
        self.rows.append(etdump.AllocationEvent(allocator, size_bytes))

    def _debug_value(self, value: Any, output: bool | None) -> DebugValue | None:  # noqa: ANN401
        if isinstance(value, torch.Tensor):
            tensor = self._debug_tensor(value)
            return tensor and DebugValue(ValueType.TENSOR, tensor=tensor, output=output)
        # Scalars are never marked as outputs, as in traces of the stock runtime.
        if isinstance(value, bool):
            return DebugValue(ValueType.BOOL, bool_value=value)
        if isinstance(value, int):
            return DebugValue(ValueType.INT, int_value=value)
        if isinstance(value, float):
            return DebugValue(ValueType.DOUBLE, double_value=value)
        if isinstance(value, list | tuple):
            tensors = self._debug_tensors(cast("Sequence[Any]", value))
            if tensors is not None:
                return DebugValue(ValueType.TENSOR_LIST, tensors=tensors, output=output)
        return None

    def _debug_tensors(self, values: Sequence[Any]) -> tuple[DebugTensor, ...] | None:
        if not all(isinstance(value, torch.Tensor) for value in values):
            return None
        logged = [self._debug_tensor(value) for value in values]
        stored = tuple(tensor for tensor in logged if tensor is not None)
        return stored if len(stored) == len(logged) else None

    def _debug_tensor(self, tensor: torch.Tensor) -> DebugTensor | None:
        offset = self.sink.add(tensor)
        if offset is None:  # `failure` of the sink says why
            return None
        code = CODE_OF[tensor.dtype]
        return DebugTensor(code, tuple(tensor.shape), tuple(tensor.stride()), offset)

    def trace(self) -> etdump.ETDump:
        """Return everything recorded so far."""
        return etdump.dump(
            etdump.run(
                name,
                [event for row in rows for event in _events(row)],
                bundled_input_index=index,
                allocators=[*self._allocators, *([] if number else [clock_marker()])],
            )
            for number, (name, index, rows) in enumerate(self._blocks)
        )

    def write(self, etdump_path: str | Path, debug_buffer_path: str | Path | None = None) -> None:
        """Write the trace, and the debug buffer where a path for it is given."""
        Path(etdump_path).write_bytes(etdump.encode(self.trace()))
        if debug_buffer_path is not None:
            self.sink.save(Path(debug_buffer_path))

    @property
    def last_ns(self) -> int:
        """Return the duration of the scope that was logged last; without values that of the run."""
        *_, start, end = self.rows[-1]
        return end - start

    def scope(self, name: str) -> AbstractContextManager[None]:
        """Return a context that is logged as a scope outside of instructions."""
        return _LoggedScope(self, name)


class _LoggedScope:
    def __init__(self, tracer: EventTracer, name: str) -> None:
        self._tracer = tracer
        self._name = name
        self._start = 0

    def __enter__(self) -> None:
        self._start = clock()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tracer.profile(self._name, self._start, clock())


def _events(row: Any) -> list[etdump.AnyEvent]:  # noqa: ANN401 - tuples and lists are times
    if isinstance(row, list):
        return [_delegate_event(*cast("list[Any]", row))]
    if isinstance(row, DelegateRow):
        return [*row.events()]
    if not isinstance(row, tuple):
        return [row]
    *names, chain, instruction, start, end = cast("tuple[Any, ...]", row)
    return [ProfileEvent(name, chain, instruction, start, end) for name in names if name]


def _delegate_event(
    identity: int | str, start: int, end: int, metadata: bytes | None, place: tuple[int, int]
) -> ProfileEvent:
    number, name = (identity, None) if isinstance(identity, int) else (-1, identity)
    return ProfileEvent(None, *place, start, end, number, name, metadata)
