"""What a screen reader could not read: objects with the keyboard that lack a name or a role."""

from __future__ import annotations

from collections.abc import Iterable

from tests.walk.screen_reader import Item, State

# roles of objects that nothing is known about
_NO_ROLES = {"invalid", "unknown", "redundant object", "layered pane", "extended"}
# parts of a named object, which is read in their place; an empty cell has nothing to read
_PARTS = {"list", "table cell", "cell", "tree item", "text"}


def nameless(items: Iterable[Item], where: str) -> list[str]:
    """Return a line for each object that takes the keyboard and has no name or no role."""
    found: list[str] = []
    for one in items:
        if not one.has(State.FOCUSABLE, State.SHOWING):
            continue
        named = one.name.strip(". ") or (one.role in _PARTS and _around(one))
        drawn = one.role == "filler" and not one.count  # else a page with parts of its own
        if not named or drawn or one.role in _NO_ROLES:
            found.append(f"{where}: {one.place}")
    return found


def _around(item: Item) -> bool:
    parent = item.parent
    return parent is not None and bool(parent.name.strip(". "))
