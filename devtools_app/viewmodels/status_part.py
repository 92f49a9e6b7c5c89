"""A value and its label in the status line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StatusPart:
    """A piece of the status line.

    Attributes:
        value: number with unit, empty for a label only
        label: name
        strong: the sum, in bold
    """

    value: str
    label: str
    strong: bool = False
