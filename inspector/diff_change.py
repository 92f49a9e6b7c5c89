"""What a difference is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        area: one of inspector.diff.AREAS
        what: the thing that differs
        old: before, None when it was not there
        new: after, None when it is gone
        unit: ms, bytes or empty
        counts: whether it makes the two different; times of runs always vary and do not
        note: more words, empty for none
    """

    area: str
    what: str
    old: object
    new: object
    unit: str = ""
    counts: bool = True
    note: str = ""
