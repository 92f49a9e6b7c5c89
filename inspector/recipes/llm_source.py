"""The configuration that the language model in a folder was compiled from."""

from __future__ import annotations

from pathlib import Path

from inspector.recipes.compile_job import Source, SourceKind
from inspector.recipes.recipe import RECIPE, RecipeError
from inspector.recipes.recipe_file import read_recipe


def llm_source(folder: Path) -> Source | None:
    """Return the configuration that the recipe of a folder names, None if it is not there."""
    recipe = folder / RECIPE
    if not recipe.is_file():
        return None
    try:
        source = read_recipe(str(recipe)).recipe.job.source
    except RecipeError:
        return None
    return source if source.kind is SourceKind.LLM and Path(source.path).is_file() else None
