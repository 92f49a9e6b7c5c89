"""memory: the plan of each method, its peak and the values there."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from inspector.cli.answer import Answer, Shown, shown
from inspector.cli.job_runs import add_timeout, count_or_none, finished
from inspector.cli.options import add_files, methods, needs, open_files
from inspector.cli.progress import Progress
from inspector.files.session import Session
from inspector.jobs.planning import ALIGNMENT, PlanJob, plans_of
from inspector.jobs.run import JobRun
from inspector.memory.measured import measured_memory
from inspector.memory.plan import Arena, MemoryPlan, PlannedValue, analyse_memory
from inspector.memory.replan import plan_figures
from inspector.numerics.value_sources import ValueSource, value_sources
from inspector.tables.memory import culprits, measured
from inspector.tables.planners import IN_FILE, planner_table
from inspector.tables.selection import AUTOMATIC
from schema.errors import Issue, Severity

Sources = Mapping[int, ValueSource]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    parser.add_argument(
        "--all", action="store_true", help="every value, not only those at the peak"
    )
    parser.add_argument(
        "--planners",
        action="store_true",
        help="place the values as each planner would, without a compile, and compare the plans",
    )
    parser.add_argument(
        "--alignment",
        type=count_or_none,
        default=ALIGNMENT,
        metavar="BYTES",
        help="of values with --planners; default: 16",
    )
    parser.add_argument(
        "--lent-io",
        action="store_true",
        help="with --planners, leave inputs and outputs to the caller's memory",
    )
    add_timeout(parser)


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
        _table(session, plan, arena, peak_only=not options.all)
        for plan in plans
        for arena in plan.arenas
    ]
    tables += [
        shown(measured(session, plan.method, AUTOMATIC), f"{plan.method}, as measured")
        for plan in plans
        if measured_memory(session, plan.method)
    ]
    others = {plan.method: _planned(session, plan, options) for plan in plans}
    tables += [
        shown(planner_table(plan, others[plan.method]), f"{plan.method}, by planner")
        for plan in plans
        if others[plan.method]
    ]
    lines = [line for plan in plans for line in _lines(plan)]
    data = {
        "methods": {
            plan.method: {
                **plan_json(plan, value_sources(session, plan.method)),
                "measured": [asdict(one) for one in measured_memory(session, plan.method)],
                **_planners_json(plan, others[plan.method]),
            }
            for plan in plans
        }
    }
    return Answer(data, lines=lines, tables=tables, issues=issues)


def _planned(session: Session, plan: MemoryPlan, options: Namespace) -> dict[str, MemoryPlan]:
    """Return the plan of each planner, made in a worker; empty unless requested."""
    if not options.planners:
        return {}
    path = next(file.path for file in session.files if file.kind in ("pte", "bpte"))
    job = PlanJob(path, plan.method, alignment=max(options.alignment, 1), lent=options.lent_io)
    running = JobRun(job, timeout=options.timeout)
    progress = Progress(sys.stderr, verbose=options.verbose)
    finished(running, progress, verbose=options.verbose)
    return plans_of(plan, running.result)


def _planners_json(plan: MemoryPlan, others: Mapping[str, MemoryPlan]) -> dict[str, Any]:
    if not others:
        return {}
    found = {IN_FILE: plan, **others}
    return {
        "planners": [
            {"planner": name, "mem_id": arena.mem_id, **asdict(plan_figures(arena))}
            for name, one in found.items()
            for arena in one.arenas
        ]
    }


def plan_json(plan: MemoryPlan, sources: Sources) -> dict[str, Any]:
    """Return the JSON of one method's plan."""
    return {
        "instruction_count": plan.instruction_count,
        "arenas": [arena_json(arena, sources) for arena in plan.arenas],
    }


def arena_json(arena: Arena, sources: Sources) -> dict[str, Any]:
    """Return the JSON of one planned buffer."""
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
    """Return the JSON of one planned value, named by the record if available."""
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
        f"method {plan.method}, planned buffer {arena.mem_id}: {arena.planned_bytes:,} B planned,"
        f" peak {arena.peak_bytes:,} B at instruction {arena.peak_instruction},"
        f" lower bound {arena.lower_bound_bytes:,} B"
        for arena in plan.arenas
    ]


def _table(session: Session, plan: MemoryPlan, arena: Arena, *, peak_only: bool) -> Shown:
    found = culprits(session, plan.method, arena, peak_only=peak_only)
    what = f"live at the peak, instruction {arena.peak_instruction}" if peak_only else "all values"
    title = f"{plan.method}, planned buffer {arena.mem_id}: {what}"
    return shown(found, title, total=peak_only)
