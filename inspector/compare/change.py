"""The data type of a difference."""

from __future__ import annotations

from dataclasses import dataclass

MOST_SAMPLES = 10  # elements of a tensor, as the stock tool lists


@dataclass(frozen=True, slots=True)
class Sample:
    """An element of a tensor that differs.

    Attributes:
        at: its place in memory, counted in elements
        old: before
        new: after
    """

    at: int
    old: float
    new: float


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        area: one of inspector.compare.differences.AREAS
        what: name of the differing fact
        old: before, None if missing
        new: after, None if missing
        unit: ms, bytes or empty
        counts: whether it counts as a difference; times of runs always vary and do not
        note: further text, may be empty
        samples: the first differing elements of a tensor
    """

    area: str
    what: str
    old: object
    new: object
    unit: str = ""
    counts: bool = True
    note: str = ""
    samples: tuple[Sample, ...] = ()
