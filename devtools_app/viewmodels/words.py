"""A number and what it is, as status lines say it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """A piece of the status line.

    Attributes:
        value: number with unit, empty for plain words
        word: what it is
        strong: the sum, in heavier letters
    """

    value: str
    word: str
    strong: bool = False
