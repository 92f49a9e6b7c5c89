"""The runs of a session as a Chrome trace: methods, operators, insides of delegates, nested.

Slices of one thread must nest; the inner events of a delegate therefore have a thread of their
own, because backends may report start times that do not lie inside the call.
"""

from __future__ import annotations

from typing import Any

from inspector.blocks import Block, trace_blocks
from inspector.links import link_block
from inspector.profile_rows import EXECUTE
from inspector.session import Session
from inspector.timing import is_time, scale_factor
from schema.etdump import EventKind, EventTable

_INNER, _OUTER = 1, 0


def chrome_trace(session: Session) -> dict[str, Any]:
    """Return the trace; one process a run, thread 0 the method, one thread a delegate's inside.

    Times are in microseconds from the start of the first run, as the format asks for; a trace
    that counts cycles keeps them and says so.
    """
    unit = session.options.source_time_scale
    scale = scale_factor(unit, "us") if is_time(unit) else 1.0
    events: list[dict[str, Any]] = []
    number = 0
    for block in trace_blocks(session.dumps).blocks:
        links = link_block(session, block)
        for run in range(len(block.runs)):
            title = f"{links.method or block.name} run {run}"
            events.append(_name("process_name", number, 0, title))
            events += _run(block, run, number, scale)
            number += 1
    events.sort(key=lambda event: event.get("ts", -1.0))
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "session": session.name,
            "unit": unit,
            "unit_assumed": session.options.time_scale_assumed,
            "inner_start_times": "as reported by the backend; XNNPACK makes them up",
        },
    }


def _name(kind: str, process: int, thread: int, text: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": text}}


def _run(block: Block, run: int, process: int, scale: float) -> list[dict[str, Any]]:
    table = block.runs[run]
    threads: dict[int, int] = {}
    events: list[dict[str, Any]] = [_name("thread_name", process, _OUTER, "method")]
    for row in range(len(table)):
        if table.kind[row] != EventKind.PROFILE:
            continue
        identifier = _identifier(table, row)
        thread = _OUTER
        step = int(table.instruction_id[row])
        if identifier is not None:
            if step not in threads:
                threads[step] = _INNER + len(threads)
                label = f"inside the delegate call of instruction {step}"
                events.append(_name("thread_name", process, threads[step], label))
            thread = threads[step]
        events.append(_slice(table, row, identifier, (process, thread), scale))
    return events


def _identifier(table: EventTable, row: int) -> str | None:
    if table.delegate_id_int[row] != -1:
        return str(int(table.delegate_id_int[row]))
    text = int(table.delegate_id_str[row])
    return table.strings[text] if text >= 0 and table.strings[text] else None


def _slice(
    table: EventTable, row: int, identifier: str | None, place: tuple[int, int], scale: float
) -> dict[str, Any]:
    start, end = int(table.start_time[row]), int(table.end_time[row])
    name = int(table.name[row])
    label = identifier or (table.strings[name] if name >= 0 else "")
    args: dict[str, Any] = {"start_ticks": start, "end_ticks": end}
    if table.chain_index[row] >= 0 and label not in EXECUTE:
        args["instruction"] = int(table.instruction_id[row])
    return {
        "ph": "X",
        "name": label or "unnamed",
        "cat": "delegate" if identifier is not None else "runtime",
        "pid": place[0],
        "tid": place[1],
        "ts": start / scale,
        "dur": max(end - start, 0) / scale,
        "args": args,
    }
