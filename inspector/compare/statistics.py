"""Whether one program is slower than another, from times measured in blocks.

Times of one process are not independent: memory addresses, load and temperature of the machine
persist for a while. So runs come in blocks, between which a program is loaded
again, and a block counts as one sample. That is its fastest run: disturbances only slow a run down,
and with two speeds a median picks one by chance. Block i of both
programs is measured one after the other, so that slow drifts affect both. The median of
the logarithms of their quotients is bootstrapped, and its interval is widened for few blocks. A
difference counts if it exceeds the threshold and its interval half of
it; these rules were tuned on simulated noise (tests/inspector/noise.py) and on real runs of a
machine with a load of five times its processors.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.trace.run_times import median
from inspector.units import format_change, format_share

FASTER, SLOWER, ALIKE = "faster", "slower", "not distinguishable"
NONE = 0.02  # a relative difference below this is none
CONFIDENCE = 0.95
FEW_BLOCKS = 6  # below, a bootstrap says too little and the t interval has its say as well
_DRAWS = 2_000
_SEED = 20_260  # the same blocks have the same verdict
_MOST_BLOCKS = 400  # beyond, neighbouring blocks are put together; pairs grow with the square

Floats = NDArray[np.float64]
Blocks = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class TimeVerdict:
    """Comparison of the times of a new program with those of an old one.

    Units: old and new in the unit of the samples

    Attributes:
        ratio: new over old; 1.1 is ten percent slower; NaN if nothing was measured
        low: lower end of the confidence interval of the ratio, 0 if unbounded
        high: upper end, infinity if unbounded
        word: faster, slower or not distinguishable
        old: typical fastest run of an old block; without a ratio of blocks the median of medians
        new: old times the ratio, so that their quotient is the ratio
        blocks: number of compared blocks of each
        paired: whether block i of both was measured together
        reason: why there is no verdict if not evident from the figures, else empty
    """

    ratio: float
    low: float
    high: float
    word: str
    old: float
    new: float
    blocks: int
    paired: bool = True
    reason: str = ""

    @property
    def real(self) -> bool:
        """Return whether the difference is one."""
        return self.word != ALIKE

    def words(self) -> str:
        """Return the verdict as a phrase with its interval."""
        if not math.isfinite(self.ratio) or not math.isfinite(self.high):
            return f"{self.word}: {self.reason}" if self.reason else self.word
        ends = f"{format_change(self.low)} to {format_change(self.high)}"
        if self.real:
            return f"{self.word} by {format_share(abs(self.ratio - 1))} (95 % interval {ends})"
        return f"{self.word} (95 % interval {ends})"

    def certainty(self) -> str:
        """Return the interval first, for a column beside the difference itself."""
        if not math.isfinite(self.ratio) or not math.isfinite(self.high):
            return self.words()
        low, high = format_change(self.low).removesuffix(" %"), format_change(self.high)
        return f"95 %: {low} … {high}" + ("" if self.real else f", {self.word}")

    def content(self) -> dict[str, Any]:
        """Return the verdict as a JSON object; non-finite values become null."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


def judge(old_blocks: Blocks, new_blocks: Blocks, *, none: float = NONE) -> TimeVerdict:
    """Return whether the new program is faster, slower or not distinguishable.

    Args:
        old_blocks: times of each block of runs, in the order measured
        new_blocks: likewise; with as many blocks, block i of both counts as measured together
        none: relative difference treated as equal

    Raises: ValueError for a time that is not positive
    """
    times = [_times(blocks) for blocks in (old_blocks, new_blocks)]
    old, new = (np.array([median(each) for each in side]) for side in times)
    count = min(len(old), len(new))
    if not count:
        return _nothing(old, new, "no times of both sides")
    paired = len(old) == len(new)
    if count == 1:
        return _nothing(old, new, "one block has no spread; at least two are needed")
    here, there = (np.log([each.min() for each in side]) for side in times)
    middle, low, high = _of_pairs(there - here) if paired else _of_two(here, there)
    ratio, low, high = math.exp(middle), _exp(low), _exp(high)
    word = _word(ratio, low, high, none)
    typical = math.exp(median(here))
    return TimeVerdict(ratio, low, high, word, typical, typical * ratio, count, paired)


def _word(ratio: float, low: float, high: float, none: float) -> str:
    half = math.sqrt(1 + none)
    if ratio > 1 + none and low > half:
        return SLOWER
    return FASTER if ratio < 1 / (1 + none) and high < 1 / half else ALIKE


def _nothing(old: Floats, new: Floats, reason: str) -> TimeVerdict:
    one, two = median(old), median(new)
    count = min(len(old), len(new))
    return TimeVerdict(
        two / one, 0.0, math.inf, ALIKE, one, two, count, len(old) == len(new), reason
    )


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _times(blocks: Blocks) -> list[Floats]:
    """Return the times of each non-empty block."""
    found = [np.asarray(block, dtype=np.float64) for block in blocks]
    if any(not (np.isfinite(each).all() and (each > 0).all()) for each in found):
        raise ValueError("a time must be positive")
    return [each for each in found if each.size]


def _of_pairs(values: Floats) -> tuple[float, float, float]:
    """Return the centre of differences and its confidence interval."""
    values = _fewer(values)
    count = len(values)
    draws = np.random.default_rng(_SEED).integers(0, count, (_DRAWS, count))
    centres = _centres(values[draws])
    middle = float(_centres(values[None, :])[0])
    low, high = _expanded(centres, count)
    if count < FEW_BLOCKS:
        half = _t(count - 1) * float(values.std(ddof=1)) / math.sqrt(count)
        low, high = min(low, middle - half), max(high, middle + half)
    return middle, low, high


def _of_two(old: Floats, new: Floats) -> tuple[float, float, float]:
    """Return the difference of two centres and its confidence interval; blocks are not pairs."""
    old, new = _fewer(old), _fewer(new)
    draw = np.random.default_rng(_SEED)
    centres = [
        _centres(each[draw.integers(0, len(each), (_DRAWS, len(each)))]) for each in (new, old)
    ]
    middle = float(_centres(new[None, :])[0] - _centres(old[None, :])[0])
    count = min(len(old), len(new))
    low, high = _expanded(centres[0] - centres[1], count)
    if count < FEW_BLOCKS:
        spread = math.sqrt(old.var(ddof=1) / len(old) + new.var(ddof=1) / len(new))
        half = _t(count - 1) * spread
        low, high = min(low, middle - half), max(high, middle + half)
    return middle, low, high


def _fewer(values: Floats) -> Floats:
    """Return the means of adjacent blocks if there are more than needed."""
    if len(values) <= _MOST_BLOCKS:
        return values
    return np.array([part.mean() for part in np.array_split(values, _MOST_BLOCKS)])


def _centres(rows: Floats) -> Floats:
    """Return the centre of each row.

    Shapes: rows float64[draws, blocks] -> float64[draws]
    """
    return np.median(rows, axis=1)


def _expanded(centres: Floats, count: int) -> tuple[float, float]:
    """Return the ends of the bootstrap interval, at a level widened for few samples.

    Source: T. Hesterberg, What Teachers Should Know About the Bootstrap (2015), 5.1
    """
    level = 0.5 * math.erfc(math.sqrt(count / (count - 1)) * _t(count - 1) / math.sqrt(2))
    low, high = np.quantile(centres, [level, 1 - level])
    return float(low), float(high)


def _t(freedom: int) -> float:
    """Return the quantile of Student's distribution for the two-sided confidence.

    Source: Abramowitz and Stegun 26.7.5; exact for one and two degrees of freedom
    """
    share = 1 - CONFIDENCE
    if freedom == 1:
        return 1 / math.tan(share * math.pi / 2)
    if freedom == 2:
        return math.sqrt(2 / (share * (2 - share)) - 2)
    z = statistics.NormalDist().inv_cdf(1 - share / 2)
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    g4 = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    n = float(freedom)
    return z + g1 / n + g2 / n**2 + g3 / n**3 + g4 / n**4
