"""The history of variants in a workspace file; invalid parts are dropped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from devtools_app.state.json_file import (
    as_object,
    get_int,
    get_list,
    get_object,
    get_optional_int,
    get_strings,
    get_text,
)
from devtools_app.state.variants import MOST_STEPS, MOST_VARIANTS, Draft, History, Variant

if TYPE_CHECKING:
    from inspector.recipes.compile_job import CompileJob
    from inspector.recipes.recipe import Recipe

_PLACE = "workspace"


def history_content(history: History, stored: Callable[[str], str]) -> list[dict[str, object]]:
    """Return a history as a JSON array.

    Args:
        history: to save
        stored: returns how a path is written
    """
    return [_content(one, stored) for one in history.variants]


def _content(one: Variant, stored: Callable[[str], str]) -> dict[str, object]:
    return {
        "id": one.id,
        "parent": one.parent,
        "session": one.session,
        "files": [stored(path) for path in one.files],
        "recipe": json.loads(one.recipe.text),
        "next": asdict(one.draft.present),
        "past": [asdict(job) for job in one.draft.past],
        "future": [asdict(job) for job in one.draft.future],
        "failure": one.failure,
        "unknown": one.unknown,
        "facts": list(one.facts),
    }


def history_from(content: dict[str, object], found: Callable[[str], str]) -> History:
    """Return the history in a workspace.

    Args:
        content: of the workspace, which has ``variants``
        found: returns the path that was written
    """
    variants: dict[int, Variant] = {}
    for item in get_list(content, "variants", MOST_VARIANTS):
        one = _variant(as_object(item), found)
        if one is not None and one.id not in variants:
            variants[one.id] = one
    made = max(variants, default=-1) + 1
    return History(tuple(variants.values()), made)


def _variant(entry: dict[str, object], found: Callable[[str], str]) -> Variant | None:
    recipe = _recipe(get_object(entry, "recipe"))
    number = get_int(entry, "id", -1)
    if recipe is None or not 0 <= number < 1 << 31:
        return None
    parent = get_optional_int(entry, "parent")
    past, future = _jobs(entry, "past", recipe), _jobs(entry, "future", recipe)
    present = _job(get_object(entry, "next"), recipe)
    if present is None:
        present, past, future = recipe.job, (), ()
    return Variant(
        number,
        str(recipe.job.source),
        recipe,
        Draft(present, past, future),
        parent if parent is not None and 0 <= parent < number else None,
        tuple(found(path) for path in get_strings(entry, "files") if "\0" not in path),
        get_text(entry, "session"),
        get_text(entry, "failure"),
        get_text(entry, "unknown"),
        tuple(get_strings(entry, "facts")),
    )


def _recipe(content: Mapping[str, object]) -> Recipe | None:
    from inspector.recipes.recipe import RecipeError, parse_recipe

    try:
        return parse_recipe(json.dumps(content).encode(), _PLACE)
    except (RecipeError, RecursionError):
        return None


def _job(content: Mapping[str, object], recipe: Recipe) -> CompileJob | None:
    """Return a job, read as strictly as the recipe it belongs to."""
    whole = {**json.loads(recipe.text), "job": content}
    found = _recipe(whole)
    return None if found is None else found.job


def _jobs(entry: dict[str, object], key: str, recipe: Recipe) -> tuple[CompileJob, ...]:
    found = (_job(as_object(item), recipe) for item in get_list(entry, key, MOST_STEPS))
    return tuple(job for job in found if job is not None)
