"""What a finding is: one sentence about a session, and where it leads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Tone(str, Enum):
    """How a finding should be read."""

    BAD = "bad"
    WARN = "warn"
    GOOD = "good"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence.

    Attributes:
        tone: how to read it
        text: the sentence
        detail: a second, shorter line; empty for none
        view: view that shows it: overview, graph, operators, timeline, memory, size, partitions,
            issues
        method: method it is about, empty for the whole session
        event: profile row to select, None for none
        instruction: instruction to select, None for none
        delegate: delegate to select, None for none
        part: name of a file part to select, empty for none
        weight: larger is more important
    """

    tone: Tone
    text: str
    detail: str = ""
    view: str = "overview"
    method: str = ""
    event: int | None = None
    instruction: int | None = None
    delegate: int | None = None
    part: str = ""
    weight: float = 0.0


def nbytes_text(nbytes: int) -> str:
    """Return a size with its unit, four digits at most."""
    value = float(nbytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"


def percent_text(share: float) -> str:
    """Return a share as whole percent; a little of something is not nothing."""
    percent = 100 * share
    return "less than 1 %" if 0 < percent < 1 else f"{percent:.0f} %"


def plural(count: int, word: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
