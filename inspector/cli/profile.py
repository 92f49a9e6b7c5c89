"""profile: times by event, with consistent totals."""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from inspector.cli.answer import Answer, Lazy, Shown, shown
from inspector.cli.options import add_files, needs, open_files
from inspector.files.session import Session
from inspector.graph.source import find_source, user_frame
from inspector.profile.methods import (
    LOGGING,
    TRACING,
    MethodTime,
    Profile,
    analyse_profile,
)
from inspector.profile.rows import ProfileRow
from inspector.tables.events import all_events
from inspector.tables.query import Selected
from inspector.tables.selection import AUTOMATIC
from inspector.tables.table import Table
from inspector.trace.event_kinds import OPERATOR_CALL
from inspector.trace.run_times import statistics_json, steady_words
from inspector.units import NS_PER_MS, Quantity, choose_unit, format_ms
from schema.errors import Issue, Severity

_HIDDEN = (OPERATOR_CALL,)
_MOST_NODES = 64  # that share a handle; a recurrent layer of many steps has thousands in each row


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    parser.add_argument(
        "--all", action="store_true", help="also list OPERATOR_CALL, which contains its kernel"
    )
    parser.add_argument("--top", type=int, metavar="N", help="only the N slowest")


def run(options: Namespace) -> Answer:
    """Return one row per event and the totals of each method."""
    session = open_files(options)
    profile = analyse_profile(session)
    if not session.dumps:
        issue = Issue(Severity.INFO, session.name, needs("a profile", "an ETDump (run.etdp)"))
        return Answer({"rows": [], "totals": _totals(())}, issues=(issue,))
    indices = _indices(profile, options.method)

    def one(index: int) -> dict[str, Any]:
        return row_json(profile.rows[index], session)

    times = tuple(time for time in profile.methods if options.method in (None, time.method, ""))
    data: dict[str, Any] = {
        "rows": Lazy(indices, one),
        "totals": _totals(times),
        "methods": {_name(time): method_json(time) for time in times},
        "unit": {"source": profile.unit, "assumed": profile.unit_assumed},
        "values_logged": profile.values_logged,
    }
    return Answer(
        data, lines=_lines(profile, times), tables=(_table(session, profile, indices, options),)
    )


def _indices(profile: Profile, method: str | None) -> Sequence[int]:
    """Return the rows of the blocks that may have run a method, all when none is given."""
    found: list[int] = []
    start = 0
    for source in profile.rows.sources:
        if method is None or source.links.method in (method, None):
            found += range(start, start + len(source))
        start += len(source)
    return found


def _slowest(profile: Profile, indices: Sequence[int], count: int) -> list[int]:
    """Return the rows with the longest time a run; only the columns are sorted."""
    times = profile.rows.column("total")
    return sorted(indices, key=lambda index: -_or_zero(float(times[index])))[: max(count, 0)]


def _or_zero(time: float) -> float:
    return 0.0 if math.isnan(time) else time


def row_json(row: ProfileRow, session: Session) -> dict[str, Any]:
    """Return the JSON of one event."""
    frame = next(filter(None, map(user_frame, row.stack_traces.values())), None)
    found = find_source(frame.file, session) if frame is not None else None
    stats = row.statistics
    timed = row.raw_ms is not None and stats is not None
    nodes = _shown_nodes(row)
    whole = len(nodes) == len(row.stack_traces)
    values = (stats.avg, stats.p10, stats.p50, stats.p90, stats.min, stats.max) if stats else ()
    names = ("avg_ms", "p10_ms", "p50_ms", "p90_ms", "min_ms", "max_ms")
    return {
        "event_name": row.event_name,
        "block": row.block_name,
        "op_types": list(row.op_types if whole else dict.fromkeys(row.op_types)),
        "instruction_id": row.instruction_id,
        "delegate_debug_id": row.delegate_debug_id,
        "is_delegated_op": row.is_delegated_op,
        "delegate_backend_name": row.delegate_backend_name or None,
        "link": row.link.grade.value,
        "raw_ms": row.raw_ms.tolist() if row.raw_ms is not None else None,
        **dict(zip(names, values if timed else [None] * 6, strict=True)),
        "share": row.share,
        "stack_traces": {name: row.stack_traces[name] for name in nodes},
        "module_hierarchy": {name: row.module_hierarchy[name] for name in nodes},
        "nodes_left_out": len(row.stack_traces) - len(nodes),
        "raw_ticks": row.raw_ticks.tolist() if stats is not None else None,
        "occurrences": row.occurrences,
        "total_ms": row.total_ms,
        "debug_handles": list(row.link.handles),
        "node": row.link.node or None,
        "payload_nodes": list(row.link.payload_nodes),
        "delegate_index": row.link.delegate,
        "block_index": row.block,
        "source": frame.label if frame is not None else None,
        "source_file": str(found) if found is not None else None,
    }


def _shown_nodes(row: ProfileRow) -> list[str]:
    """Return the nodes of an event; of many, its own node and one for each source line."""
    nodes = list(row.stack_traces)
    if len(nodes) <= _MOST_NODES:
        return nodes
    places = {(row.stack_traces[name], row.module_hierarchy[name]): name for name in nodes[::-1]}
    kept = {*list(places.values())[-_MOST_NODES:], row.link.node}
    return [name for name in nodes if name in kept]


def method_json(time: MethodTime) -> dict[str, Any]:
    """Return the JSON of a method's time; the parts add up to method_ms."""
    return {
        "runs": time.runs,
        "steady_runs": len(time.traced.steady),
        "latency_ms": time.latency_ms,
        "latency": statistics_json(time.headline),
        "method_ms": time.method_ms,
        "attributed_ms": time.attributed_ms,
        "unattributed_ms": time.unattributed_ms,
        "delegates_ms": time.delegates_ms,
        "operators_ms": time.operators_ms,
        "control_ms": time.control_ms,
        "kernels_ms": time.kernels_ms,
        "framework_ms": time.operators_ms - time.kernels_ms,
        "emulated": time.emulated,
        "origins": {origin.value: spent for origin, spent in time.origins.items()},
        "bare_ms": time.bare_ms,
        "bare_runs": 0 if time.bare is None else len(time.bare.steady),
        "tracing_ms": time.tracing_ms,
    }


def _name(time: MethodTime) -> str:
    return time.method or (f"unknown, {time.label}" if time.label else "unknown")


def _totals(times: tuple[MethodTime, ...]) -> dict[str, float | None]:
    if not times:
        names = ("latency_ms", "method_ms", "attributed_ms", "unattributed_ms")
        return dict.fromkeys(names)
    return {
        "latency_ms": sum(time.latency_ms for time in times),
        "method_ms": sum(time.method_ms for time in times),
        "attributed_ms": sum(time.attributed_ms for time in times),
        "unattributed_ms": sum(time.unattributed_ms for time in times),
    }


def _lines(profile: Profile, times: tuple[MethodTime, ...]) -> list[str]:
    lines: list[str] = []
    for time in times:
        if time.bare is not None:
            runs = steady_words(time.bare)
            shown = format_ms(time.bare.mean)
            lines.append(f"{time.title}: {shown} mean of {runs} without a trace")
        unit = choose_unit(Quantity.TIME, time.method_ms * NS_PER_MS).symbol  # one, as they add up
        there = [(word, ms) for word, ms in time.parts if ms] or time.parts[-1:]
        parts = " + ".join(f"{word} {format_ms(ms, unit)}" for word, ms in there)
        total = format_ms(time.method_ms, unit)
        what = LOGGING if time.logged else TRACING
        lines.append(
            f"{time.title}: with {what}, {total} mean of {steady_words(time.traced)} = {parts}"
        )
        noise = "" if profile.values_logged else time.headline.noise_words()  # logging is the cause
        if noise:
            lines.append(f"{time.title}: {noise}")
        if time.origin_words:
            lines.append(f"{time.title}: {time.origin_words}")
    if profile.values_logged and times:
        lines.append(profile.values_warning[:1].lower() + profile.values_warning[1:])
    if profile.unit_is_time and profile.unit_assumed:
        lines.append(f"ticks are assumed to be {profile.unit} (assumed; see --source-time-scale)")
    if not profile.unit_is_time:
        lines.append(f"ticks are {profile.unit}, not time: they are shown as they are")
    return lines


def _table(session: Session, profile: Profile, indices: Sequence[int], options: Namespace) -> Shown:
    if options.format == "json":
        return shown(Table())
    listed = indices if options.all else [i for i in indices if not _is_hidden(profile, i)]
    if options.top is not None:
        listed = _slowest(profile, listed, options.top)
    found = all_events(session, options.method or "", AUTOMATIC).table
    return Shown("", Selected(found, np.array(listed, np.int64)))


def _is_hidden(profile: Profile, index: int) -> bool:
    source, event = profile.rows.place(index)
    return source.block.event_name(event) in _HIDDEN
