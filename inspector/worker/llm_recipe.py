"""Reads the configuration of a language model for a form."""

from __future__ import annotations

from typing import Any

from inspector.jobs.llm_recipe import LlmRecipeJob
from inspector.recipes.recipe import RecipeError
from inspector.toolchain.llm_recipe import llm_recipe, read_llm_config
from inspector.worker.exporter import AnswerError
from inspector.worker.tasks import Task
from schema.objects.codec import to_json


def work(job: LlmRecipeJob, _task: Task) -> dict[str, Any]:
    """Return the recipe that a configuration asks for.

    Raises: AnswerError with the path of an invalid key, OSError
    """
    try:
        return to_json(llm_recipe(job.source, read_llm_config(job.source)))
    except RecipeError as error:
        raise AnswerError(str(error)) from error
