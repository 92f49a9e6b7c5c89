"""memory: the plan of each method, its peak, and who makes it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from inspector.cli.answer import Answer, Column, Table
from inspector.cli.options import add_files, methods, needs, open_files
from inspector.join.value_sources import ValueSource, value_sources
from inspector.memory.plan import Arena, MemoryPlan, PlannedValue, analyse_memory
from schema.errors import Issue, Severity

_MOST_NAMED = 16  # values on the same bytes
Sources = Mapping[int, ValueSource]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    parser.add_argument(
        "--all", action="store_true", help="every value, not only those at the peak"
    )


def run(options: Namespace) -> Answer:
    """Return the arenas of every method."""
    session = open_files(options)
    program = session.program
    if program is None:
        issue = Issue(Severity.INFO, session.name, needs("the memory plan", "a program (.pte)"))
        return Answer({"methods": {}}, issues=(issue,))
    plans = [analyse_memory(program, method) for method in methods(session, options)]
    issues = [issue for plan in plans for issue in plan.issues]
    tables = [
        table
        for plan in plans
        for arena in plan.arenas
        for table in _tables(plan, arena, value_sources(session, plan.method), options)
    ]
    lines = [line for plan in plans for line in _lines(plan)]
    data = {
        "methods": {
            plan.method: plan_json(plan, value_sources(session, plan.method)) for plan in plans
        }
    }
    return Answer(data, lines=lines, tables=tables, issues=issues)


def plan_json(plan: MemoryPlan, sources: Sources) -> dict[str, Any]:
    """Return the JSON of one method's plan."""
    return {
        "instruction_count": plan.instruction_count,
        "arenas": [arena_json(arena, sources) for arena in plan.arenas],
    }


def arena_json(arena: Arena, sources: Sources) -> dict[str, Any]:
    """Return the JSON of one arena."""
    return {
        "mem_id": arena.mem_id,
        "planned_bytes": arena.planned_bytes,
        "lower_bound_bytes": arena.lower_bound_bytes,
        "peak_bytes": arena.peak_bytes,
        "peak_instruction": arena.peak_instruction,
        "hole_bytes": arena.hole_bytes,
        "values": [value_json(value, sources) for value in arena.values],
    }


def value_json(value: PlannedValue, sources: Sources) -> dict[str, Any]:
    """Return the JSON of one planned value, named by the record where there is one."""
    source = sources.get(value.value)
    return {
        "name": source.name if source is not None else value.name,
        "module": source.module if source is not None else None,
        "source": source.source or None if source is not None else None,
        "bytes": value.nbytes,
        "offset": value.offset,
        "first": value.first,
        "last": value.last,
        "value": value.value,
        "dtype": value.scalar_type,
        "sizes": list(value.sizes),
        "role": value.role,
        "made_by": value.made_by,
        "operator": value.operator or None,
        "storage": value.storage,
        "peak_bytes": value.peak_bytes,
        "shares_with": list(value.shares_with),
    }


def _lines(plan: MemoryPlan) -> list[str]:
    if not plan.arenas:
        return [f"method {plan.method}: nothing is planned"]
    return [
        f"method {plan.method}, arena {arena.mem_id}: {arena.planned_bytes:,} B planned,"
        f" peak {arena.peak_bytes:,} B at instruction {arena.peak_instruction},"
        f" lower bound {arena.lower_bound_bytes:,} B"
        for arena in plan.arenas
    ]


def _tables(plan: MemoryPlan, arena: Arena, sources: Sources, options: Namespace) -> list[Table]:
    columns = (
        Column("value"),
        Column("bytes" if options.all else "at peak", "bytes"),
        Column("shares with", spare=5),
        Column("offset", "count"),
        Column("first", "count"),
        Column("last", "count"),
        Column("dtype", spare=3),
        Column("shape", spare=4),
        Column("role", spare=2),
        Column("made by"),
        Column("source", spare=1),
    )
    shown = arena.values if options.all else arena.at_peak()
    sharers = _sharers(arena.values, sources) if options.all else {}
    what = (
        "all values" if options.all else f"alive at the peak, instruction {arena.peak_instruction}"
    )
    rows = [
        (
            value_text(value, sources),
            value.nbytes if options.all else value.peak_bytes,
            sharers.get(value.value, "") if options.all else _names(value.shares_with, sources),
            value.offset,
            value.first if value.first >= 0 else None,
            value.last if value.last >= 0 else None,
            value.scalar_type,
            str(list(value.sizes)),
            value.role,
            f"{value.made_by} {value.operator}" if value.made_by is not None else "",
            sources[value.value].source if value.value in sources else "",
        )
        for value in shown
    ]
    total = None if options.all or not rows else ("", arena.peak_bytes, *[None] * 9)
    return [Table(f"{plan.method}, arena {arena.mem_id}: {what}", columns, rows, total)]


def value_text(value: PlannedValue, sources: Sources) -> str:
    """Return what the record calls a value, as in ``v20`` where none says."""
    return number_text(value.value, sources) if value.value in sources else value.name


def number_text(value: int, sources: Sources) -> str:
    """Return what the record calls a value by its number."""
    return sources[value].name if value in sources else f"v{value}"


def _sharers(values: Sequence[PlannedValue], sources: Sources) -> dict[int, str]:
    """Return by value which others have bytes in common with it at some time."""
    groups: dict[int, list[int]] = {}
    for value in values:
        groups.setdefault(value.storage, []).append(value.value)
    return {
        value.value: _names([one for one in groups[value.storage] if one != value.value], sources)
        for value in values
        if 1 < len(groups[value.storage]) <= _MOST_NAMED
    }


def _names(values: Sequence[int], sources: Sources) -> str:
    return ", ".join(number_text(value, sources) for value in values)
