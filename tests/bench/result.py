"""What a benchmark reports: a figure, its limit, and whether it holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report.

    Attributes:
        name: what was measured
        value: the figure
        unit: s, MiB, ms or x (times the stock tool)
        limit: bound the project set itself
        at_least: whether the figure must reach the limit instead of staying below it
        detail: the figures it was made of
    """

    name: str
    value: float
    unit: str
    limit: float | None = None
    at_least: bool = False
    detail: str = ""

    @property
    def holds(self) -> bool:
        """Return whether the figure is within its limit; true without one."""
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def line(self) -> str:
        """Return the line printed for it."""
        bound = ""
        if self.limit is not None:
            sign = ">=" if self.at_least else "<="
            verdict = "ok" if self.holds else "MISSED"
            bound = f"  {sign} {self.limit:g} {self.unit}  {verdict}"
        return f"{self.name:<58} {self.value:10.3f} {self.unit:<3}{bound}  {self.detail}"
