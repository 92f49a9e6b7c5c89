"""The configuration that the language model in a folder was compiled from."""

from __future__ import annotations

from pathlib import Path

from inspector.recipes.compile_job import RECORD, CompileJob
from inspector.recipes.recipe import RECIPE, Recipe, RecipeError
from inspector.recipes.recipe_file import read_recipe
from inspector.recipes.source import Source, SourceKind
from schema.errors import FormatError

_MOST_STEPS = 8  # from a record to the one that it was compiled from


def llm_recipe_in(folder: Path) -> Recipe | None:
    """Return the recipe of a folder, None unless the configuration that it names is there.

    The source is always the configuration: where a program was compiled from a record, that of
    the recipe in the record, if the file is still the one that was compiled.
    """
    place = next((one for name in (RECIPE, RECORD) if (one := folder / name).is_file()), None)
    found = None if place is None else _recipe(place)
    first = found
    for _ in range(_MOST_STEPS):
        if found is None or first is None or not Path(found.job.source.path).is_file():
            return None
        if found.job.source.kind is SourceKind.LLM:
            return first.compiled_from(found)
        if found.job.source.kind is not SourceKind.RECORD or not _is_unchanged(found):
            return None
        found = _recipe(Path(found.job.source.path))
    return None


def llm_job(folder: Path) -> CompileJob | None:
    """Return the compile in the recipe of a folder, with its configuration as source."""
    recipe = llm_recipe_in(folder)
    return None if recipe is None else recipe.job


def llm_source(folder: Path) -> Source | None:
    """Return the configuration that the recipe of a folder names, None if it is not there."""
    job = llm_job(folder)
    return None if job is None else job.source


def _recipe(path: Path) -> Recipe | None:
    try:
        return read_recipe(str(path)).recipe
    except (RecipeError, FormatError, OSError):
        return None


def _is_unchanged(recipe: Recipe) -> bool:
    try:
        return bool(recipe.source_sha256) and not recipe.changed_source()
    except OSError:
        return False
