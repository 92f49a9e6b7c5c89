"""Names of ``executorch.devtools.inspector._inspector`` that are used but not documented.

They work on the stock package's objects of a trace (``devtools.etdump.schema_flatcc``), which are
known by their fields: the package is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from inspector.compat.devtools.event import Event, MetadataParser
from inspector.compat.devtools.event_block import EventBlock
from inspector.compat.devtools.event_options import EventOptions, event_blocks
from inspector.compat.devtools.opening import session_of
from inspector.compat.devtools.tensors import WritableBuffer
from inspector.compat.devtools.time_scale import TimeScale, as_time_scale, divisor
from inspector.compat.devtools.trace_events import Clock, TimeConverter
from inspector.files.session import LoadedFile
from inspector.join.methods import FRAMEWORK
from inspector.rebuild.torch_bridge import load_torch
from inspector.trace.event_kinds import DELEGATE_CALL
from schema.etdump import DebugTensor, DebugValue, ETDump, ValueType, build
from schema.etdump.events import AnyEvent, DebugEvent, ProfileEvent
from schema.etdump.from_json import VALUE_TYPES

_DIFFERENT = "the runs of one pattern logged different values"


class DelegateMetadata(TypedDict):
    """A delegate in a record: its backend, and debug handles by its own ids."""

    name: str
    delegate_map: Mapping[Any, Any] | None


@dataclass(frozen=True, order=True)
class InstructionEventSignature:
    """Common properties of the events of one instruction."""

    instruction_id: int
    chain_index: int
    delegate_id: int | None = None
    delegate_id_str: str | None = None


@dataclass(frozen=True, order=True)
class ProfileEventSignature:
    """Key of equal timed events; None for unset members."""

    name: str
    instruction_id: int | None
    delegate_id: int | None = None
    delegate_id_str: str | None = None

    @staticmethod
    def _gen_from_event(event: Any) -> ProfileEventSignature:  # noqa: ANN401
        return ProfileEventSignature(*_identity(event))


@dataclass(frozen=True, order=True)
class DebugEventSignature:
    """Key of equal logged values; None for unset members."""

    name: str = ""
    instruction_id: int | None = -1
    delegate_id: int | None = None
    delegate_id_str: str | None = None

    @staticmethod
    def _gen_from_event(event: Any) -> DebugEventSignature:  # noqa: ANN401
        return DebugEventSignature(*_identity(event))


@dataclass(frozen=True, order=True)
class EventSignature:
    """Common properties of the events of one row of a table.

    Attributes:
        instruction_id: that of both signatures
        profile_event_signature: of the timed events, None without any
        debug_event_signature: of the logged values, None without any
    """

    instruction_id: int
    profile_event_signature: ProfileEventSignature | None = None
    debug_event_signature: DebugEventSignature | None = None


@dataclass
class InstructionEvent:
    """The recording of one instruction in one run.

    Attributes:
        signature: key of its events
        profile_events: the timed events, of the stock schema
        debug_events: the logged values, of the stock schema
    """

    signature: InstructionEventSignature
    profile_events: list[Any] | None = None
    debug_events: list[Any] | None = None


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
        delegate_metadata_parser: of metadata of backends
        delegate_time_scale_converter: converts (event name, ticks) inside delegates

    Raises: AssertionError if two runs of one pattern logged different values, as the stock
        function does; an Inspector keeps the values of every run
    """
    scales = as_time_scale(source_time_scale), as_time_scale(target_time_scale)
    clock = Clock(divisor(*scales), delegate_time_scale_converter)
    runs = [run for run in etdump.run_data if run.events is not None]
    dump = build.dump(
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
    options = EventOptions(clock, _buffer(output_buffer), delegate_metadata_parser)
    blocks = _blocks(dump, options, scales)
    for block in blocks:
        _same_in_all_runs(block.name, block.run_outputs)
        for event in block.events:
            _same_in_all_runs(f"{block.name}, {event.name}", event.debug_data_runs)
    return blocks


def _blocks(
    dump: ETDump, options: EventOptions, scales: tuple[TimeScale, TimeScale]
) -> list[EventBlock]:
    trace = LoadedFile("ETDumpFlatCC", "etdump", 0, memoryview(b""), dump)
    return event_blocks(session_of(trace, None, None, scales[0]), options, None, scales)


def _buffer(data: bytes | None) -> WritableBuffer | None:
    return None if data is None else WritableBuffer(memoryview(bytearray(data)))


def _same_in_all_runs(what: str, runs: Sequence[Sequence[Any]]) -> None:
    for values in runs[1:]:
        assert is_inference_output_equal(list(runs[0]), list(values)), f"{what}: {_DIFFERENT}"


# ---- one event
def event_of(
    signature: Any,  # noqa: ANN401 - an EventSignature
    events: Sequence[Any],
    scale_factor: float = 1.0,
    output_buffer: bytes | None = None,
    delegate_metadata_parser: MetadataParser | None = None,
    delegate_time_scale_converter: TimeConverter | None = None,
) -> Event:
    """Return the event of one instruction over several runs.

    Args:
        signature: an EventSignature
        events: one InstructionEvent a run
        scale_factor: divisor of ticks
        output_buffer: bytes of the logged tensors
        delegate_metadata_parser: of metadata of backends
        delegate_time_scale_converter: converts (event name, ticks) inside delegates
    """
    event = Event(
        "",
        _instruction_id=signature.instruction_id,
        _delegate_metadata_parser=delegate_metadata_parser,
        _delegate_time_scale_converter=delegate_time_scale_converter,
    )
    fill_times(event, signature.profile_event_signature, events, scale_factor)
    fill_values(event, signature.debug_event_signature, events, output_buffer)
    return event


def fill_times(event: Any, signature: Any, events: Sequence[Any], scale_factor: float) -> None:  # noqa: ANN401
    """Set the name, id, durations and metadata of an event from its timed events.

    Raises: ValueError if a run has several timed events, or if they are not of one kind
    """
    _identify(event, signature)
    timed = [each.profile_events for each in events if each.profile_events is not None]
    if any(len(found) != 1 for found in timed):
        counts = sorted({len(found) for found in timed})
        raise ValueError(f"expected one profile event in each InstructionEvent, found {counts}")
    if not timed:
        return
    clock = Clock(scale_factor, event._delegate_time_scale_converter)
    built = _only([[_profile(found[0])] for found in timed], EventOptions(clock))
    event.perf_data, event._start_time = built.perf_data, built.start_time
    attached = [found[0].delegate_debug_metadata or "" for found in timed]
    if any(attached):
        event._delegate_debug_metadatas = attached


def fill_values(
    event: Any,  # noqa: ANN401
    signature: Any,  # noqa: ANN401
    events: Sequence[Any],
    output_buffer: bytes | None = None,
) -> None:
    """Set the name, id and logged values of an event.

    Raises: AssertionError if two runs logged different values; ValueError if they are not of one
        instruction
    """
    _identify(event, signature)
    logged = [each.debug_events for each in events if each.debug_events is not None]
    if not logged:
        return
    options = EventOptions(Clock(1.0), _buffer(output_buffer))
    built = _only([[_debug(each) for each in found] for found in logged], options)
    _same_in_all_runs(event.name, built.debug_data_runs)
    event.debug_data = list(built.debug_data)


def _identify(event: Event, signature: Any) -> None:  # noqa: ANN401
    if signature is None:
        return
    number, message = signature.delegate_id, signature.delegate_id_str or None
    identifier = message if number is None else number
    event.delegate_debug_identifier = identifier
    event.is_delegated_op = identifier is not None
    event.name = (signature.name if identifier is None else str(identifier)) or event.name


def _only(runs: Sequence[list[AnyEvent]], options: EventOptions) -> Event:
    """Return the one event that some runs of one instruction are."""
    dump = build.dump(build.run("", events) for events in runs)
    blocks = _blocks(dump, options, (TimeScale.NS, TimeScale.NS))
    if len(blocks) != 1 or len(blocks[0].events) != 1:
        count = sum(len(block.events) for block in blocks)
        raise ValueError(f"expected events of one instruction and name, found {count} of them")
    return blocks[0].events[0]


def associate(event: Event, nodes: Mapping[int, Sequence[Any]]) -> None:
    """Add operators, source lines and modules of the nodes that have an event's debug handles.

    Args:
        event: of a trace; those of the runtime itself belong to no node
        nodes: debug handle -> nodes of the stock debug format
    """
    handles = event.debug_handles
    if event.name in FRAMEWORK or handles is None:
        return
    found = (
        nodes.get(handle, ()) for handle in ([handles] if isinstance(handles, int) else handles)
    )
    for node in (node for each in found for node in each):
        if node is None or node.metadata is None:
            continue
        if node.name not in event.stack_traces:
            event.stack_traces[node.name] = node.metadata.get("stack_trace")
            event.module_hierarchy[node.name] = node.metadata.get("nn_module_stack")
        if node.op:
            event.op_types.append(node.op)


def resolve_debug_handles(
    block: EventBlock,
    handle_map: Mapping[str, Any],
    delegate_map: Mapping[str, DelegateMetadata] | None = None,
    instruction_id_to_num_outs_map: Mapping[str, int] | None = None,
) -> None:
    """Give the events of a block the debug handles of their instructions.

    Args:
        block: of a trace
        handle_map: instruction, as a string -> debug handles
        delegate_map: instruction -> its delegate
        instruction_id_to_num_outs_map: instruction -> how many outputs a delegate has
    """
    for event in block.events:
        key = str(event.instruction_id)
        if key not in handle_map:
            continue
        event.num_outputs = (instruction_id_to_num_outs_map or {}).get(key, 1)
        delegate = (delegate_map or {}).get(key)
        identifier = event.delegate_debug_identifier
        if delegate is not None and (identifier is not None or event.name == DELEGATE_CALL):
            event.delegate_backend_name = delegate.get("name", "")
        if delegate is None or identifier is None:
            event.debug_handles = handle_map[key]
        else:
            known = delegate.get("delegate_map") or {}
            event.debug_handles = known.get(identifier, known.get(str(identifier)))


# ---- objects of the stock schema
def _events(run: Any) -> Iterator[AnyEvent]:  # noqa: ANN401
    for event in run.events:
        timed, logged = event.profile_event, event.debug_event
        if timed is not None:
            yield _profile(timed)
        elif logged is not None:
            yield _debug(logged)


def _profile(event: Any) -> ProfileEvent:  # noqa: ANN401
    given = event.delegate_debug_metadata or None
    blob = given.encode() if isinstance(given, str) else given
    times = event.start_time, event.end_time
    return ProfileEvent(event.name, *_place(event), *times, *_delegate(event), blob)


def _debug(event: Any) -> DebugEvent:  # noqa: ANN401
    return DebugEvent(_value(event.debug_entry), *_place(event), event.name, *_delegate(event))


def _place(event: Any) -> tuple[int, int]:  # noqa: ANN401
    chain = event.chain_index  # "no chain" of debug events is the largest unsigned integer
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


def is_inference_output_equal(output1: object, output2: object) -> bool:
    """Return whether two outputs are the same: tensors, lists of them, numbers or strings."""
    torch = load_torch()
    if isinstance(output1, torch.Tensor) and isinstance(output2, torch.Tensor):
        return torch.equal(output1, output2)
    if isinstance(output1, list) and isinstance(output2, list):
        one, two = cast("list[object]", output1), cast("list[object]", output2)
        return len(one) == len(two) and all(map(is_inference_output_equal, one, two))
    return type(cast("Any", output1)) is type(cast("Any", output2)) and output1 == output2
