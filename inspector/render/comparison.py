"""A comparison as one HTML file: no script, nothing loaded from elsewhere, bounded in size."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from inspector.compare.model import Comparison
from inspector.files.session import Session
from inspector.memory.plan import analyse_memory
from inspector.render.html import (
    clean,
    heading,
    largest_values,
    make_page,
    memory_map,
    paragraph,
    sentences,
    table_html,
)
from inspector.tables.compare import letters_of, summary_table
from inspector.tables.compare_lists import CHANGES, GAPS, LISTS, MEMORY, detail_table

_MOST_ROWS = 60
_MOST_BOXES = 300
_MOST_ARENAS = 3
_MOST_METHODS = 6


def comparison_html(found: Comparison, sessions: Sequence[Session]) -> str:
    """Return the report of a comparison, 5 MB at most.

    Args:
        found: the comparison
        sessions: those that were compared, for the maps of their memory
    """
    letters = letters_of(len(sessions))
    names = " and ".join(clean(name) for name in found.names)
    sections = [("Summary", _summary(found, letters))]
    for kind, words in LISTS:
        if kind != CHANGES:
            body = _list(found, sessions, letters, kind)
            sections.append((words[0].upper() + words[1:], body))
    return make_page(f"{names}: ETScope comparison", names, sections).html


def _summary(found: Comparison, letters: Sequence[str]) -> Markup:
    named = "; ".join(
        f"{letter}: {name}" for letter, name in zip(letters, found.names, strict=True)
    )
    about = paragraph(f"{named}. Differences are those from {letters[0]}.", "muted")
    notes = sentences((note, "muted", "") for note in found.notes)
    return about + table_html(summary_table(found, letters), _MOST_ROWS) + notes


def _list(
    found: Comparison, sessions: Sequence[Session], letters: Sequence[str], kind: str
) -> Markup:
    shown = table_html(detail_table(found, kind, letters), _MOST_ROWS)
    if kind == GAPS and shown:
        return paragraph("Each session is compared with its recorded program.", "muted") + shown
    if kind == MEMORY and shown:
        maps = (
            _maps(name, session, method)
            for method in found.methods[:_MOST_METHODS]
            for name, session in zip(found.names, sessions, strict=True)
        )
        return shown + Markup().join(maps)
    return shown


def _maps(name: str, session: Session, method: str) -> Markup:
    program = session.program
    if program is None or method not in session.methods:
        return Markup()
    plan = analyse_memory(program, method)
    steps = max(plan.instruction_count, 1)
    return Markup().join(
        heading(f"{name}, {method}, planned buffer {arena.mem_id}")
        + memory_map(arena, steps, largest_values(arena, _MOST_BOXES))
        for arena in plan.arenas[:_MOST_ARENAS]
    )
