"""Tables that a worker process computes, since torch or the planners of the compiler are needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspector.files.session import Session
from inspector.jobs.backend_plan import BackendPlanJob
from inspector.jobs.executing import StepJob, VerifyJob
from inspector.jobs.gap import GapJob
from inspector.jobs.planning import PlanJob, plans_of
from inspector.jobs.run import finished
from inspector.numerics.report import FLOAT, GapReport
from inspector.recipes.recipe import RecipeError
from inspector.recipes.session_recipe import session_recipe
from inspector.tables.backends import plan_table
from inspector.tables.layer_losses import loss_table
from inspector.tables.memory import memory_plan
from inspector.tables.numeric_gap import call_gap_table, gap_table
from inspector.tables.planners import planner_table
from inspector.tables.query import QueryError
from inspector.tables.runs import cases_table
from inspector.tables.selection import Units
from inspector.tables.steps import node_table, value_table, with_recorded
from inspector.tables.table import Table
from inspector.toolchain.backend_cards import plannable


def planners(session: Session, method: str, units: Units) -> Table:
    """Return the memory plan of a method, and those that other planners make of its values.

    Raises: QueryError without a program, or if the worker fails
    """
    plan = memory_plan(session, method)
    if plan is None:
        raise QueryError("the memory plan needs a program")
    found = finished(PlanJob(_path(session, "pte", "bpte") or "", method), QueryError).result
    return planner_table(plan, plans_of(plan, found), units)


def gap(session: Session, method: str, _units: Units) -> Table:
    """Return the numeric gap of each output in the first run of a method, or its first call.

    Raises: QueryError without a program and a trace, or if the worker fails
    """
    runs = _runs(session, method)
    return gap_table(runs[0].rows if runs else ())


def layer_losses(session: Session, method: str, _units: Units) -> Table:
    """Return the loss by quantization of each module, in the first run or call of a method.

    Raises: QueryError without a program and a trace, or if the worker fails
    """
    return loss_table(_runs(session, method, FLOAT)[0])


def call_gaps(session: Session, method: str, _units: Units) -> Table:
    """Return the numeric gap of each call of a sequence.

    Raises: QueryError without a program and a trace, or if the worker fails
    """
    return call_gap_table([one for one in _runs(session, method) if one.call >= 0])


def cases(session: Session, method: str, _units: Units) -> Table:
    """Return the cases of a bundled program, run here: whether each passed, and its error.

    Raises: QueryError without a bundled program, or if the worker fails
    """
    program = _path(session, "bpte")
    if program is None:
        raise QueryError("cases need a bundled program (.bpte)")
    job = VerifyJob(program, method, record=_record(session), data_files=_data_files(session))
    return cases_table(finished(job, QueryError).result)


def backend_plan(session: Session, _units: Units) -> Table:
    """Return the share of a session's model that each backend that is here would take.

    Raises: QueryError without a recipe, or if the worker fails
    """
    try:
        job = session_recipe(session).recipe.job
    except RecipeError as error:
        raise QueryError(str(error)) from error
    return plan_table(finished(BackendPlanJob(job, plannable()), QueryError).result)


def step_nodes(session: Session, method: str, _units: Units, of: str) -> Table:
    """Return the nodes of a delegate call, each with its recorded node and source line.

    Raises: QueryError without a program or for an unknown call, or if the worker fails
    """
    report = _stepped(session, method, of)
    return node_table(with_recorded(session.record, method, report["nodes"]), _values_of(report))


def step_values(session: Session, method: str, _units: Units, of: str) -> Table:
    """Return the values that the nodes of a delegate call read and compute, the latest first.

    Raises: QueryError without a program or for an unknown call, or if the worker fails
    """
    return value_table(_values_of(_stepped(session, method, of)))


def _stepped(session: Session, method: str, of: str) -> Mapping[str, Any]:
    program = _path(session, "pte", "bpte")
    if program is None:
        raise QueryError("stepping needs a program")
    if not (of or "0").isdecimal():
        raise QueryError(f"expected the index of a delegate call, found {of!r}")
    call, record = int(of or 0), _record(session)
    job = StepJob(program, method, call, record=record, data_files=_data_files(session))
    return finished(job, QueryError).result


def _values_of(report: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    return {each["value"]: each for each in report["values"]}


def _path(session: Session, *kinds: str) -> str | None:
    return next((file.path for file in session.files if file.kind in kinds), None)


def _record(session: Session) -> str:
    return _path(session, "etrecord") or ""


def _data_files(session: Session) -> tuple[str, ...]:
    return tuple(file.path for file in session.files if file.kind == "ptd")


def _runs(session: Session, method: str, reference: str = "") -> list[Any]:
    if session.program is None or not session.dumps:
        raise QueryError("the numeric gap needs a program and the trace of a run that logs values")
    files = tuple(file.path for file in session.files if not file.error)
    report = finished(GapJob(files, method, reference), QueryError).state or GapReport()
    if not report.runs:
        raise QueryError("; ".join(report.notes) or "nothing was compared")
    return [one for one in report.runs if one.run == 0]
