"""Requirements of a bisection: that a program loads, or that a metric is within a bound."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.experiments.gates.quantities import shown
from inspector.experiments.gates.requirement import (
    GAP,
    Kind,
    Requirement,
    RequirementError,
    parse_requirement,
)

LOADS, OUTPUT = "loads", "output."


@dataclass(frozen=True, slots=True)
class Bound:
    """A requirement on a program.

    Attributes:
        text: as the user wrote it
        requirement: on a metric; None when the program is to load
        outputs: whether a metric of the gap is that of the program's outputs alone
    """

    text: str
    requirement: Requirement | None = None
    outputs: bool = False

    @property
    def metric(self) -> str:
        """Return the metric, as the user names it."""
        if self.requirement is None:
            return LOADS
        name = self.requirement.metric
        return f"{OUTPUT}{name.removeprefix(GAP)}" if self.outputs else name

    @property
    def kind(self) -> Kind | None:
        """Return the measurement it needs; None for loading."""
        return None if self.requirement is None else self.requirement.kind

    def holds(self, value: float | None) -> bool:
        """Return whether a value is within the bound; refusals are counted for ``loads``."""
        if value is None:
            return False
        return value == 0 if self.requirement is None else self.requirement.holds(value)

    def shown(self, value: float | None) -> str:
        """Return a value as text."""
        if value is None:
            return "unknown"
        if self.requirement is None:
            return "loads" if value == 0 else f"{value:.0f} refused"
        return f"{self.metric} {shown(self.requirement.quantity, value)}"


def parse_bound(text: str) -> Bound:
    """Return the bound in a text such as ``gap.max_abs<=1e-3``, ``output.snr_db>=40`` or ``loads``.

    Raises: RequirementError
    """
    plain = text.strip()
    if plain == LOADS:
        return Bound(plain)
    outputs = plain.startswith(OUTPUT)
    try:
        found = parse_requirement(f"{GAP}{plain.removeprefix(OUTPUT)}" if outputs else plain)
    except RequirementError as error:
        more = f", or {LOADS}, or {OUTPUT}max_abs and the like for the outputs alone"
        reported = str(error).replace(GAP, OUTPUT) if outputs else str(error)
        raise RequirementError(f"{reported}{more}") from None
    if found.kind is Kind.EVAL:
        raise RequirementError(f"{text!r}: a bisection has no data set; use {OUTPUT}max_abs")
    if found.relative:
        raise RequirementError(f"{text!r}: expected a number; a bisection has no baseline")
    if outputs and (found.metric.count(".") != 1 or found.metric == "gap.coverage"):
        raise RequirementError(f"{text!r}: outputs have no metric {plain.split('<')[0]!r}")
    return Bound(plain, found, outputs)
