"""A sweep as a request: its plan, its price, and how it goes on from its results alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.experiments.sweeps.grid import GridError, grid_of_axes
from inspector.experiments.sweeps.plan import (
    grid_of_request,
    plan_of_request,
    request_of_results,
    usual_objectives,
)
from inspector.experiments.sweeps.price import KnownTimes, price_text, seconds_of_sweep
from inspector.experiments.sweeps.request import SweepRequest, sweep_command
from inspector.experiments.sweeps.results import PointResult, Results, Status
from inspector.experiments.sweeps.task import SweepSettings
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.recipe import Recipe
from inspector.recipes.source import Source
from tests.inspector.cli_runs import run


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    source = tmp_path / "net.py"
    source.write_text("def build(): ...")
    path = tmp_path / "recipe.json"
    path.write_text(Recipe(CompileJob(Source(str(source), "build"))).text)
    return str(path)


def test_plan_has_all_combinations_once(recipe: str) -> None:
    request = SweepRequest(
        recipe, {"rules.min_nodes": [1, 2, 1], "partitioners": [[], ["xnnpack"]]}
    )
    plan = plan_of_request(request)
    assert plan.fields == ("rules.min_nodes", "partitioners")
    assert len(plan.points) == 4
    assert plan.objectives == ("delegated", "arena", "size")
    assert usual_objectives(SweepSettings(3, True)) == ("latency", "size", "gap.max_abs")
    with pytest.raises(GridError, match="nobody"):
        plan_of_request(SweepRequest(recipe, {"nobody": [1]}))


def test_price_is_of_compiles_and_runs_side_by_side() -> None:
    known = KnownTimes(6.0, 3.0)
    assert seconds_of_sweep(4, SweepSettings(), 1, known) == 24.0
    assert seconds_of_sweep(4, SweepSettings(5), 2, known) == 18.0
    assert seconds_of_sweep(4, SweepSettings(5, True), 2, known) == 30.0
    assert seconds_of_sweep(1, SweepSettings(), 8, known) == 6.0
    assert price_text(40, SweepSettings(5), 2, known) == (
        "40 points · about 3 min with 2 at once (last compile 6 s, run 3 s)"
    )
    assert price_text(1, SweepSettings(), 2, KnownTimes()).endswith("was not compiled here yet")
    unknown = price_text(2, SweepSettings(5), 1, KnownTimes(6.0))
    assert unknown.endswith("run not counted, none is known)")
    evaluated = price_text(2, SweepSettings(data="data.py:batches"), 1, known)
    assert evaluated.endswith("evaluation not counted)")
    reported = price_text(2, SweepSettings(), 1, KnownTimes(6.0, started=False))
    assert reported.endswith("(last compile 6 s without the start of its worker)")


def test_sweep_goes_on_from_its_results_alone(recipe: str) -> None:
    rows = [{"rules.min_nodes": 1, "partitioners": []}, {"rules.min_nodes": 4, "partitioners": []}]
    settings = SweepSettings(7, True, "ones")
    done = PointResult(0, "a", rows[0], Status.DONE, settings=settings.content())
    waiting = PointResult(1, "b", rows[1])
    fields = ("rules.min_nodes", "partitioners")
    request = request_of_results(Results(recipe, fields, (done, waiting), ("size",)))
    assert request.settings == settings
    assert grid_of_request(request).rows == ((1, []), (4, []))
    assert len(plan_of_request(request).points) == 2
    command = sweep_command(request, "out")
    content = command.partition("\n")[2].partition("\nEND_OF_GRID")[0]
    assert json.loads(content) == rows
    assert "--grid=job-grid.json" in command


def test_grid_that_is_too_large_is_refused() -> None:
    with pytest.raises(GridError, match="at most"):
        grid_of_axes({"a": list(range(200)), "b": list(range(200))})


@pytest.mark.parametrize(
    ("axis", "words"),
    [
        ("partitioners=xnnpack,xnpack", "unknown partitioner 'xnpack'; did you mean xnnpack?"),
        ("memory_planner=greedy,gredy", "unknown memory planner 'gredy'"),
        ("rules.deny_dtypes=float32,floot", "unknown dtype 'floot'"),
        ("rules.min_nodes=2,0", "expected a number of at least 1, found 0"),
    ],
)
def test_the_command_refuses_a_value_that_no_point_could_have(
    recipe: str, axis: str, words: str, tmp_path: Path
) -> None:
    answer = run("sweep", recipe, "--grid", axis, "-o", tmp_path / "out")
    assert answer.code == 2
    assert f"--grid {axis.partition('=')[0]}: {words}" in answer.err
    assert not (tmp_path / "out").exists()
