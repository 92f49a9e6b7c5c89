"""Values of a field that no compile could use, known before any point of a sweep is made."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from inspector.experiments.sweeps.grid import Grid, GridError, points_of
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.job_checks import job_problems


def value_problem(job: CompileJob, field: str, values: Iterable[Any]) -> str:
    """Return why a recipe with one of some values of a field cannot be compiled, else empty.

    What only a combination of fields rules out is left to its point.
    """
    for value in values:
        try:
            (point,) = points_of(job, Grid((field,), ((value,),)), "")
        except GridError as error:
            return str(error).partition(f"job.{field}: ")[2] or str(error)
        wrong = (one.sentence for one in job_problems(point.job) if one.path == field)
        if found := next(wrong, ""):
            return found
    return ""


def check_values(job: CompileJob, grid: Grid) -> None:
    """Refuse a grid with a value that no compile could use.

    Raises: GridError for the first one
    """
    for field, column in zip(grid.fields, zip(*grid.rows, strict=True), strict=True):
        values = {json.dumps(value): value for value in column}
        if problem := value_problem(job, field, values.values()):
            raise GridError(f"{field}: {problem}")
