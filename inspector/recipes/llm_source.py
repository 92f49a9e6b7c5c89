"""The configuration that the language model in a folder was compiled from."""

from __future__ import annotations

from pathlib import Path

from inspector.recipes.compile_job import CompileJob
from inspector.recipes.recipe import RECIPE, RecipeError
from inspector.recipes.recipe_file import read_recipe
from inspector.recipes.source import Source, SourceKind


def llm_job(folder: Path) -> CompileJob | None:
    """Return the compile in the recipe of a folder, None unless its configuration is there."""
    recipe = folder / RECIPE
    if not recipe.is_file():
        return None
    try:
        job = read_recipe(str(recipe)).recipe.job
    except RecipeError:
        return None
    source = job.source
    return job if source.kind is SourceKind.LLM and Path(source.path).is_file() else None


def llm_source(folder: Path) -> Source | None:
    """Return the configuration that the recipe of a folder names, None if it is not there."""
    job = llm_job(folder)
    return None if job is None else job.source
