"""Tables that a worker process computes, since torch or the planners of the compiler are needed."""

from __future__ import annotations

from typing import Any

from inspector.files.session import Session
from inspector.jobs.gap import GapJob
from inspector.jobs.messages import Ended
from inspector.jobs.planning import PlanJob, plans_of
from inspector.jobs.run import JobRun
from inspector.numerics.report import GapReport
from inspector.tables.memory import memory_plan
from inspector.tables.numeric_gap import call_gap_table, gap_table
from inspector.tables.planners import planner_table
from inspector.tables.query import QueryError
from inspector.tables.selection import Units
from inspector.tables.table import Table


def planners(session: Session, method: str, units: Units) -> Table:
    """Return the memory plan of a method, and those that other planners make of its values.

    Raises: QueryError without a program, or if the worker fails
    """
    plan = memory_plan(session, method)
    if plan is None:
        raise QueryError("the memory plan needs a program")
    path = next(file.path for file in session.files if file.kind in ("pte", "bpte"))
    return planner_table(plan, plans_of(plan, _finished(PlanJob(path, method)).result), units)


def gap(session: Session, method: str, _units: Units) -> Table:
    """Return the numeric gap of each output in the first run of a method, or its first call.

    Raises: QueryError without a program and a trace, or if the worker fails
    """
    runs = _runs(session, method)
    return gap_table(runs[0].rows if runs else ())


def call_gaps(session: Session, method: str, _units: Units) -> Table:
    """Return the numeric gap of each call of a sequence.

    Raises: QueryError without a program and a trace, or if the worker fails
    """
    return call_gap_table([one for one in _runs(session, method) if one.call >= 0])


def _runs(session: Session, method: str) -> list[Any]:
    if session.program is None or not session.dumps:
        raise QueryError("the numeric gap needs a program and the trace of a run that logs values")
    files = tuple(file.path for file in session.files if not file.error)
    report = _finished(GapJob(files, method)).state or GapReport()
    if not report.runs:
        raise QueryError("; ".join(report.notes) or "nothing was compared")
    return [one for one in report.runs if one.run == 0]


def _finished(job: object) -> JobRun:
    """Return a job that has ended.

    Raises: QueryError if it did not finish
    """
    running = JobRun(job)
    try:
        outcome = running.wait()
    finally:
        running.close()
    if outcome is None or outcome.ended is not Ended.FINISHED:
        raise QueryError("cancelled" if outcome is None else outcome.sentence)
    return running
