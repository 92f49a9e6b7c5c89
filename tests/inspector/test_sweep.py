"""Sweeps in worker processes: results, going on, lost processes, a full disk, Ctrl+C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.experiments.sweeps import engine
from inspector.experiments.sweeps.engine import LocalRunner, Plan, Sweep, run_to_end
from inspector.experiments.sweeps.grid import Point, parse_grid, points_of
from inspector.experiments.sweeps.results import POINTS, PointResult, Results, Status, read_results
from inspector.experiments.sweeps.task import PointTask, SweepSettings
from inspector.jobs.messages import Ended, Outcome
from inspector.jobs.output_folder import HIDDEN
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source
from tests.inspector.cli_runs import Run, run, valid

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SOURCE = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(8, 8)
        self.second = torch.nn.Linear(8, 4)
    def forward(self, x):
        return torch.sin(self.second(torch.relu(self.first(x))))
def net():
    return Net().eval(), (torch.ones(2, 8),)
"""
BROKEN = "class Nobody: ...\nraise RuntimeError('nobody')"  # a point with it fails


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recipe")
    (folder / "net.py").write_text(SOURCE)
    (folder / "nobody.py").write_text(BROKEN)
    job = {"source": {"path": str(folder / "net.py"), "function": "net"}}
    path = folder / "recipe.json"
    path.write_text(json.dumps({"recipe": 1, "job": {**job, "partitioners": ["xnnpack"]}}))
    return path


def sweep(*arguments: object) -> Run:
    return run("sweep", *map(str, arguments))


def points(answer: Run) -> list[dict[str, Any]]:
    return valid(answer, "sweep")["data"]["points"]


def left_behind(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(HIDDEN)]


# ---- one sweep, looked at from all sides
@pytest.fixture(scope="module")
def made(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    folder = tmp_path_factory.mktemp("made") / "sweep"
    values = f"none,xnnpack,{recipe.with_name('nobody.py')}:Nobody"
    grid = ("--grid", f"partitioners={values}", "--workers", "2")
    return folder, sweep(recipe, *grid, "-o", folder, "--format", "json")


@pytest.fixture(scope="module")
def more(made: tuple[Path, Run], recipe: Path) -> tuple[int, Run]:
    """The same folder, asked for one of the points, and for times and values of it."""
    folder, answer = made
    program = folder / points(answer)[1]["folder"] / "model.pte"
    before = program.stat().st_mtime_ns
    words = ("--grid", "partitioners=xnnpack", "--runs", "2", "--gap", "-o", folder)
    return before, sweep(recipe, *words, "--format", "json")


def test_sweep_makes_every_point_and_says_which_failed(made: tuple[Path, Run]) -> None:
    folder, answer = made
    assert answer.code == 4  # one point has failed
    portable, delegated, unknown = points(answer)
    assert [one["status"] for one in (portable, delegated, unknown)] == ["done", "done", "failed"]
    assert "nobody" in unknown["sentence"]
    assert unknown["attempts"] == 1
    assert (portable["metrics"]["delegated"], portable["metrics"]["delegates"]) == (0, 0)
    assert delegated["metrics"]["delegates"] >= 1
    for one in (portable, delegated):
        program = folder / one["folder"] / "model.pte"
        assert program.stat().st_size == one["metrics"]["size"]
        assert one["files"] == ["model.etrecord", "model.pte"]
        assert one["pareto"]
    assert not (folder / unknown["folder"]).exists()
    assert left_behind(folder) == []


def test_runs_asked_for_later_are_made_of_what_is_there(
    made: tuple[Path, Run], more: tuple[int, Run]
) -> None:
    folder, answer = made
    before, again = more
    assert again.code == 0, again.err
    (one,) = points(again)
    assert one["key"] == points(answer)[1]["key"]
    assert (folder / one["folder"] / "model.pte").stat().st_mtime_ns == before
    assert one["metrics"]["latency"] > 0
    assert one["metrics"]["gap.max_abs"] < 1e-4
    assert {"model.pte", "run/run.etdp", "numbers/values.debug"} <= set(one["files"])
    assert (folder / points(answer)[0]["folder"] / "model.pte").is_file()
    assert left_behind(folder) == []
    assert json.loads((folder / "results.json").read_text()) == {
        name: value for name, value in again.json["data"].items() if name != "folder"
    }
    assert read_results(folder).objectives == ("latency", "size", "gap.max_abs")


def test_gate_finds_the_metrics_of_the_sweep(made: tuple[Path, Run], more: tuple[int, Run]) -> None:
    (one,) = points(more[1])
    place, metrics = made[0] / one["folder"], one["metrics"]
    require = ["delegated>=0%", "delegates>=0", "arena>=0", "size>=0", "latency.mean>=0ms"]
    words = [word for text in require for word in ("--require", text)]
    files = [place / "model.pte", place / "model.etrecord", place / "run" / "run.etdp"]
    found = valid(run("gate", *files, *words, "--format", "json"), "gate")["data"]
    values = {each["metric"]: each["value"] for each in found["requirements"]}
    wanted = {**metrics, "latency.mean": metrics["latency"]}
    assert values == pytest.approx({name: wanted[name] for name in values})


def test_gate_of_the_recipe_of_a_point_makes_runs_and_compares_it(
    made: tuple[Path, Run], tmp_path: Path
) -> None:
    folder, answer = made
    one = points(answer)[1]
    place, kept = folder / one["folder"], tmp_path / "kept"
    words = ["delegated>=1%", "delegates>=9", "gap.max_abs<=1e-3", "gap.coverage>=90%"]
    require = [word for text in words for word in ("--require", text)]
    told = run("gate", place / "recipe.json", *require, "--keep", kept, "--format", "json")
    assert (told.code, told.err) == (1, "")
    data = valid(told, "gate")["data"]
    assert [each["met"] for each in data["requirements"]] == [True, False, True, True]
    assert data["requirements"][0]["value"] == pytest.approx(one["metrics"]["delegated"])
    assert (kept / "model.pte").read_bytes() == (place / "model.pte").read_bytes()
    assert left_behind(kept) == []

    program = kept / "model.pte"
    require = ["--require", "latency<=1.5x baseline", "--require", "latency>0.5x baseline"]
    words = ["--measure", "2", "--threads", "1", *require, "--format", "json"]
    timed = run("gate", program, *words, "--baseline", program)
    values = valid(timed, "gate")["data"]["requirements"]
    assert [each["statistics"]["blocks"] for each in values] == [2, 2]
    assert values[0]["value"] > 0
    assert values[0]["statistics"]["low"] <= values[0]["statistics"]["high"]


# ---- without processes: what the engine does with what runners tell
class Scripted:
    """A runner that tells what a test has written down, one point after the other."""

    def __init__(self, told: dict[int, list[Any]], stop_after: int | None = None) -> None:
        self.told, self.stop_after = told, stop_after
        self.begun: list[int] = []
        self.closed = False
        self._at_work: list[Point] = []

    def room(self) -> int:
        return 1 - len(self._at_work)

    def start(self, point: Point, known: PointResult | None) -> None:
        self.begun.append(point.number)
        self._at_work.append(point)

    def finished(self) -> list[tuple[PointResult, bool]]:
        if self.stop_after is not None and len(self.begun) > self.stop_after:
            raise KeyboardInterrupt
        return [self._result(self._at_work.pop()) for _ in list(self._at_work)]

    def _result(self, point: Point) -> tuple[PointResult, bool]:
        status, crashed = self.told.get(point.number, [(Status.DONE, False)]).pop(0)
        sentence = "lost" if status is Status.FAILED else ""
        found = PointResult(point.number, point.key, dict(point.changes), status, sentence)
        return found, crashed

    def at_work(self) -> list[str]:
        return [point.label for point in self._at_work]

    def close(self) -> None:
        self.closed = True
        self._at_work.clear()


def plan(count: int = 3) -> Plan:
    job = CompileJob(Source("model.py", "net"))
    grid = parse_grid([f"rules.min_nodes={','.join(map(str, range(1, count + 1)))}"])
    return Plan("recipe.json", grid.fields, points_of(job, grid, ""), ("size",), SweepSettings())


def ended(work: Plan, folder: Path, runner: Scripted, *, redo: bool = False) -> Results:
    return run_to_end(Sweep(work, folder, runner, redo=redo), lambda *_: None)


def test_point_whose_process_is_lost_is_begun_once_more(tmp_path: Path) -> None:
    told = {1: [(Status.FAILED, True), (Status.DONE, False)], 2: [(Status.FAILED, True)] * 2}
    runner = Scripted(told)
    found = ended(plan(), tmp_path, runner)
    assert runner.begun == [0, 1, 1, 2, 2]
    assert [one.status for one in found.points] == [Status.DONE, Status.DONE, Status.FAILED]
    assert [one.attempts for one in found.points] == [1, 2, 2]
    assert found.points[2].sentence == "lost"


def test_point_that_fails_is_not_begun_again_before_the_next_sweep(tmp_path: Path) -> None:
    first = Scripted({1: [(Status.FAILED, False)]})
    ended(plan(), tmp_path, first)
    second = Scripted({})
    found = ended(plan(), tmp_path, second)
    assert (first.begun, second.begun) == ([0, 1, 2], [1])
    assert found.count(Status.DONE) == 3


@pytest.mark.parametrize("stop_after", [0, 1, 2])
def test_interrupted_sweep_goes_on_where_it_was(tmp_path: Path, stop_after: int) -> None:
    runner = Scripted({}, stop_after)
    with pytest.raises(KeyboardInterrupt):
        ended(plan(), tmp_path, runner)
    assert runner.closed
    kept = read_results(tmp_path)
    assert kept.count(Status.DONE) == stop_after
    assert kept.count(Status.WAITING) == 3 - stop_after
    again = Scripted({})
    assert ended(plan(), tmp_path, again).count(Status.DONE) == 3
    assert again.begun == list(range(stop_after, 3))


def test_larger_grid_keeps_points_that_are_done(tmp_path: Path) -> None:
    ended(plan(2), tmp_path, Scripted({}))
    again = Scripted({})
    assert ended(plan(4), tmp_path, again).count(Status.DONE) == 4
    assert again.begun == [2, 3]
    everything = Scripted({})
    ended(plan(4), tmp_path, everything, redo=True)
    assert everything.begun == [0, 1, 2, 3]


@pytest.mark.parametrize("damage", ["", "{", '{"number": 0}', "[]", "[" * 10_000])
def test_damaged_point_is_made_again(tmp_path: Path, damage: str) -> None:
    ended(plan(2), tmp_path, Scripted({}))
    place = next((tmp_path / "points").glob(f"{plan(2).points[1].key}/point.json"))
    place.write_text(damage)
    again = Scripted({})
    ended(plan(2), tmp_path, again)
    assert again.begun == [1]


def test_full_disk_ends_the_sweep_with_its_sentence_and_keeps_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(plan(2), tmp_path, Scripted({}))
    before = (tmp_path / "results.json").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(engine.FolderError, match=r"results\.json cannot be written: No space left"):
        ended(plan(3), tmp_path, Scripted({}))
    monkeypatch.undo()
    assert (tmp_path / "results.json").read_bytes() == before
    assert left_behind(tmp_path) == []
    assert ended(plan(3), tmp_path, Scripted({})).count(Status.DONE) == 3


# ---- processes that are lost
class Stopped:
    """A worker's job that ends as a test says, once."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def take(self, _timeout: float = 0.0) -> list[Any]:
        return []

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("how", "crashed"),
    [
        (Ended.CRASHED, True),
        (Ended.NOT_STARTED, True),
        (Ended.FAILED, False),
        (Ended.TIMED_OUT, False),
    ],
)
def test_task_tells_a_lost_process_from_a_refusal(
    tmp_path: Path, how: Ended, crashed: bool
) -> None:
    point = plan().points[0]
    outcome = Outcome(how, "the sentence")
    task = PointTask(point, tmp_path / "p", SweepSettings(), compiler=lambda *_: Stopped(outcome))
    found = task.poll()
    assert found is not None
    assert (found.status, found.sentence, task.crashed) == (Status.FAILED, "the sentence", crashed)


@pytest.fixture
def one_point(recipe: Path) -> Point:
    from inspector.files.digest import sha256_of
    from inspector.recipes.recipe import parse_recipe

    job = parse_recipe(recipe.read_bytes(), "recipe").job
    return points_of(job, parse_grid(["rules.min_nodes=1"]), sha256_of(job.source.path))[0]


STAGES = ("compile", "run", "values", "gap")


def finish(task: PointTask) -> PointResult:
    while (found := task.poll(0.05)) is None:
        pass
    return found


def test_worker_killed_at_each_stage_loses_only_that_stage(
    made: tuple[Path, Run], one_point: Point, tmp_path: Path
) -> None:
    """Each part is killed the first time it begins; what was finished before is not done again."""
    known: PointResult | None = None
    settings, folder = SweepSettings(runs=1, gap=True), tmp_path / "p"
    for number, stage in enumerate(STAGES):
        if number == 1:  # as compiled before
            assert not folder.exists()
            shutil.copytree(made[0] / points(made[1])[1]["folder"], folder)
            (folder / "point.json").unlink()
            before = (folder / "model.pte").stat().st_mtime_ns
        task = PointTask(one_point, folder, settings, known)
        while not task.stage.startswith(stage):
            assert task.poll(0.05) is None, task.result
        os.kill(task._running._worker.pid, signal.SIGKILL)
        known = finish(task)
        assert task.crashed
        assert "killed (SIGKILL)" in known.sentence
        assert left_behind(tmp_path) == []
        assert ("latency" in known.metrics) is (number > 1)
    assert (folder / "model.pte").stat().st_mtime_ns == before
    assert not (folder / "point.json").exists()


# ---- the command
@pytest.fixture
def interrupted(recipe: Path, tmp_path: Path) -> Iterator[tuple[int, str, Path]]:
    folder = tmp_path / "sweep"
    code = "import sys; from inspector.cli import main; sys.exit(main())"
    words = ["sweep", str(recipe), "--grid", "rules.min_nodes=1,2", "-o", str(folder), "-v"]
    command = [sys.executable, "-c", code, *words, "--workers", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()  # a line a point: one is done
        process.send_signal(signal.SIGINT)
        said = first + process.stderr.read()
        yield process.wait(60), said, folder


def test_ctrl_c_keeps_what_is_done(interrupted: tuple[int, str, Path], recipe: Path) -> None:
    code, said, folder = interrupted
    assert code == 130, said
    assert "finished points are in" in said
    assert "Traceback" not in said
    kept = read_results(folder)
    assert kept.points[0].status is Status.DONE
    assert kept.points[1].status is Status.WAITING
    assert left_behind(folder) == []


def test_what_a_point_had_begun_to_write_goes_with_its_runner(tmp_path: Path) -> None:
    begun = tmp_path / POINTS / f"{HIDDEN}half" / "model.pte"
    begun.parent.mkdir(parents=True)
    begun.write_bytes(b"half")
    LocalRunner(tmp_path, SweepSettings(), 1).close()
    assert left_behind(tmp_path) == []
    assert begun.parents[1].is_dir()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "nothing to vary: use --grid FIELD=VALUE"),
        (["--grid", "rules.min_nodes=one"], 2, "--grid grid point rules.min_nodes=one: job.rules"),
        (["--grid", "none.json"], 3, "none.json"),
        (["--grid", "bad.json"], 2, "bad.json: expected a grid as JSON"),
        (
            ["--grid", "bad.json", "--grid", "rules.min_nodes=1"],
            2,
            "a file defines the entire grid",
        ),
        (["--grid", "rules.min_nodes=1", "--pareto", "beauty"], 2, "unknown metric 'beauty'"),
        (["--grid", "rules.min_nodes=1", "--inputs", "none.pt"], 3, "none.pt"),
        (["--grid", "rules.min_nodes=1"], 2, "-o DIR is missing"),
        (["--grid", "rules.min_nodes=1", "-o", "full"], 2, "exists and is not empty"),
        (["--grid", "rules.min_nodes=1", "-o", "bad.json"], 2, "is a file, not a folder"),
    ],
)
def test_wrong_usage_is_one_sentence_and_starts_nothing(
    recipe: Path,
    arguments: list[str],
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    answer = sweep(recipe, *arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (code, "", 1)
    assert words in answer.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.json", "full"]


def test_recipe_of_another_version_is_said(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text('{"recipe": 2, "job": {}}')
    answer = sweep(tmp_path / "recipe.json", "--grid", "rules.min_nodes=1", "-o", tmp_path / "out")
    assert answer.code == 3
    assert "recipe: expected version 1, found 2" in answer.err
