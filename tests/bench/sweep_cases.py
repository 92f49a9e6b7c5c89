"""Benchmark of sweeps: the points of a grid on one worker and on two."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from inspector.experiments.sweeps.engine import LocalRunner, Plan, Sweep, run_to_end
from inspector.experiments.sweeps.grid import parse_grid, points_of
from inspector.experiments.sweeps.results import Status
from inspector.experiments.sweeps.task import SweepSettings
from inspector.files.digest import sha256_of
from inspector.recipes.recipe import parse_recipe
from tests.bench.result import Result

_SOURCE = """
import torch
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(32, 32, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(32)
    def forward(self, x):
        return torch.relu(self.norm(self.conv(x))) + torch.sin(x)
def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(*(Block() for _ in range(24))).eval(), (torch.ones(1, 32, 16, 16),)
"""
_GRID = (
    "rules.min_nodes=1,2,3,4",
    "memory_planner=naive,greedy",
    "rules.granularity=maximal,module",
    "external_constants=true,false",
)
_POINTS, _RUNS = 32, 5


def sweeping(folder: Path) -> Iterable[Result]:
    """A sweep of 32 points on two workers against one; each is compiled and run five times."""
    place = folder / "sweep"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    seconds = {workers: _seconds(place, workers) for workers in (1, 2)}
    shutil.rmtree(place, ignore_errors=True)
    detail = f"one worker {seconds[1]:.1f} s, two {seconds[2]:.1f} s"
    ratio = seconds[1] / seconds[2]
    yield Result("sweep of 32 points, two workers against one", ratio, "x", 1.7, True, detail)


def _seconds(place: Path, workers: int) -> float:
    source = place / "net.py"
    source.write_text(_SOURCE, "utf-8")
    job = {"source": {"path": str(source), "function": "net"}, "partitioners": ["xnnpack"]}
    recipe = parse_recipe(json.dumps({"recipe": 1, "job": job}).encode(), "recipe")
    grid = parse_grid(_GRID)
    points = points_of(recipe.job, grid, sha256_of(str(source)))
    assert len(points) == _POINTS
    plan = Plan("recipe", grid.fields, points, ("latency", "size"), SweepSettings(runs=_RUNS))
    made = place / str(workers)
    runner = LocalRunner(made, plan.settings, workers)
    start = time.perf_counter()
    found = run_to_end(Sweep(plan, made, runner), lambda *_: None)
    spent = time.perf_counter() - start
    assert found.count(Status.DONE) == _POINTS, [one.sentence for one in found.points]
    return spent


SWEEP_CASES = (sweeping,)
