"""The recipe that the configuration of a language model asks for, as a job for a worker."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.jobs.run import finished
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.recipe import RecipeError
from inspector.recipes.source import Source


@dataclass(frozen=True, slots=True)
class LlmRecipeJob:
    """A request: the groups of a configuration as fields of a recipe; nothing is written.

    Attributes:
        source: a ``.yaml`` file, with settings
    """

    source: Source


def asked_recipe(source: Source) -> CompileJob:
    """Return the recipe that a configuration asks for; takes as long as a worker starts.

    Raises: RecipeError with the path of an invalid key, or if the worker fails
    """
    return finished(LlmRecipeJob(source), RecipeError).result
