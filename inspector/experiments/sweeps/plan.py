"""The plan of a sweep: the points of a grid over a recipe, and what is done with each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.experiments.gates.requirement import EVAL
from inspector.experiments.sweeps.engine import Plan
from inspector.experiments.sweeps.grid import Grid, GridError, grid_of_axes, points_of
from inspector.experiments.sweeps.request import SweepRequest
from inspector.experiments.sweeps.results import Results
from inspector.experiments.sweeps.sensitivity import recorded_modules, sensitivity_grid
from inspector.experiments.sweeps.task import GAP_METRIC, SweepSettings
from inspector.files.digest import sha256_of
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.data_source import absolute
from inspector.recipes.emission import file_of
from inspector.recipes.recipe_file import read_recipe
from inspector.recipes.source import Source


def plan_of(
    recipe: str,
    job: CompileJob,
    grid: Grid,
    settings: SweepSettings,
    objectives: tuple[str, ...] = (),
) -> Plan:
    """Return the planned sweep, before it starts.

    Args:
        recipe: file of the recipe
        job: of the recipe
        grid: the varied fields
        settings: the measurements of each point
        objectives: metrics of the Pareto front; empty for the usual ones

    Raises: GridError, OSError
    """
    points = points_of(_placed(job), grid, sha256_of(job.source.path))
    chosen = objectives or usual_objectives(settings)
    return Plan(str(Path(recipe).absolute()), grid.fields, points, chosen, settings)


def plan_of_request(request: SweepRequest) -> Plan:
    """Return the plan of a request.

    Raises: GridError, RecipeError, FormatError, OSError
    """
    job = read_recipe(request.recipe).recipe.job
    if request.record:
        method = request.settings.method
        modules = recorded_modules(Path(request.record), job.quantising, method)
        grid = sensitivity_grid(job, modules)
    else:
        grid = grid_of_request(request)
    return plan_of(request.recipe, job, grid, request.settings)


def grid_of_request(request: SweepRequest) -> Grid:
    """Return the grid of a request: all combinations of its axes, or the points it lists.

    Raises: GridError
    """
    if not request.points:
        return grid_of_axes({name: list(values) for name, values in request.grid.items()})
    fields = tuple(request.points[0])
    try:
        return Grid(fields, tuple(tuple(one[name] for name in fields) for one in request.points))
    except KeyError as error:
        raise GridError(f"{error.args[0]} is missing in a point; other points have it") from error


def request_of_results(results: Results, workers: int = 0) -> SweepRequest:
    """Return the request that continues with a sweep, from its results alone."""
    nothing: Mapping[str, Any] = {}
    own = next((one.settings for one in results.points if one.settings), nothing)
    names = ("runs", "gap", "inputs", "device", "data", "metric", "samples", "method")
    settings = SweepSettings(**{name: own[name] for name in names if name in own})
    points = tuple(dict(one.changes) for one in results.points)
    return SweepRequest(results.recipe, {}, settings, workers, points)


def usual_objectives(settings: SweepSettings) -> tuple[str, ...]:
    """Return the metrics of the Pareto front of what a sweep measures."""
    first = ("latency",) if settings.runs else ("delegated", "arena")
    return (*first, "size", *((GAP_METRIC,) if settings.gap else ()), *_evaluated(settings))


def _evaluated(settings: SweepSettings) -> tuple[str, ...]:
    """Return the metric of the user, else the signal to noise, where there is a data set."""
    if not settings.data:
        return ()
    name = settings.metric[len(file_of(settings.metric)) + 1 :] if settings.metric else "snr"
    return (f"{EVAL}{name}",)


def _placed(job: CompileJob) -> CompileJob:
    """Return the job with its files by absolute paths: workers have folders of their own."""
    inputs = job.quantising.calibration
    how = replace(job.quantising, calibration=absolute(inputs) if inputs else "")
    source = Source(str(Path(job.source.path).absolute()), job.source.function)
    return replace(job, source=source, quantising=how)
