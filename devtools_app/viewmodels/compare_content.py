"""The content of the compare view: sessions side by side, and the job for what is not known yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from devtools_app.state.state import Gaps, OpenSession, State
from inspector.compare.model import Comparison
from inspector.compare.output_errors import OutputErrors
from inspector.compare.sessions import compare_sessions
from inspector.experiments.evaluate.comparing import errors_job
from inspector.jobs.executing import RunJob
from inspector.numerics.report import GapReport
from inspector.tables.compare_lists import LISTS, OWNERS, detail_table

if TYPE_CHECKING:
    from inspector.jobs.evaluate import EvalJob
    from inspector.jobs.measure import Measurement


@dataclass(frozen=True, slots=True, eq=False)
class CompareContent:
    """Sessions side by side.

    Attributes:
        comparison: of the sessions
        letters: their ids
        runs: how they were measured, in words
        unknown: sessions whose numeric gap is unknown
        shown: the sessions
        list: the first list that has rows
        job: computes the errors of outputs; None if they are known
    """

    comparison: Comparison
    letters: tuple[str, ...]
    runs: str
    unknown: str
    shown: tuple[OpenSession, ...]
    list: str
    job: EvalJob | None


def compared(
    shown: tuple[OpenSession, ...],
    measurement: Measurement | None,
    gaps: tuple[Gaps | None, ...],
    errors: OutputErrors | None,
) -> CompareContent:
    """Return sessions side by side.

    Args:
        shown: the sessions, the baseline first
        measurement: of their programs side by side, if there is one
        gaps: their numeric gaps, None where not compared
        errors: of the outputs, None if they are not known yet
    """
    sessions, job = [one.session for one in shown], None
    if errors is None:
        requested = errors_job(sessions, RunJob(""))
        job, errors = (
            (None, requested) if isinstance(requested, OutputErrors) else (requested, None)
        )
    reports = [None if one is None else GapReport(one.runs) for one in gaps]
    found = compare_sessions(sessions, measurement, reports, errors=errors)
    runs = ""
    if found.blocks:
        runs = f"{len(found.blocks)} interleaved blocks of warm runs each, medians, bootstrap 95 %"
    unknown = ", ".join(
        one.id for one, report in zip(shown, reports, strict=True) if report is None
    )
    letters = tuple(one.id for one in shown)
    usual = (OWNERS, *dict(LISTS))
    first = next((one for one in usual if detail_table(found, one, letters).length), OWNERS)
    return CompareContent(found, letters, runs, unknown, shown, first, job)


def quantized(state: State, shown: tuple[OpenSession, ...]) -> str:
    """Return the id of the last session shown whose recipe quantizes, empty without one."""
    for one in reversed(shown):
        variant = state.history.of_session(one.id)
        if variant is not None and variant.recipe.job.quantising.requested:
            return one.id
    return ""
