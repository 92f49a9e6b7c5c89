"""The flame: mean time by module and operator, widths add up; it has no clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import NOT_DELEGATED, PLAIN, backend_index
from devtools_app.viewmodels.canvas_data import LegendEntry, Swatch, TimelineData, TimelineLane
from devtools_app.viewmodels.timeline import Timeline
from devtools_app.viewmodels.timeline_events import UNKNOWN_DELEGATE
from inspector.files.session import Session
from inspector.profile.attribution import attribution, steady_set
from inspector.profile.node_times import run_count
from inspector.profile.operator_columns import UNATTRIBUTED
from inspector.profile.operator_rows import OperatorRow, operator_rows
from inspector.profile.timeline_runs import timeline_runs
from inspector.trace.blocks import Block
from inspector.trace.timed_blocks import timed_blocks
from inspector.trace.timing import is_time
from inspector.units import Quantity
from schema.backends import short_backend

Step = tuple[str, int]  # name, colour


class _Bars:
    """Bars of the flame: a bar is emitted when the path leaves it."""

    def __init__(self) -> None:
        self.lane: list[int] = []
        self.start: list[float] = []
        self.end: list[float] = []
        self.colour: list[int] = []
        self.label: list[int] = []
        self.rows: list[int] = []
        self.rest: list[bool] = []
        self.names: dict[str, int] = {}
        self._open: list[tuple[Step, float]] = []
        self.at = 0.0

    def take(self, path: Sequence[Step], width: float, row: int, *, rest: bool) -> None:
        """Add a leaf below the bars of its path; bars shared with the previous one continue."""
        *outer, leaf = path
        shared = 0
        while shared < min(len(outer), len(self._open)) and self._open[shared][0] == outer[shared]:
            shared += 1
        self._close(shared)
        self._open += [(step, self.at) for step in outer[shared:]]
        self._bar(len(outer), leaf, (self.at, self.at + width), row, rest=rest)
        self.at += width

    def finish(self) -> None:
        """Emit the bars that are still open."""
        self._close(0)

    def _close(self, depth: int) -> None:
        while len(self._open) > depth:
            step, start = self._open.pop()
            self._bar(len(self._open), step, (start, self.at), -1, rest=False)

    def _bar(
        self, lane: int, step: Step, span: tuple[float, float], row: int, *, rest: bool
    ) -> None:
        self.lane.append(lane)
        self.start.append(span[0])
        self.end.append(span[1])
        self.colour.append(step[1])
        self.label.append(self.names.setdefault(step[0], len(self.names)))
        self.rows.append(row)
        self.rest.append(rest)


def has_flame(session: Session, method: str) -> bool:
    """Return whether any time was measured, without building the flame."""
    if not is_time(session.options.source_time_scale):
        return False
    blocks = timed_blocks(session.timed_dumps).blocks
    runs = {run.block for run in timeline_runs(session, method) if run.executes}
    if any(_takes_time(blocks[number]) for number in runs):
        return True  # most traces: their operators are not needed for it
    return any(
        bool((np.nansum(part.samples[part.timed], axis=1) > 0).any())
        for part in operator_rows(session, method).parts
    )


def _takes_time(block: Block) -> bool:
    parts, steady = attribution(block), steady_set(block)
    return bool(np.nansum(block.total[steady][:, parts.whole | parts.calls]) > 0)


def flame(session: Session, method: str) -> tuple[TimelineData, NDArray[np.int64]]:
    """Return the bars of a method, and the profile row of each, -1 for sums and rests."""
    bars = _Bars()
    rows = [row for row in operator_rows(session, method) if row.samples_ns is not None]
    runs = max(run_count(session, method), 1)
    for row in sorted(rows, key=_by_module(rows)):
        samples = row.samples_ns
        width = float(np.nansum(samples[row.steady])) / runs if samples is not None else 0.0
        if width > 0:
            rest = row.kind in ("rest", UNATTRIBUTED)
            bars.take(
                _path(method, row), width, row.event if row.event is not None else -1, rest=rest
            )
    bars.finish()
    order = np.lexsort((bars.start, bars.lane))
    deepest = max(bars.lane, default=-1)
    data = TimelineData(
        lanes=tuple(
            TimelineLane("" if depth else "method", "", depth) for depth in range(deepest + 1)
        ),
        lane=np.array(bars.lane, np.int64)[order],
        start=np.array(bars.start, np.float64)[order],
        end=np.array(bars.end, np.float64)[order],
        colour=np.array(bars.colour, np.int64)[order],
        label=np.array(bars.label, np.int64)[order],
        names=tuple(bars.names),
        unattributed=np.array(bars.rest, np.bool_)[order],
        quantity=Quantity.TIME,
        logged=session.times_with_values,
    )
    return data, np.array(bars.rows, np.int64)[order]


def _path(method: str, row: OperatorRow) -> list[Step]:
    colour = _colour(row)
    path: list[Step] = [(method or "method", PLAIN)]
    if row.kind == UNATTRIBUTED:
        return [*path, (row.label, PLAIN)]
    path += [(call, colour) for call in _call(row)]
    parts = row.module.split(".") if row.module else []
    path += [(part, PLAIN) for part in parts]
    return [*path, (row.label, colour)]


def _colour(row: OperatorRow) -> int:
    if row.link.backend:
        return backend_index(row.link.backend)
    return UNKNOWN_DELEGATE if row.in_delegate else NOT_DELEGATED


def _call(row: OperatorRow) -> tuple[str, ...]:
    """Return the bar of the delegate call around a row; a trace alone knows no backend."""
    if row.delegate:
        return (row.delegate,)
    return (f"delegate call {row.instruction}",) if row.kind in ("inner", "rest") else ()


def _by_module(rows: Sequence[OperatorRow]) -> Callable[[OperatorRow], tuple[int, ...]]:
    first: dict[tuple[str, ...], int] = {}
    for place, row in enumerate(rows):
        parts = _parts(row)
        for end in range(1, len(parts) + 1):
            first.setdefault(parts[:end], place)
    last = len(rows)

    def key(row: OperatorRow) -> tuple[int, ...]:
        if row.kind == UNATTRIBUTED:
            return (last,)
        parts = _parts(row)
        return tuple(first[parts[:end]] for end in range(1, len(parts) + 1))

    return key


def _parts(row: OperatorRow) -> tuple[str, ...]:
    modules = tuple(row.module.split(".")) if row.module else ()
    unique = "" if row.event is None else str(row.event)
    return (*_call(row), *modules, f"event {unique}")


def flame_timeline(session: Session, method: str) -> Timeline | None:
    """Return the flame with its legend, None when no time was measured."""
    data, rows = flame(session, method)
    if not len(data.lane):
        return None
    owners = {
        backend_index(link.backend): short_backend(link.backend)
        for part in operator_rows(session, method).parts
        for link in part.links
        if link.backend
    }
    legend = [LegendEntry(name, Swatch.FILL, colour) for colour, name in owners.items()]
    if bool((data.colour == UNKNOWN_DELEGATE).any()):
        legend.append(LegendEntry("delegate, backend unknown", Swatch.FILL, UNKNOWN_DELEGATE))
    if bool((data.colour == NOT_DELEGATED).any()):
        legend.append(LegendEntry("not delegated", Swatch.FILL, NOT_DELEGATED))
    legend.append(LegendEntry("modules", Swatch.FILL, PLAIN))
    if data.unattributed.any():
        legend.append(LegendEntry("unattributed", Swatch.HATCH))
    note = "mean over the steady runs · widths are time, order is that of the program"
    return Timeline(data, rows, tuple(legend), note)
