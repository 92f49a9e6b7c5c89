"""A finding: one sentence about a session, its target, and a change to try."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from inspector.recipes.edits import EditTarget
from inspector.units import format_bytes, format_ms


class Tone(str, Enum):
    """How a finding should be read."""

    BAD = "bad"
    WARN = "warn"
    GOOD = "good"
    NEUTRAL = "neutral"

    @property
    def severity(self) -> str:
        """Return the word for it."""
        return _WORDS[self]

    @property
    def shape(self) -> str:
        """Return the sign for it, which differs in shape, not only in colour."""
        return _SHAPES[self]


_WORDS = {
    Tone.BAD: "problem",
    Tone.WARN: "worth a look",
    Tone.GOOD: "good",
    Tone.NEUTRAL: "note",
}
SEVERITIES = tuple(_WORDS.values())
_SHAPES = {Tone.BAD: "▲", Tone.WARN: "◆", Tone.GOOD: "●", Tone.NEUTRAL: "○"}


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
        doubt: whether it makes other figures of the session wrong or uncertain
        saves_ms: of a run at most, None where it is unknown or nothing is to be saved
        saves_bytes: of the file or of planned memory at most, likewise
        edits: names of recipe edits and their targets to try, as of a suggestion
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
    doubt: bool = False
    saves_ms: float | None = None
    saves_bytes: int | None = None
    edits: tuple[tuple[str, EditTarget], ...] = ()

    @property
    def saved(self) -> str:
        """Return the possible savings as text, empty where that is unknown."""
        if self.saves_ms is not None:
            return f"saves {format_ms(self.saves_ms)} a run at most"
        return "" if self.saves_bytes is None else f"saves {format_bytes(self.saves_bytes)} at most"

    @property
    def line(self) -> str:
        """Return severity, possible savings, and the detail, for the second line."""
        return " · ".join(filter(None, (self.tone.severity, self.grounds)))

    @property
    def grounds(self) -> str:
        """Return possible savings and the detail, where the severity stands elsewhere."""
        return " · ".join(filter(None, (self.saved, self.detail)))
