"""Judges requirements, with figures and a line of text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from inspector.experiments.gates.eval_values import eval_value
from inspector.experiments.gates.evidence import Evidence, FoundValue, MissingError, static_value
from inspector.experiments.gates.gap_values import gap_value
from inspector.experiments.gates.quantities import shown
from inspector.experiments.gates.requirement import LEAST, Kind, Requirement
from inspector.experiments.gates.times import latency, latency_ratio


@dataclass(frozen=True, slots=True)
class Judgement:
    """A requirement and its result.

    Attributes:
        requirement: as written
        met: whether it holds
        found: the value and its details
        baseline: value of the baseline, or None
        ratio: compared with a relative bound
        statistics: of the times of both, as a JSON object; None where times are not compared
    """

    requirement: Requirement
    met: bool
    found: FoundValue
    baseline: float | None = None
    ratio: float | None = None
    statistics: dict[str, Any] | None = None

    def line(self) -> str:
        """Return the judgement as one line."""
        word = "met    " if self.met else "not met"
        return f"{word}  {self.requirement.text}: {self.value_text()}{self.details()}"

    def value_text(self) -> str:
        """Return the value that was found, with its unit."""
        if self.found.value is None:
            return "unknown"
        text = shown(self.requirement.quantity, self.found.value)
        if self.ratio is not None:
            text += (
                f", {'infinitely more than' if math.isinf(self.ratio) else f'{self.ratio:.4g}x'}"
            )
            text += " the baseline"
            if self.statistics is None and self.baseline is not None:
                text += f" of {shown(self.requirement.quantity, self.baseline)}"
        return text

    def details(self) -> str:
        """Return the details of the value, in parentheses."""
        found = self.found
        parts = [part for part in (found.words, found.judged, found.refused, found.least) if part]
        return f" ({'; '.join(parts)})" if parts else ""

    def content(self) -> dict[str, Any]:
        """Return the judgement as a JSON object."""
        one = self.requirement
        return {
            "requirement": one.text,
            "metric": one.metric,
            "operator": one.sign,
            "bound": one.bound,
            "relative": one.relative,
            "unit": one.quantity.value,
            "met": self.met,
            "value": _finite(self.found.value),
            "text": self.value_text(),
            "basis": self.found.words,
            "judged": self.found.judged,
            "note": "; ".join(part for part in (self.found.refused, self.found.least) if part),
            "baseline": _finite(self.baseline),
            "ratio": _finite(self.ratio),
            "statistics": self.statistics,
        }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def judge_requirement(
    one: Requirement, evidence: Evidence, baseline: Evidence | None = None
) -> Judgement:
    """Return whether a requirement is met.

    Args:
        one: the requirement
        evidence: the known facts of the program
        baseline: the baseline of a relative bound

    Raises: MissingError when a file is missing that the metric needs
    """
    found = _value(one, evidence)
    if found.least and one.sign not in LEAST:
        raise MissingError(f"{one.text}: {found.least}; without it {one.metric} is unknown")
    if not one.relative:
        holds = found.value is not None and not found.refused and one.holds(found.value)
        return Judgement(one, holds, found)
    if baseline is None:
        raise MissingError(f"{one.text} needs the files of the baseline: --baseline FILES")
    if one.kind is Kind.TIME:
        return _judge_times(one, evidence, baseline)
    other = _value(one, baseline)
    ratio = _divided(found.value, other.value)
    refused = found.refused or other.refused
    holds = ratio is not None and not refused and one.holds(ratio)
    return Judgement(one, holds, found, other.value, ratio)


def _judge_times(one: Requirement, evidence: Evidence, baseline: Evidence) -> Judgement:
    ratio = latency_ratio(evidence, baseline, one.metric)
    verdict = ratio.verdict
    found = FoundValue(ratio.new, ratio.words, f"method {ratio.method}")
    met = one.holds(ratio.value)
    return Judgement(one, met, found, ratio.old, ratio.value, verdict.content())


def _value(one: Requirement, evidence: Evidence) -> FoundValue:
    if one.kind is Kind.GAP:
        return gap_value(one.metric, evidence)
    if one.kind is Kind.EVAL:
        return eval_value(one.metric, evidence)
    if one.kind is not Kind.TIME:
        return static_value(one.metric, evidence)
    return latency(one.metric, evidence)


def _divided(value: float | None, other: float | None) -> float | None:
    """Return a ratio; of two zeros it is one, since nothing has changed."""
    if value is None or other is None or math.isnan(value / other if other else 0.0):
        return None
    if other == 0:
        return 1.0 if value == 0 else math.inf
    return value / other
