"""memory: the plan of each method, its peak, and who makes it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from inspector.cli.answer import Answer, Column, Table
from inspector.cli.options import add_files, methods, needs, open_files
from inspector.memory import Arena, MemoryPlan, PlannedValue, analyse_memory
from schema.errors import Issue, Severity


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
        table for plan in plans for arena in plan.arenas for table in _tables(plan, arena, options)
    ]
    lines = [line for plan in plans for line in _lines(plan)]
    data = {"methods": {plan.method: plan_json(plan) for plan in plans}}
    return Answer(data, lines=lines, tables=tables, issues=issues)


def plan_json(plan: MemoryPlan) -> dict[str, Any]:
    """Return the JSON of one method's plan."""
    return {
        "instruction_count": plan.instruction_count,
        "arenas": [arena_json(arena) for arena in plan.arenas],
    }


def arena_json(arena: Arena) -> dict[str, Any]:
    """Return the JSON of one arena."""
    return {
        "mem_id": arena.mem_id,
        "planned_bytes": arena.planned_bytes,
        "lower_bound_bytes": arena.lower_bound_bytes,
        "peak_bytes": arena.peak_bytes,
        "peak_instruction": arena.peak_instruction,
        "hole_bytes": arena.hole_bytes,
        "values": [value_json(value) for value in arena.values],
    }


def value_json(value: PlannedValue) -> dict[str, Any]:
    """Return the JSON of one planned value."""
    return {
        "name": value.name,
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


def _tables(plan: MemoryPlan, arena: Arena, options: Namespace) -> list[Table]:
    columns = (
        Column("value"),
        Column("bytes", "bytes"),
        Column("offset", "count"),
        Column("first", "count"),
        Column("last", "count"),
        Column("dtype"),
        Column("shape"),
        Column("role"),
        Column("made by"),
    )
    shown = arena.values if options.all else arena.at_peak()
    what = (
        "all values" if options.all else f"alive at the peak, instruction {arena.peak_instruction}"
    )
    rows = [
        (
            value.name,
            value.nbytes,
            value.offset,
            value.first,
            value.last,
            value.scalar_type,
            str(list(value.sizes)),
            value.role,
            f"{value.made_by} {value.operator}" if value.made_by is not None else "",
        )
        for value in shown
    ]
    return [Table(f"{plan.method}, arena {arena.mem_id}: {what}", columns, rows)]
