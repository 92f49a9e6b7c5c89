"""The history of variants in a workspace file; invalid parts are dropped."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from devtools_app.state.json_file import read_parts
from devtools_app.state.variants import MOST_STEPS, MOST_VARIANTS, Draft, History, Variant
from schema.objects.codec import ContentError, from_json, to_json

if TYPE_CHECKING:
    from inspector.recipes.compile_job import CompileJob

_LOG = logging.getLogger(__name__)
_PLACE = "workspace: variants"
_MOST = 1 << 31  # of the number of a variant
_Content = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class VariantPart:
    """A variant as its file has it; recipes are JSON, since their readers are imported later."""

    id: int
    recipe: _Content
    next: object = None
    parent: int | None = None
    session: str = ""
    files: tuple[str, ...] = ()
    past: tuple[_Content, ...] = ()
    future: tuple[_Content, ...] = ()
    failure: str = ""
    unknown: str = ""
    facts: tuple[str, ...] = ()


def history_content(history: History, stored: Callable[[str], str]) -> list[dict[str, Any]]:
    """Return a history as a JSON array.

    Args:
        history: to save
        stored: returns how a path is written
    """
    return [to_json(_part(one, stored)) for one in history.variants]


def _part(one: Variant, stored: Callable[[str], str]) -> VariantPart:
    from inspector.recipes.paths import with_files

    def placed(job: CompileJob) -> CompileJob:
        return with_files(job, lambda path: stored(path) if os.path.isabs(path) else path)

    recipe = replace(one.recipe, job=placed(one.recipe.job))
    return VariantPart(
        one.id,
        json.loads(recipe.text),
        to_json(placed(one.draft.present)),
        one.parent,
        one.session,
        tuple(stored(path) for path in one.files),
        tuple(to_json(placed(job)) for job in one.draft.past),
        tuple(to_json(placed(job)) for job in one.draft.future),
        one.failure,
        one.unknown,
        one.facts,
    )


def history_from(content: object, found: Callable[[str], str]) -> History:
    """Return the history in a workspace.

    Args:
        content: variants in the workspace
        found: resolves a stored path
    """
    from inspector.recipes.recipe import RecipeError

    variants: dict[int, Variant] = {}
    items: list[object] = content if isinstance(content, list) else []
    for at, item in enumerate(items[:MOST_VARIANTS]):
        place = f"{_PLACE}[{at}]"
        try:
            one = _variant(read_parts(item, VariantPart, place), place, found)
        except (ContentError, RecipeError, RecursionError) as error:
            _LOG.warning("%s", error)
            continue
        variants.setdefault(one.id, one)
    return History(tuple(variants.values()), max(variants, default=-1) + 1)


def _variant(part: VariantPart, place: str, found: Callable[[str], str]) -> Variant:
    """Return a variant.

    Raises: ContentError, RecipeError if its number or its recipe is invalid
    """
    from inspector.recipes.paths import with_files
    from inspector.recipes.recipe import parse_recipe

    def moved(job: CompileJob) -> CompileJob:
        return with_files(job, lambda path: found(path) if "\0" not in path else path)

    if not 0 <= part.id < _MOST:
        raise ContentError("a number from 0", str(part.id), field="id", file=place)
    recipe = parse_recipe(json.dumps(part.recipe).encode(), f"{place}: recipe")
    recipe = replace(recipe, job=moved(recipe.job))
    present = _jobs([part.next], f"{place}: next")
    draft = Draft(recipe.job)
    if present:
        past, future = (
            tuple(map(moved, _jobs(jobs[:MOST_STEPS], f"{place}: past and future")))
            for jobs in (part.past, part.future)
        )
        draft = Draft(moved(present[0]), past, future)
    return Variant(
        part.id,
        str(recipe.job.source),
        recipe,
        draft,
        part.parent if part.parent is not None and 0 <= part.parent < part.id else None,
        tuple(found(path) for path in part.files if "\0" not in path),
        part.session,
        part.failure,
        part.unknown,
        part.facts,
    )


def _jobs(contents: Iterable[object], place: str) -> tuple[CompileJob, ...]:
    """Return the valid jobs, read as strictly as a recipe; the others are logged."""
    from inspector.recipes.compile_job import CompileJob
    from inspector.recipes.recipe import RecipeError, check_job

    jobs: list[CompileJob] = []
    for content in contents:
        try:
            job = from_json(content, CompileJob, place, closed=True)
            check_job(job, place)
        except (ContentError, RecipeError, RecursionError) as error:
            _LOG.warning("%s", error)
            continue
        jobs.append(job)
    return tuple(jobs)
