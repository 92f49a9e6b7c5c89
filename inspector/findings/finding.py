"""A finding: one sentence about a session, and its target."""

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
        detail: a second, shorter line; may be empty
        view: view that shows it: overview, graph, operators, timeline, memory, size, partitions,
            issues
        method: method it is about, empty for the entire session
        event: profile row to select, or None
        instruction: instruction to select, or None
        delegate: delegate to select, or None
        part: name of a file part to select, may be empty
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
