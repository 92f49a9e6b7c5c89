"""Errors of outputs for a comparison: an evaluation on the example inputs of the float program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from inspector.compare.output_errors import OutputErrors, Values
from inspector.experiments.evaluate.report import (
    EvalReport,
    OutputFigures,
    VariantFigures,
    finite,
)
from inspector.experiments.evaluate.request import (
    EvalRequest,
    EvalRequestError,
    evaluation_job,
    has_program,
)
from inspector.files.session import Session
from inspector.graph.methods import method_to_run
from inspector.jobs.evaluate import EvalJob
from inspector.jobs.executing import RunJob
from inspector.recipes.data_source import EXAMPLE

_NOT_COMPUTED = "errors of outputs are not computed"


def errors_job(
    sessions: Sequence[Session], how: RunJob, data: str = EXAMPLE
) -> EvalJob | OutputErrors:
    """Return the job that computes errors for a comparison, or why there is none.

    Args:
        sessions: that are compared
        how: how programs are run
        data: the inputs of all programs
    """
    without = [one.name for one in sessions if not has_program(one)]
    if without:
        return OutputErrors(how.method)  # there is nothing to run, which needs no words
    method = how.method or method_to_run(sessions)
    if not method:
        return OutputErrors("", notes=(f"{_NOT_COMPUTED}: the programs have no method in common",))
    try:
        return evaluation_job(sessions, EvalRequest(data, samples=1), replace(how, method=method))
    except EvalRequestError as error:
        return OutputErrors(how.method, notes=(f"{_NOT_COMPUTED}: {error}",))


def output_errors(report: EvalReport, method: str) -> OutputErrors:
    """Return the figures of an evaluation as errors of a comparison."""
    notes = [*report.settings.notes]
    if report.unreferenced:
        words = f"{_NOT_COMPUTED}: {report.settings.reference} did not run: {report.sentence}"
        return OutputErrors(method, notes=(*notes, words))
    notes += [f"{one.name} did not run: {one.sentence}" for one in report.variants if one.refused]

    def of(
        figure: Callable[[OutputFigures], float | None],
        worst: Callable[..., float],
        *,
        floating: bool = True,
    ) -> Values:
        kinds = [each.floating for one in report.variants for each in one.outputs]
        if floating not in kinds:
            return (None,) * len(report.variants)
        return tuple(_worst(one, report, figure, worst, floating) for one in report.variants)

    return OutputErrors(
        method,
        report.settings.reference,
        of(lambda one: one.total.max_abs, max),
        tuple(map(finite, of(lambda one: one.total.snr_db, min))),
        of(lambda one: one.total.out_of_tolerance, max),
        of(lambda one: one.total.out_of_tolerance, max, floating=False),
        tuple(notes),
    )


def _worst(
    variant: VariantFigures,
    report: EvalReport,
    figure: Callable[[OutputFigures], float | None],
    worst: Callable[..., float],
    floating: bool,
) -> float | None:
    """Return the figure of the worst output; of the reference itself that of equal tensors."""
    if variant.index == report.settings.reference_variant:
        return None if worst is min else 0.0
    known = [
        math.inf if one.strange and worst is max else value
        for one in variant.outputs
        if one.floating is floating and (value := figure(one)) is not None
    ]
    found = worst(known) if known else None
    return finite(found)
