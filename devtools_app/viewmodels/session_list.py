"""Sessions as entries of a list: letter, name, contents, and an individual colour."""

from __future__ import annotations

from collections.abc import Sequence

from devtools_app.appearance.colours import Palette
from devtools_app.state.state import OpenSession
from devtools_app.viewmodels.entries import ListEntry
from inspector.files.session import Session
from inspector.tables.files import KIND_WORDS, kind_label
from inspector.units import format_bytes


def session_entries(sessions: Sequence[OpenSession], palette: Palette) -> tuple[ListEntry, ...]:
    """Return one entry per session, in the colour of its letter."""
    return tuple(
        ListEntry(
            one.session.name,
            session_line(one.session),
            tone=session_tone(one.id, palette),
            mark=one.id,
        )
        for one in sessions
    )


def session_tone(session: str, palette: Palette) -> str:
    """Return the colour of the letter of a session."""
    return palette.backends[_number(session) % len(palette.backends)]


def session_line(session: Session) -> str:
    """Return the contents of a session: ``252 KiB program · trace · ETRecord``."""
    parts: list[str] = []
    program = next((file for file in session.files if file.kind in ("pte", "bpte")), None)
    if program is not None:
        parts.append(f"{format_bytes(program.size)} {KIND_WORDS[program.kind]}")
    others = [kind_label(file.kind) for file in session.files if file is not program]
    for word in dict.fromkeys(others):
        count = others.count(word)
        parts.append(word if count == 1 else _whole(f"{count} × {word}"))
    return " · ".join(parts)


def _whole(words: str) -> str:
    """Return words that a line does not break between."""
    return words.replace(" ", "\u00a0")


def _number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1
