"""Metrics of an evaluation on a data set: the worst output, or the mean of a metric of the user."""

from __future__ import annotations

from inspector.experiments.evaluate.report import FIGURES, VariantFigures
from inspector.experiments.gates.evidence import Evidence, FoundValue, MissingError
from inspector.experiments.gates.requirement import EVAL
from schema.objects.plural import plural

_NOT_FINITE = "{:,} elements are NaN or infinite in one of the program and its reference only"


def eval_value(metric: str, evidence: Evidence) -> FoundValue:
    """Return a figure of an evaluation.

    Refused samples meet no requirement but one on ``eval.refused``.

    Raises: MissingError for a metric that the evaluation has not measured
    """
    found = evidence.evaluation
    assert found is not None
    name = metric.removeprefix(EVAL)
    if name not in (*FIGURES, "refused", *found.metrics):
        known = ", ".join((*FIGURES, "refused", *found.metrics))
        raise MissingError(f"{metric}: not measured; available of this evaluation: {known}")
    if name in FIGURES and not found.outputs:
        words = found.sentence or "it is the reference of the evaluation"
        raise MissingError(f"{metric}: {evidence.what} was compared with nothing: {words}")
    return FoundValue(
        found.figure(name), _words(name, found), evidence.judged(), "", _why(name, found)
    )


def _words(name: str, found: VariantFigures) -> str:
    samples = max((one.samples for one in found.outputs), default=0)
    if name in found.metrics:
        return "mean of all samples"
    if name == "refused":
        return ""
    several = f"worst of {len(found.outputs)} outputs, " if len(found.outputs) > 1 else ""
    return f"{several}{plural(samples, 'sample')}"


def _why(name: str, found: VariantFigures) -> str:
    """Return why no bound can be met."""
    if name == "refused":
        return ""
    if found.refused:
        return f"{plural(found.refused, 'sample')} not compared: {found.sentence}"
    strange = sum(one.strange for one in found.outputs)
    return _NOT_FINITE.format(strange) if strange and name in FIGURES else ""
