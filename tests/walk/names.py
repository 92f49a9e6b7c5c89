"""What a screen reader could not read: objects with the keyboard that lack a name or a role."""

from __future__ import annotations

from collections.abc import Iterable

from tests.walk.screen_reader import Item, State

# roles of objects that nothing is known about
_NO_ROLES = {"invalid", "unknown", "filler", "redundant object", "layered pane", "extended"}
# parts of a named object, which is read in their place
_PARTS = {"list", "table cell", "text"}


def nameless(items: Iterable[Item], where: str) -> list[str]:
    """Return a line for each object that takes the keyboard and has no name or no role."""
    found: list[str] = []
    for one in items:
        if not one.has(State.FOCUSABLE):
            continue
        named = one.name.strip(". ") or (one.role in _PARTS and _around(one))
        if not named or one.role in _NO_ROLES:
            found.append(f"{where}: {one.place}")
    return found


def _around(item: Item) -> bool:
    parent = item.parent
    return parent is not None and bool(parent.name.strip(". "))
