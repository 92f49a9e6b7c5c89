"""What a difference is."""

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
        what: the thing that differs
        old: before, None when it was not there
        new: after, None when it is gone
        unit: ms, bytes or empty
        counts: whether it makes the two different; times of runs always vary and do not
        note: more words, empty for none
        samples: the first elements of a tensor that differ
    """

    area: str
    what: str
    old: object
    new: object
    unit: str = ""
    counts: bool = True
    note: str = ""
    samples: tuple[Sample, ...] = ()
