"""A recipe of the other toolchain as a Python script."""

from __future__ import annotations

from inspector.recipes.compile_job import CompileJob
from inspector.recipes.recipe import Recipe

_SCRIPT = '''"""Compiles a program with the executorch package, by its recipe.

Run it in an environment that has ETScope installed; files are written to the current folder.
"""

from pathlib import Path

from inspector.recipes.recipe import parse_recipe
from inspector.worker.toolchain_compile import compile_with_executorch

RECIPE = {recipe!r}

job = parse_recipe(RECIPE.encode(), "RECIPE").job
compile_with_executorch(job, Path(), lambda *_, **__: None)
'''


def stock_script(job: CompileJob) -> str:
    """Return a script that compiles as a job does."""
    return _SCRIPT.format(recipe=Recipe(job).text)
