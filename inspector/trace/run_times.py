"""The times of several runs of one program: the statistics of their steady set, and its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inspector.trace.steady import FEW, Mask, cold_runs, steady_runs
from inspector.units import format_share
from schema.objects.plural import plural

_NOISY = 0.2  # of the median between p10 and p90
# The words and bounds of criterion's report on outliers (Bryan O'Sullivan, 2009).
_GRADES = ((0.01, "unaffected"), (0.1, "slight"), (0.5, "moderate"))
_SEVERE = "severe"
_DRIFT = 1.1  # times the first third that the last takes: a machine that slows down
_THIRDS = 3
Floats = NDArray[np.float64]


def median(times: Sequence[float] | Floats) -> float:
    """Return the median of times, cold ones and outliers among them; NaN without any."""
    return float(np.median(times)) if len(times) else math.nan


def percentiles(samples: Floats, points: Sequence[float], axis: int = -1) -> Floats:
    """Return percentiles over runs, linearly interpolated as the stock tool does.

    Those of fewer than five runs are missing, NaN, but for the fastest and the slowest: they would
    be single runs.

    Args:
        samples: times; their axis of runs is removed
        points: of the percentiles, 0 the fastest and 100 the slowest run
        axis: of the runs

    Shapes: float64[points, …]
    """
    found = np.asarray(np.percentile(samples, points, axis=axis), np.float64)
    if samples.shape[axis] < FEW:
        found[[0 < point < 100 for point in points]] = np.nan
    return found


@dataclass(frozen=True)
class RunTimes:
    """The times of the runs of one program on one machine, in the order they ran.

    Attributes:
        times: of each run that ended, in one unit of time
        parts: how many runs each measurement of its own has, such as a call of a sequence or a
            trace: cold runs and outliers are those of their part; empty for one measurement

    Raises: ValueError without runs
    """

    times: tuple[float, ...]
    parts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse no runs, and runs without a time."""
        if not self.times or not np.isfinite(self.times).all():
            raise ValueError("expected the finite times of one run or more")

    @cached_property
    def mask(self) -> Mask:
        """Return which runs are in the steady set, bool[runs]."""
        return np.concatenate([steady_runs(times) for times in self._split()])

    @cached_property
    def steady(self) -> Floats:
        """Return the times of the steady set."""
        return np.asarray(self.times)[self.mask]

    @property
    def mean(self) -> float:
        """Return the mean of the steady set: the statistic of the project."""
        return float(self.steady.mean())

    @property
    def median(self) -> float | None:
        """Return the median of the steady set, None for fewer than five runs."""
        return self._percentile(50)

    @property
    def p10(self) -> float | None:
        """Return the time that a tenth of the steady set is within, None for few runs."""
        return self._percentile(10)

    @property
    def p90(self) -> float | None:
        """Return the time that nine tenths of the steady set are within, None for few runs."""
        return self._percentile(90)

    @property
    def stdev(self) -> float | None:
        """Return the standard deviation of the steady set, None for one run."""
        return float(self.steady.std(ddof=1)) if len(self.steady) > 1 else None

    @property
    def cold(self) -> int:
        """Return how many of the first runs are left out."""
        return sum(cold_runs(times) for times in self._split() if len(times) >= FEW)

    @property
    def spread(self) -> float | None:
        """Return the distance from p10 to p90 as a part of the median, None for few runs."""
        if self.p10 is None or self.p90 is None or not self.median:
            return None
        return (self.p90 - self.p10) / self.median

    @property
    def noise(self) -> str:
        """Return how noisy the runs are: empty, or slight, moderate, severe.

        Runs are noisy where fewer than half are steady or the steady ones spread over a fifth.
        The word is of the spread, or of how far the runs left out would move the mean.
        """
        if self._noisiest is not self:
            return self._noisiest.noise
        few = 2 * len(self.steady) < len(self.times)
        if not few and (self.spread is None or self.spread <= _NOISY):
            return ""
        moved = abs(float(np.mean(self.times)) / self.mean - 1) if self.mean > 0 else 0.0
        worst = max(self.spread or 0.0, moved)
        return next((word for bound, word in _GRADES if worst <= bound), _SEVERE)

    def causes(self) -> str:
        """Return the likely cause of noise, in words."""
        found: list[str] = []
        if self.cold:
            cold = "first run was" if self.cold == 1 else f"first {self.cold} runs were"
            found.append(f"the {cold} cold")
        third = len(self.steady) // _THIRDS
        if third >= FEW and median(self.steady[-third:]) > _DRIFT * median(self.steady[:third]):
            found.append("runs became slower, as of a processor that throttles")
        else:
            found.append("other load on the machine")
        return "; ".join(found)

    def left_out(self) -> str:
        """Return which runs are left out, in words; empty for none."""
        outliers = len(self.times) - len(self.steady) - self.cold
        cold = plural(self.cold, "cold first run") if self.cold else ""
        others = plural(outliers, "outlier") if outliers else ""
        return " and ".join(filter(None, (cold, others)))

    def noise_words(self) -> str:
        """Return the noise with its figures and likely cause; empty for none."""
        if self._noisiest is not self:
            return self._noisiest.noise_words()
        if not self.noise:
            return ""
        spread = "" if self.spread is None else f"p10 to p90 is {format_share(self.spread)}"
        kept = f"{len(self.steady)} of {len(self.times)} runs are steady"
        figures = ", ".join(filter(None, (spread and f"{spread} of the median", kept)))
        return f"noisy ({self.noise}): {figures}; likely {self.causes()}"

    def _split(self) -> list[NDArray[np.float64]]:
        """Return the times of each part."""
        return np.split(np.asarray(self.times), np.cumsum(self.parts)[:-1])

    @cached_property
    def _noisiest(self) -> RunTimes:
        """Return the part whose runs differ most; what differs between parts is not noise."""
        if len(self.parts) < 2:
            return self
        grades = ["", *(word for _, word in _GRADES), _SEVERE]
        parts = [RunTimes(tuple(times.tolist())) for times in self._split()]
        return max(parts, key=lambda one: grades.index(one.noise))

    def _percentile(self, at: float) -> float | None:
        found = float(percentiles(self.steady, (at,))[0])
        return None if np.isnan(found) else found


def run_times(times: Sequence[float] | Floats) -> RunTimes | None:
    """Return the statistics of runs that ended, None for none."""
    ended = tuple(float(time) for time in times if np.isfinite(time))
    return RunTimes(ended) if ended else None


def steady_words(runs: RunTimes) -> str:
    """Return of how many runs a mean is: ``20 runs``, or ``18 steady of 20 runs``."""
    count = len(runs.steady)
    every = plural(len(runs.times), "run")
    return every if count == len(runs.times) else f"{count:,} steady of {every}"


def statistics_json(runs: RunTimes | None) -> dict[str, float | int | str | None]:
    """Return the statistics of runs as JSON; null where they are missing.

    Percentiles, the median among them, need five steady runs.
    """
    names = ("min", "p10", "median", "mean", "p90", "max", "stdev", "spread", "noise")
    if runs is None:
        return {"runs": 0, "steady_runs": 0, "cold_runs": 0, **dict.fromkeys(names)}
    return {
        "runs": len(runs.times),
        "steady_runs": len(runs.steady),
        "cold_runs": runs.cold,
        "min": float(runs.steady.min()),
        "p10": runs.p10,
        "median": runs.median,
        "mean": runs.mean,
        "p90": runs.p90,
        "max": float(runs.steady.max()),
        "stdev": runs.stdev,
        "spread": runs.spread,
        "noise": runs.noise or None,
    }
