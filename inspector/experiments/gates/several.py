"""Requirements judged for several programs at once, by the known facts of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspector.experiments.evaluate.report import VariantFigures
from inspector.experiments.gates.evidence import Evidence, MissingError
from inspector.experiments.gates.judging import Judgement, judge_requirement
from inspector.experiments.gates.requirement import Kind, Requirement, own_metric
from inspector.files.session import Session
from inspector.numerics.report import GapReport
from schema.errors import FormatError

MET, NOT_MET, UNKNOWN = "met", "not met", "unknown"
_NO_GAP = "the values of {} were not compared yet"
_NO_EVALUATION = "{} was not evaluated on a data set yet"
_NO_BASELINE = "a baseline is needed: choose another session as baseline"


@dataclass(frozen=True, slots=True)
class GateSide:
    """A program that is judged.

    Attributes:
        name: shown for it
        session: its files
        gap: its numeric gap, None if its values were not compared
        evaluation: its figures on a data set, None if it was not evaluated
    """

    name: str
    session: Session
    gap: GapReport | None = None
    evaluation: VariantFigures | None = None

    def evidence(self) -> Evidence:
        """Return its known facts."""
        return Evidence(self.session, self.name, gap=self.gap, evaluation=self.evaluation)


@dataclass(frozen=True, slots=True)
class JudgedGate:
    """A requirement of one program.

    Attributes:
        side: name of the program
        requirement: the requirement
        judgement: None if something is missing that the metric needs
        missing: what it is, as a sentence; empty with a judgement
        lacks: comparisons and evaluations that would supply it, each with the name of its program
    """

    side: str
    requirement: Requirement
    judgement: Judgement | None
    missing: str = ""
    lacks: tuple[tuple[Kind, str], ...] = ()

    @property
    def result(self) -> str:
        """Return whether it is met, in a word."""
        if self.judgement is None:
            return UNKNOWN
        return MET if self.judgement.met else NOT_MET


def judge_sides(
    requirements: Sequence[Requirement],
    sides: Sequence[GateSide],
    baseline: GateSide | None = None,
) -> tuple[JudgedGate, ...]:
    """Return each requirement for each program, those of a requirement together.

    Args:
        requirements: the requirement
        sides: the programs
        baseline: the baseline of relative bounds
    """
    return tuple(_judged(one, side, baseline) for one in requirements for side in sides)


def _judged(one: Requirement, side: GateSide, baseline: GateSide | None) -> JudgedGate:
    both = [side, *([baseline] if one.relative and baseline is not None else [])]
    missing = _NO_BASELINE if one.relative and baseline is None else ""
    for each in both:
        if one.kind is Kind.GAP and each.gap is None:
            missing = missing or _NO_GAP.format(each.name)
        if one.kind is Kind.EVAL and each.evaluation is None:
            missing = missing or _NO_EVALUATION.format(each.name)
    lacks = tuple((one.kind, each.name) for each in both if _lacks(one, each))
    if missing:
        return JudgedGate(side.name, one, None, missing, lacks)
    try:
        other = baseline.evidence() if one.relative and baseline is not None else None
        return JudgedGate(side.name, one, judge_requirement(one, side.evidence(), other))
    except (MissingError, FormatError) as error:
        return JudgedGate(side.name, one, None, str(error), lacks)


def _lacks(one: Requirement, side: GateSide) -> bool:
    """Return whether the comparison or evaluation that the metric needs is missing."""
    if one.kind is Kind.GAP:
        return side.gap is None
    if one.kind is Kind.EVAL:
        found = side.evaluation
        own = own_metric(one.metric)
        return found is None or bool(own and own not in found.metrics)
    return False
