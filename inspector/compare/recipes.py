"""Fields that differ: the recipes of several sessions, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from inspector.compare.model import RecipeChange
from inspector.files.session import Session
from inspector.recipes.recipe import RecipeError
from inspector.recipes.session_recipe import session_recipe
from schema.objects.codec import to_json
from schema.objects.identity_cache import identity_cache


@identity_cache
def recipe_fields(session: Session) -> Mapping[str, str] | None:
    """Return the fields of a session's recipe as text, None if it has no complete recipe."""
    try:
        found = session_recipe(session)
    except RecipeError:
        return None
    return None if found.unknown else dict(_fields(to_json(found.recipe.job), ""))


def _fields(content: Mapping[str, Any], before: str) -> Iterator[tuple[str, str]]:
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _fields(cast("Mapping[str, Any]", value), f"{before}{name}.")
        elif isinstance(value, list | tuple):
            yield before + name, ", ".join(map(str, cast("Sequence[Any]", value)))
        else:
            yield before + name, "" if value is None else str(value)


def recipe_changes(sessions: Sequence[Session]) -> tuple[RecipeChange, ...]:
    """Return the fields in which a recipe differs from that of the first session."""
    first, *others = (recipe_fields(session) for session in sessions)
    if first is None:
        return ()
    found: list[RecipeChange] = []
    for number, fields in enumerate(others, 1):
        for name in dict.fromkeys([*first, *fields]) if fields is not None else ():
            old, new = first.get(name, ""), (fields or {}).get(name, "")
            if old != new:
                found.append(RecipeChange(number, name, old, new))
    return tuple(found)
