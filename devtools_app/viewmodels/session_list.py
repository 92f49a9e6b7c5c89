"""Sessions as entries of a list: letter, name, contents, and an individual colour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from pathlib import PurePath

from devtools_app.appearance.colours import Palette
from devtools_app.state.state import OpenSession
from devtools_app.viewmodels.entries import ListEntry
from devtools_app.viewmodels.recent_list import shortest_ending
from inspector.files.session import Session
from inspector.tables.files import KIND_WORDS, kind_label
from inspector.units import format_bytes


def session_entries(
    sessions: Sequence[OpenSession], palette: Palette, unseen: Set[str] = frozenset()
) -> tuple[ListEntry, ...]:
    """Return one entry per session, in the colour of its letter; what a job opened is new.

    Sessions of one name have the folder that distinguishes them.
    """
    folders = _folders_of_namesakes(sessions)
    return tuple(
        ListEntry(
            one.session.name,
            " · ".join(
                filter(
                    None,
                    (
                        "new" if one.id in unseen else "",
                        folders.get(one.id, ""),
                        session_line(one.session),
                    ),
                )
            ),
            tone=session_tone(one.id, palette),
            mark=one.id,
        )
        for one in sessions
    )


def _folders_of_namesakes(sessions: Sequence[OpenSession]) -> dict[str, str]:
    """Return session -> the end of the folder that has files which its namesakes lack."""
    named: dict[str, list[OpenSession]] = defaultdict(list)
    for one in sessions:
        named[one.session.name].append(one)
    found: dict[str, str] = {}
    for alike in named.values():
        files = {one.id: [file.path for file in one.session.files] for one in alike}
        homes = [PurePath(path).parent.parts for paths in files.values() for path in paths]
        for own, paths in files.items() if len(alike) > 1 else ():
            others = {path for key, those in files.items() if key != own for path in those}
            first = next((path for path in paths if path not in others), None)
            if first is not None:
                found[own] = shortest_ending(PurePath(first).parent.parts, homes)
    return found


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
