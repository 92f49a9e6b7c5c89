"""The samples of one event over the runs of its block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PerfData:
    """Durations of one event, one per run, and their statistics.

    Units: the target time scale of the Inspector that created it

    Attributes:
        raw: one duration a run, in order
    """

    raw: list[float]

    @property
    def p10(self) -> float:
        """Return the 10th percentile, linearly interpolated."""
        return float(np.percentile(self.raw, 10))

    @property
    def p50(self) -> float:
        """Return the median."""
        return float(np.percentile(self.raw, 50))

    @property
    def p90(self) -> float:
        """Return the 90th percentile, linearly interpolated."""
        return float(np.percentile(self.raw, 90))

    @property
    def avg(self) -> float:
        """Return the mean."""
        return float(np.mean(self.raw))

    @property
    def min(self) -> float:
        """Return the shortest run."""
        return min(self.raw)

    @property
    def max(self) -> float:
        """Return the longest run."""
        return max(self.raw)
