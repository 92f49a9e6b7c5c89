"""One line of a list with a coloured dot: findings, sessions, issues."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListEntry:
    """One entry of a list.

    Attributes:
        title: first line
        detail: muted second line, may be empty
        tone: meaning of the colour: good, warn, bad, muted, or a ``#rrggbb`` of its own
        spoken: the colour's meaning, for screen readers
        strong: bold title
        mark: bold prefix of the title, as the letter of a session
        depth: how far it is indented, as in a tree
    """

    title: str
    detail: str = ""
    tone: str = "muted"
    accessible_text: str = ""
    strong: bool = False
    mark: str = ""
    depth: int = 0
