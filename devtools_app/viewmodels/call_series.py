"""The calls of a sequence or a generated text: tables, series to plot, and their events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.files.run_calls import GENERATION
from inspector.files.run_report import REPORT, is_sequence
from inspector.files.session import Session
from inspector.join.links import link_block
from inspector.join.methods import is_execution
from inspector.tables.calls import CallReport, read_calls, sequence_report
from inspector.tables.generation import growth_line, later_calls
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import Units
from inspector.tables.table import Table
from inspector.trace.event_kinds import whole_runs
from inspector.trace.timed_blocks import timed_blocks
from inspector.units import NS_PER_MS
from schema.errors import FormatError
from schema.objects.plural import plural

ALL_STATE = "all"
GENERATED = "generated"  # in the place of a path: what the window has generated
_HERE = "text generated here"
_SAME_INPUTS = "The run has no calls of a sequence: each run had the same inputs."
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LaterCalls:
    """Times of the calls behind the prompt or the first call.

    Shapes: all [calls]

    Units: ns

    Attributes:
        numbers: of the calls
        positions: of their tokens; their number where inputs are not tokens
        times: of the calls
        line: of the times: at position 0, and by each position; None for fewer than two
        has_tokens: whether the inputs are tokens
    """

    numbers: Ints
    positions: Ints
    times: Floats
    line: tuple[float, float] | None
    has_tokens: bool


@dataclass(frozen=True, slots=True, eq=False)
class StateSeries:
    """Bytes of a state tensor, or of all of them, over the calls.

    Shapes: numbers, changed, used [calls]

    Attributes:
        name: of the tensor, ``ALL_STATE`` for all
        numbers: of the calls
        changed: bytes that each call changed
        used: bytes that differ from those after loading
        capacity: bytes of the tensor
    """

    name: str
    numbers: Ints
    changed: Floats
    used: Floats
    capacity: int


@dataclass(frozen=True, slots=True)
class CallEvents:
    """The events of a call in the profile.

    Attributes:
        call: its number
        whole: row of the whole call
        rows: of all its events
        method: that it ran, empty where that is unknown
    """

    call: int
    whole: int
    rows: range
    method: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CallContent:
    """The content of the view of calls.

    Attributes:
        sources: title and path of each report that belongs to the session
        source: path of the one shown
        headline: in one line
        calls: row per call
        times: row per time
        state: row per call and state tensor, None without state
        later: times to plot
        series: of all state, then of each tensor; empty where no state was observed
        events: of each call in the trace
        error: why the report cannot be read, empty if it can
    """

    sources: tuple[tuple[str, str], ...]
    source: str
    headline: str = ""
    calls: RowOrder | None = None
    times: Table | None = None
    state: RowOrder | None = None
    later: LaterCalls | None = None
    series: tuple[StateSeries, ...] = ()
    events: tuple[CallEvents, ...] = ()
    error: str = ""

    def events_of(self, call: int) -> CallEvents | None:
        """Return the events of a call, None without a trace of it."""
        return next((one for one in self.events if one.call == call), None)

    def call_of(self, row: int) -> int | None:
        """Return the call that a row of the profile belongs to, None if to no call."""
        return next((one.call for one in self.events if row in one.rows), None)


def call_content(
    session: Session, path: str, units: Units, generated: Mapping[str, Any] | None = None
) -> CallContent | None:
    """Return the calls of a session, None where it has no report of calls.

    Args:
        session: with traces of a sequence, or with the report of a text beside its files
        path: of the report to show, ``GENERATED`` for that of the window; if empty that of the
            session's first trace, of the window, or of a text beside the files
        units: of times and sizes
        generated: report of the text that the window has generated with the session's program
    """
    found = _reports(session)
    named = {one: dump for _, one, dump in found}
    sources = tuple((title, one) for title, one, _ in found)
    if generated is not None:
        sources = ((_HERE, GENERATED), *sources)
    elif path == GENERATED:
        path = ""
    if path and path not in named and path != GENERATED:
        sources = (*sources, (_title(Path(path)), path))
    traced = [one for _, one, dump in found if dump is not None]
    here = [] if generated is None else [GENERATED]
    source = path or next(iter([*traced, *here, *named]), "")
    if not source:
        return None
    try:
        if generated is not None and source == GENERATED:
            made = CallReport(Path(GENERATED), generated, generated=True)
            return _content(session, sources, made, None, units)
        return read_calls(
            Path(source),
            lambda report: _content(session, sources, report, named.get(source), units),
        )
    except (FormatError, OSError) as error:
        return CallContent(sources, source, error=str(error))


def _reports(session: Session) -> list[tuple[str, str, int | None]]:
    """Return title, path and trace of each report of calls."""
    found: dict[str, tuple[str, int | None]] = {}
    for number, dump in enumerate(session.timed_dumps):
        if is_sequence(dump):
            path = Path(dump.file).with_name(REPORT)
            found.setdefault(str(path), (_title(path), number))
    for folder in dict.fromkeys(Path(file.path).parent for file in session.files):
        path = folder / GENERATION
        if path.is_file():
            found.setdefault(str(path), (_title(path), None))
    return [(title, path, dump) for path, (title, dump) in found.items()]


def _title(path: Path) -> str:
    return str(Path(*path.parts[-2:]))


def _content(
    session: Session,
    sources: tuple[tuple[str, str], ...],
    report: CallReport,
    dump: int | None,
    units: Units,
) -> CallContent:
    if not report.calls:
        return CallContent(sources, str(report.path), error=_SAME_INPUTS)
    series = _state_series(report)
    events = () if dump is None else _events(session, dump)
    later = _later(report)
    return CallContent(
        sources,
        str(report.path),
        _headline(report, traced=bool(events)),
        RowOrder(report.calls_table(units)).prepare(),
        report.times_table(units),
        RowOrder(report.state_table(units)).prepare() if series else None,
        later,
        series,
        events,
    )


def _headline(report: CallReport, *, traced: bool) -> str:
    count = len(report.calls)
    words = [plural(count, "call")]
    if report.generated:
        words.append(f"{len(report.content['tokens']):,} new tokens")
    if not traced:
        words.append("without a trace")
    return " · ".join(words)


def _later(report: CallReport) -> LaterCalls:
    calls = report.calls
    later = later_calls(calls)
    chosen = {id(one) for one in later}
    numbers = [place for place, one in enumerate(calls) if id(one) in chosen]
    if not report.generated:
        known = [one["call"] for one in report.content["calls"]]
        numbers = [known[place] for place in numbers]
    line = growth_line(calls)
    return LaterCalls(
        np.array(numbers, np.int64),
        np.array([one["position"] for one in later], np.int64),
        np.array([one["ms"] for one in later], np.float64) * NS_PER_MS,
        None if line is None else (line[0] * NS_PER_MS, line[1] * NS_PER_MS),
        report.has_tokens,
    )


def _state_series(report: CallReport) -> tuple[StateSeries, ...]:
    """Return the series of all state and of each tensor; of one tensor only its own."""
    tensors = report.content.get("state") or ()
    calls = [one for one in report.content.get("calls") or () if one.get("state")]
    if not tensors or not calls:
        return ()
    numbers = np.array([one["call"] for one in calls], np.int64)
    changed, used = (_state_bytes(calls, name, len(tensors)) for name in ("changed", "used"))
    each = tuple(
        StateSeries(str(one["name"]), numbers, changed[:, place], used[:, place], int(one["bytes"]))
        for place, one in enumerate(tensors)
    )
    if len(each) == 1:
        return each
    total = sum(one.capacity for one in each)
    return (StateSeries(ALL_STATE, numbers, changed.sum(1), used.sum(1), total), *each)


def state_over_calls(session: Session, method: str) -> StateSeries | None:
    """Return the bytes of all state over the calls of a sequence, None where none was observed."""
    report = sequence_report(session, method)
    calls = [] if report is None else [one for one in report.calls if one.state]
    if report is None or not calls:
        return None
    return StateSeries(
        report.state[0].name if len(report.state) == 1 else ALL_STATE,
        np.array([one.call for one in calls], np.int64),
        np.array([one.changed_bytes for one in calls], np.float64),
        np.array([one.used_bytes for one in calls], np.float64),
        sum(one.bytes for one in report.state),
    )


def _state_bytes(calls: Sequence[Mapping[str, Any]], name: str, count: int) -> Floats:
    """Return the bytes of each state tensor at each call.

    Shapes: result [calls, count]

    Raises: ValueError for a call with another number of tensors
    """
    found = np.zeros((len(calls), count))
    for place, one in enumerate(calls):
        found[place] = [each[name] for each in one["state"]]
    return found


def _events(session: Session, dump: int) -> tuple[CallEvents, ...]:
    """Return the events of each call in a trace of a session."""
    found: list[CallEvents] = []
    first = 0
    for block in timed_blocks(session.timed_dumps).blocks:
        call = block.bundled_input_index
        if block.dump == dump and call >= 0 and is_execution(block):
            whole = np.flatnonzero(whole_runs(block))
            at = first + (int(whole[0]) if len(whole) else 0)
            method = link_block(session, block).method or block.ran
            found.append(CallEvents(call, at, range(first, first + len(block)), method))
        first += len(block)
    return tuple(found)


def described(series: StateSeries) -> str:
    """Return the title of a series."""
    return "all state" if series.name == ALL_STATE else series.name
