"""The runs of a session as a Chrome trace: methods, operators and events inside delegates, nested.

Slices of one thread must nest. The inner events of a delegate nest in their call if their times
lie inside it; otherwise they get a separate thread.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from inspector.files.session import Session
from inspector.graph.source import user_frame
from inspector.join.links import BlockLinks, Grade, link_block
from inspector.profile.methods import unit_assumed
from inspector.profile.timeline_runs import RunRange, timeline_runs
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import DELEGATE_CALL
from inspector.trace.timed_blocks import timed_blocks
from inspector.trace.timing import is_time, scale_factor
from schema.backends import BACKENDS
from schema.etdump import EventTable
from schema.graph import common_module

_METHOD = 0


def chrome_trace(session: Session, ranges: Sequence[RunRange] | None = None) -> dict[str, Any]:
    """Return the trace; one process per run, thread 0 the method.

    Args:
        session: with traces
        ranges: only these runs, and the events of which some part lies in them; None for all

    Units: microseconds from the earliest event of each trace file, as the format requires; a trace
        that counts cycles keeps them, with a note
    """
    unit = session.options.source_time_scale
    scale = scale_factor(unit, "us") if is_time(unit) else 1.0
    blocks = timed_blocks(session.timed_dumps).blocks
    starts = _starts(blocks)
    events: list[dict[str, Any]] = []
    process = 0
    labels = _labels(session)
    wanted = None if ranges is None else {(one.run.block, one.run.run): one for one in ranges}
    for number, block in enumerate(blocks):
        chosen = [
            run for run in range(len(block.runs)) if wanted is None or (number, run) in wanted
        ]
        if not chosen:
            continue
        links = link_block(session, block)
        facts = [_facts(links, block, event) for event in range(len(block))]
        for run in chosen:
            title = f"{links.method or block.name} {labels.get((number, run), f'run {run + 1}')}"
            events.append(_name("process_name", process, _METHOD, title))
            events.append(_name("thread_name", process, _METHOD, "method"))
            lanes = _Lanes(block, run, process)
            limits = None if wanted is None else wanted[number, run]
            events += _slices(block, run, lanes, facts, (starts[block.dump], scale), limits)
            events += lanes.names()
            process += 1
    # A slice that contains others comes first if both start together.
    events.sort(key=lambda event: (event.get("ts", -1.0), -event.get("dur", 0.0)))
    known = (one.name for one in BACKENDS.values() if one.start_times_synthesized)
    synthesized = ", ".join(known)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "session": session.name,
            "unit": unit,
            "unit_assumed": unit_assumed(session),
            "inner_start_times": f"as reported by the backend; {synthesized} synthesizes them",
        },
    }


def _labels(session: Session) -> dict[tuple[int, int], str]:
    """Return what the timeline calls each run, by block and run."""
    blocks = timed_blocks(session.timed_dumps).blocks
    methods = dict.fromkeys(link_block(session, block).method or "" for block in blocks)
    found = (one for method in methods for one in timeline_runs(session, method))
    return {(one.block, one.run): one.label for one in found if one.executes}


def _starts(blocks: tuple[Block, ...]) -> dict[int, int]:
    """Return the earliest tick of each trace file; clocks of several files are unrelated."""
    found: dict[int, int] = {}
    for block in blocks:
        for run, layout in zip(block.runs, block.layouts, strict=True):
            if len(layout.rows):
                first = int(run.start_time[layout.rows].min())
                found[block.dump] = min(found.get(block.dump, first), first)
    return {block.dump: found.get(block.dump, 0) for block in blocks}


def _name(kind: str, process: int, thread: int, text: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": text}}


def _facts(links: BlockLinks, block: Block, event: int) -> dict[str, Any]:
    """Return the facts of an event that hold in every run."""
    link = links.link(event)
    found: dict[str, Any] = {}
    if block.layout.chain[event] >= 0:
        found["instruction"] = block.instruction(event)
    if link.grade is not Grade.NONE:
        found["join"] = link.grade.value
    nodes = links.recorded(link)
    if nodes:
        found["op_types"] = ", ".join(dict.fromkeys(node.target for node in nodes))
        found["module"] = common_module(nodes)
        frame = user_frame(nodes[0].stack_trace)
        found |= {"source": frame.label} if frame is not None else {}
    if link.backend:
        found["backend"] = link.backend
    return found


class _Lanes:
    """Chooses the thread of each inner event of one run."""

    def __init__(self, block: Block, run: int, process: int) -> None:
        self.process = process
        self._strayed: dict[int, int] = {}
        self._nests = _nesting(block, run)

    def of(self, instruction: int) -> int:
        if self._nests.get(instruction, False):
            return _METHOD
        return self._strayed.setdefault(instruction, 1 + len(self._strayed))

    def names(self) -> list[dict[str, Any]]:
        return [
            _name("thread_name", self.process, lane, f"inside the call of instruction {number}")
            for number, lane in self._strayed.items()
        ]


def _nesting(block: Block, run: int) -> dict[int, bool]:
    """Return for each instruction with inner events whether all of them nest in its calls."""
    table, layout = block.runs[run], block.layouts[run]
    calls: dict[int, list[tuple[int, int]]] = {}
    inner: dict[int, list[tuple[int, int]]] = {}
    for row, event in zip(layout.rows.tolist(), layout.row_event.tolist(), strict=True):
        number = int(table.instruction_id[row])
        span = (int(table.start_time[row]), int(table.end_time[row]))
        if block.delegate_id(event) is not None:
            inner.setdefault(number, []).append(span)
        elif block.event_name(event) == DELEGATE_CALL:
            calls.setdefault(number, []).append(span)
    return {number: _fits(spans, calls.get(number, [])) for number, spans in inner.items()}


def _fits(spans: list[tuple[int, int]], calls: list[tuple[int, int]]) -> bool:
    """Return whether spans lie in calls and no two of them overlap partially."""
    order = [(*span, False) for span in spans] + [(*call, True) for call in calls]
    order.sort(key=lambda span: (span[0], -span[1], not span[2]))
    open_ends: list[int] = []
    for start, end, is_call in order:
        while open_ends and open_ends[-1] <= start:
            # An event without duration may be at the end of its call.
            if start == end == open_ends[-1] and len(open_ends) == 1:
                break
            open_ends.pop()
        outside = not open_ends and not is_call
        if end < start or outside or (open_ends and end > open_ends[-1]):
            return False
        open_ends.append(end)
    return True


def _slices(
    block: Block,
    run: int,
    lanes: _Lanes,
    facts: list[dict[str, Any]],
    clock: tuple[int, float],
    limits: RunRange | None,
) -> list[dict[str, Any]]:
    table, layout = block.runs[run], block.layouts[run]
    begin, scale = clock
    start = (table.start_time[layout.rows] - np.uint64(begin)).astype(np.float64) / scale
    found: list[dict[str, Any]] = []
    pairs = zip(layout.rows.tolist(), layout.row_event.tolist(), start.tolist(), strict=True)
    for row, event, at in pairs:
        if limits is not None and not _touches(table, row, limits):
            continue
        is_inner = block.delegate_id(event) is not None
        thread = lanes.of(int(table.instruction_id[row])) if is_inner else _METHOD
        found.append(
            {
                "ph": "X",
                "name": block.event_name(event) or "unnamed",
                "cat": "delegate" if is_inner else "runtime",
                "pid": lanes.process,
                "tid": thread,
                "ts": at,
                **_duration(table, row, scale),
                "args": {**facts[event], **_ticks(table, row)},
            }
        )
    return found


def _touches(table: EventTable, row: int, limits: RunRange) -> bool:
    """Return whether some part of an event lies in a range; an instant does at its begin."""
    start, end = int(table.start_time[row]), int(table.end_time[row])
    return start < limits.end and (end > limits.start or start >= limits.start)


def _duration(table: EventTable, row: int, scale: float) -> dict[str, float]:
    ticks = int(table.end_time[row]) - int(table.start_time[row])
    return {"dur": max(ticks, 0) / scale}


def _ticks(table: EventTable, row: int) -> dict[str, int]:
    return {"start_ticks": int(table.start_time[row]), "end_ticks": int(table.end_time[row])}


def trace_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    """Yield the file of a trace, one event per line."""
    yield '{"traceEvents": ['
    for number, event in enumerate(trace["traceEvents"]):
        yield f"{',' if number else ''}\n{_line(event)}"
    rest = _line({key: value for key, value in trace.items() if key != "traceEvents"})
    yield f"\n], {rest[1:]}\n"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
