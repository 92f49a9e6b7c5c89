"""The documented blocks and events of a session's traces."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.compat.devtools.etrecord import reference_output
from inspector.compat.devtools.event import MetadataParser
from inspector.compat.devtools.event_block import EventBlock
from inspector.compat.devtools.naming import Naming
from inspector.compat.devtools.tensors import WritableBuffer
from inspector.compat.devtools.time_scale import TimeScale
from inspector.compat.devtools.trace_events import Clock, TraceEvents
from inspector.compat.devtools.values import NO_VALUES
from inspector.files.session import Session
from inspector.trace.blocks import Block, trace_blocks
from schema.graph import Graph

_FORWARD = "forward"


@dataclass(frozen=True, slots=True)
class EventOptions:
    """Arguments for the events of every block.

    Attributes:
        clock: ticks to time
        buffer: bytes of logged tensors, None without a debug buffer
        parser: of metadata of backends
        group_by_module: list operators by recorded source function
    """

    clock: Clock
    buffer: WritableBuffer | None = None
    parser: MetadataParser | None = None
    group_by_module: bool = False


def event_blocks(
    session: Session,
    options: EventOptions,
    graph: Graph | None,
    scales: tuple[TimeScale, TimeScale],
) -> list[EventBlock]:
    """Return one block a pattern of execution.

    Args:
        session: traces, record and program
        options: arguments for events
        graph: that names the operators, None for the edge graph of each method
        scales: unit of the ticks, and of the durations
    """
    blocks = trace_blocks(session.dumps).blocks
    return [_block(session, options, block, graph, scales) for block in blocks]


def _block(
    session: Session,
    options: EventOptions,
    block: Block,
    graph: Graph | None,
    scales: tuple[TimeScale, TimeScale],
) -> EventBlock:
    naming = Naming(session, block, graph, options.group_by_module)
    events = TraceEvents(block, options.clock, naming, options.buffer, options.parser)
    outputs = events.outputs()
    reference = None
    if session.record is not None:
        method = naming.method or _FORWARD
        reference = reference_output(session.record, method, block.bundled_input_index)
    return EventBlock(
        name=block.name,
        events=events,
        source_time_scale=scales[0],
        target_time_scale=scales[1],
        bundled_input_index=block.bundled_input_index,
        run_output=next((output for output in outputs if len(output)), NO_VALUES),
        reference_output=reference,
        run_outputs=outputs,
        method=naming.method,
    )
