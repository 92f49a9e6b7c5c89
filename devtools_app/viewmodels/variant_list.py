"""The variants of a program as entries of a list, indented under their parents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from devtools_app.appearance.colours import Palette
from devtools_app.state.variants import History, Variant
from devtools_app.viewmodels.entries import ListEntry
from devtools_app.viewmodels.recipe_form import change_line
from devtools_app.viewmodels.session_list import session_tone

_SAME = "recompiled"


def variant_entries(
    rows: Iterable[tuple[int, Variant]], history: History, palette: Palette
) -> tuple[ListEntry, ...]:
    """Return one entry per variant: its letter, changes, metrics or failure.

    Args:
        rows: variants with their depth
        history: that they are in
        palette: of the theme
    """
    return tuple(_entry(depth, one, history, palette) for depth, one in rows)


def _entry(depth: int, one: Variant, history: History, palette: Palette) -> ListEntry:
    parent = history.find(one.parent)
    first = parent or _root_before(one, history)
    title = change_line(first.recipe.job, one.recipe.job) or _SAME if first else _first(one)
    if one.failure:
        detail, tone, accessible_text = one.failure, "bad", "failed"
    else:
        state = () if one.session else (_folder(one), "closed")
        detail = " · ".join(part for part in (*one.facts, *state) if part)
        tone = session_tone(one.session, palette) if one.session else "muted"
        accessible_text = "" if one.session else "closed"
    if one.changed:
        detail = " · ".join(part for part in (detail, "recipe edited") if part)
    return ListEntry(title, detail, tone, accessible_text, mark=one.session, depth=depth)


def _folder(one: Variant) -> str:
    """Return the unique name of the folder with the files of a variant."""
    return PurePath(one.files[0]).parent.name if one.files else ""


def _root_before(one: Variant, history: History) -> Variant | None:
    """Return the first variant of the same program that was opened, None if this is the first."""
    roots = (each for each in history.variants if each.parent is None)
    found = next(each for each in roots if each.program == one.program)
    return None if found.id == one.id else found


def _first(one: Variant) -> str:
    partitioners = ", ".join(one.recipe.job.partitioners) or "portable"
    return f"as opened · {partitioners}"
