"""Runs of one pattern of events, with the documented attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from inspector.compat.devtools.event import Event
from inspector.compat.devtools.frames import events_frame, metadata_frame
from inspector.compat.devtools.time_scale import TimeScale
from inspector.export.pandas_bridge import DataFrame, load_pandas


@dataclass(frozen=True, eq=False)
class EventBlock:
    """A pattern of execution: loading, or all runs with the same events.

    Each branch a program takes creates a separate block.

    Attributes:
        name: ``Default`` for loading, ``Execute`` for runs
        events: in the order in which their instructions ran
        source_time_scale: unit of the ticks of the trace
        target_time_scale: unit of the durations
        bundled_input_index: test case of a bundled program, -1 for none
        run_output: program outputs of the first run that logged any
        reference_output: recorded outputs of the test case, None when the record has none
        run_outputs: program outputs of every run
        method: method of the program it is a run of, None when unknown
    """

    name: str
    events: Sequence[Event] = field(default_factory=list[Event], repr=False)
    source_time_scale: TimeScale = TimeScale.NS
    target_time_scale: TimeScale = TimeScale.MS
    bundled_input_index: int | None = None
    run_output: Sequence[Any] | None = field(default=None, repr=False)
    reference_output: Sequence[Any] | None = field(default=None, repr=False)
    run_outputs: Sequence[Sequence[Any]] = field(default=(), repr=False)
    method: str | None = None

    @staticmethod
    def _gen_from_etdump(etdump: object, *scales_and_more: Any, **named: Any) -> list[EventBlock]:  # noqa: ANN401
        """Return the blocks of a trace that is an object of the stock package."""
        from inspector.compat.devtools.traces import event_blocks_of

        return event_blocks_of(etdump, *scales_and_more, **named)

    def _gen_resolve_debug_handles(self, handle_map: Any, *more: Any, **named: Any) -> None:  # noqa: ANN401
        """Give the events the debug handles that maps of a record name for their instructions."""
        from inspector.compat.devtools.traces import resolve_debug_handles

        resolve_debug_handles(self, handle_map, *more, **named)

    def to_dataframe(
        self, include_units: bool = False, include_delegate_debug_data: bool = False
    ) -> DataFrame:
        """Return one row per event.

        A row named OPERATOR_CALL is the kernel of the row before it and the cost of calling it.

        Args:
            include_units: name the unit in the headers of the time columns
            include_delegate_debug_data: add the metadata of backends, as separate columns
        """
        units = f" ({self.target_time_scale.value})" if include_units else ""
        frame = events_frame(self.name, self.events, units)
        extra = metadata_frame(self.events) if include_delegate_debug_data else None
        return frame if extra is None else load_pandas().concat([frame, extra], axis=1)
