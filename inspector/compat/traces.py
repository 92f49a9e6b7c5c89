"""Names of ``executorch.devtools.inspector._inspector`` that are used but not documented.

They work on the stock package's objects of a trace (``devtools.etdump.schema_flatcc``), which are
known by their fields: the package is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from inspector.api.event import MetadataParser
from inspector.api.event_block import EventBlock
from inspector.api.making import Making, event_blocks
from inspector.api.opening import session_of
from inspector.api.tensors import WritableBuffer
from inspector.api.time_scale import TimeScale, as_time_scale, divisor
from inspector.api.trace_events import Clock, TimeConverter
from inspector.session import LoadedFile
from schema.etdump import DebugTensor, DebugValue, ETDump, ValueType, build
from schema.etdump.events import AnyEvent, DebugEvent, ProfileEvent
from schema.etdump.from_json import VALUE_TYPES


@dataclass(frozen=True, order=True)
class InstructionEventSignature:
    """What events of one instruction have in common."""

    instruction_id: int
    chain_index: int
    delegate_id: int | None = None
    delegate_id_str: str | None = None


@dataclass(frozen=True, order=True)
class ProfileEventSignature:
    """What equal timed events have in common; None for what is not set."""

    name: str
    instruction_id: int | None
    delegate_id: int | None = None
    delegate_id_str: str | None = None

    @staticmethod
    def _gen_from_event(event: Any) -> ProfileEventSignature:  # noqa: ANN401
        return ProfileEventSignature(*_identity(event))


@dataclass(frozen=True, order=True)
class DebugEventSignature:
    """What equal logged values have in common; None for what is not set."""

    name: str = ""
    instruction_id: int | None = -1
    delegate_id: int | None = None
    delegate_id_str: str | None = None

    @staticmethod
    def _gen_from_event(event: Any) -> DebugEventSignature:  # noqa: ANN401
        return DebugEventSignature(*_identity(event))


def _identity(event: Any) -> tuple[str, int | None, int | None, str | None]:  # noqa: ANN401
    number, place = event.delegate_debug_id_int, event.instruction_id
    return (
        event.name or "",
        None if place == -1 else place,
        None if number == -1 else number,
        event.delegate_debug_id_str or None,
    )


def event_blocks_of(
    etdump: Any,  # noqa: ANN401 - of the stock schema
    source_time_scale: TimeScale = TimeScale.NS,
    target_time_scale: TimeScale = TimeScale.MS,
    output_buffer: bytes | None = None,
    delegate_metadata_parser: MetadataParser | None = None,
    delegate_time_scale_converter: TimeConverter | None = None,
) -> list[EventBlock]:
    """Return the blocks of a trace that is an object of the stock package.

    Args:
        etdump: an ``ETDumpFlatCC``
        source_time_scale: unit of the ticks of the trace
        target_time_scale: unit of the durations
        output_buffer: bytes of the logged tensors
        delegate_metadata_parser: of what backends attached
        delegate_time_scale_converter: makes a time of (event name, ticks) inside delegates
    """
    scales = as_time_scale(source_time_scale), as_time_scale(target_time_scale)
    trace = LoadedFile("ETDumpFlatCC", "etdump", 0, memoryview(b""), _dump(etdump))
    buffer = None if output_buffer is None else WritableBuffer(memoryview(bytearray(output_buffer)))
    clock = Clock(divisor(*scales), delegate_time_scale_converter)
    making = Making(clock, buffer, delegate_metadata_parser)
    return event_blocks(session_of(trace, None, None, scales[0]), making, None, scales)


def _dump(etdump: Any) -> ETDump:  # noqa: ANN401
    runs = [run for run in etdump.run_data if run.events is not None]
    return build.dump(
        (
            build.run(
                run.name,
                list(_events(run)),
                bundled_input_index=-1
                if run.bundled_input_index is None
                else run.bundled_input_index,
            )
            for run in runs
        ),
        version=etdump.version,
    )


def _events(run: Any) -> Iterator[AnyEvent]:  # noqa: ANN401
    for event in run.events:
        timed, logged = event.profile_event, event.debug_event
        if timed is not None:
            given = timed.delegate_debug_metadata or None
            blob = given.encode() if isinstance(given, str) else given
            times = timed.start_time, timed.end_time
            yield ProfileEvent(timed.name, *_place(timed), *times, *_delegate(timed), blob)
        elif logged is not None:
            value = _value(logged.debug_entry)
            yield DebugEvent(value, *_place(logged), logged.name, *_delegate(logged))


def _place(event: Any) -> tuple[int, int]:  # noqa: ANN401
    chain = event.chain_index  # "no chain" of debug events is the largest unsigned number
    return chain - (1 << 64) if chain >> 63 == 1 else chain, event.instruction_id


def _delegate(event: Any) -> tuple[int, str | None]:  # noqa: ANN401
    number = event.delegate_debug_id_int
    return -1 if number is None else number, event.delegate_debug_id_str or None


def _value(entry: Any) -> DebugValue:  # noqa: ANN401
    kind = VALUE_TYPES[getattr(entry.val, "value", entry.val)]
    listed = entry.tensor_list.tensors if kind is ValueType.TENSOR_LIST else None
    return DebugValue(
        type=kind,
        tensor=_tensor(entry.tensor) if kind is ValueType.TENSOR else None,
        tensors=None if listed is None else tuple(map(_tensor, listed)),
        int_value=entry.int_value.int_val if kind is ValueType.INT else None,
        float_value=entry.float_value.float_val if kind is ValueType.FLOAT else None,
        double_value=entry.double_value.double_val if kind is ValueType.DOUBLE else None,
        bool_value=entry.bool_value.bool_val if kind is ValueType.BOOL else None,
        output=None if entry.output is None else entry.output.bool_val,
    )


def _tensor(tensor: Any) -> DebugTensor:  # noqa: ANN401
    offset = -1 if tensor.offset is None else tensor.offset
    sizes, strides = tuple(tensor.sizes), tuple(tensor.strides)
    return DebugTensor(int(tensor.scalar_type), sizes, strides, offset)
