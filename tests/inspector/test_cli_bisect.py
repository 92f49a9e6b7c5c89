"""`etscope bisect` on real programs: culprits are found, states survive, wrong words are told."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from inspector.jobs.bisect import BisectJob
from inspector.jobs.bisect_trials import BisectState, read_state
from inspector.jobs.messages import Ended, Tried
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import CompileJob, Rules
from inspector.recipes.recipe import Recipe, parse_recipe
from inspector.recipes.source import Source
from inspector.worker import exporter
from inspector.worker.bisect_job import bisect
from tests.compiler import guard_sources
from tests.inspector.cli_runs import Run, run, valid

pytestmark = pytest.mark.slow

SOURCES = Path(str(guard_sources.__file__))
BOLD = f"{SOURCES.with_name('bold_partitioner.py')}:Bold"
BOUND = "output.max_abs<=1e-6"


@pytest.fixture(autouse=True)
def _warnings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "redirect_logs", lambda _say: None)


def job_of(function: str, *partitioners: str) -> CompileJob:
    return CompileJob(Source(str(SOURCES), function), partitioners=partitioners)


def recipe_in(folder: Path, job: CompileJob) -> Path:
    path = folder / "recipe.json"
    path.write_text(Recipe(job).text, "utf-8")
    return path


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a bisection that was stopped after some trials."""
    folder = tmp_path_factory.mktemp("bisected")
    job = BisectJob(job_of("rough", BOLD), BOUND, engine="torch")
    running = JobRun(job, folder)
    tried = 0
    try:
        while running.outcome is None:
            tried += sum(isinstance(one, Tried) for one in running.take(0.2))
            if tried >= 4:
                running.cancel()
                break
        outcome = running.wait()
    finally:
        running.close()
    assert outcome is not None
    assert outcome.ended is Ended.CANCELLED
    return folder


@pytest.fixture(scope="module")
def found(stopped: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """Return the folder of a bisection that was resumed, and what the command answered."""
    folder = tmp_path_factory.mktemp("resumed")
    shutil.copytree(stopped, folder, dirs_exist_ok=True)
    recipe = recipe_in(tmp_path_factory.mktemp("recipe"), job_of("rough", BOLD))
    words = ("--bound", BOUND, "--engine", "torch", "--format", "json")
    return folder, run("bisect", recipe, "-o", folder, *words)


def test_bad_node_among_two_hundred_is_found_and_the_search_goes_on_where_it_was(
    stopped: Path, found: tuple[Path, Run]
) -> None:
    folder, answer = found
    before = read_state(stopped / "bisect.json")
    assert before is not None
    assert len(before.trials) >= 4
    assert answer.code == 0, answer.err
    data = valid(answer, "bisect")["data"]
    assert data["candidates"] >= 200
    assert [(one["node"], one["operator"]) for one in data["nodes"]] == [
        ("gelu_1", "aten.gelu.default")
    ]
    line = next(
        at
        for at, text in enumerate(SOURCES.read_text("utf-8").splitlines(), 1)
        if text.endswith("# line: rough")
    )
    assert data["nodes"][0]["source"] == f"{SOURCES}:{line}"
    assert data["nodes"][0]["rule"] == "GeluConfig"
    assert data["before"]["value"] > 1e-5
    assert data["after"]["value"] <= 1e-6
    assert len(data["trials"]) <= 20
    after = read_state(folder / "bisect.json")
    assert after is not None
    assert after.trials[: len(before.trials)] == before.trials
    repaired = parse_recipe((folder / "recipe.json").read_bytes(), "recipe.json").job
    assert repaired.rules == Rules(deny_nodes=("gelu_1",))


def here(job: BisectJob, folder: Path, state: BisectState | None = None) -> tuple[Any, list[str]]:
    """Bisect in this process; return what was found and the kinds of what was said."""
    said: list[str] = []
    known = state or BisectState("")
    how = {
        "candidates": [asdict(one) for one in known.candidates],
        "trials": [asdict(one) for one in known.trials],
    }
    return bisect(job, folder, lambda kind, **_: said.append(kind), how), said


def test_finished_search_answers_again_without_a_trial(
    found: tuple[Path, Run], tmp_path: Path
) -> None:
    state = read_state(found[0] / "bisect.json")
    answer, said = here(BisectJob(job_of("rough", BOLD), BOUND, engine="torch"), tmp_path, state)
    assert [one["name"] for one in answer["nodes"]] == ["gelu_1"]
    assert "tried" not in said


def test_state_of_another_bisection_is_not_gone_on_with(stopped: Path, tmp_path: Path) -> None:
    recipe = recipe_in(tmp_path, job_of("rough", BOLD))
    answer = run("bisect", recipe, "-o", stopped, "--bound", "output.max_abs<=1e-3")
    assert answer.code == 2
    assert "belongs to another bisection; --force starts over" in answer.err


METRICS = [
    ("delegates<=1", "nothing to do", 1),
    ("output.snr_db>=60", "nothing to do", 1),
    ("gap.max_abs<=1e-4", "nothing to do", 1),
    ("gap.coverage>=99%", "nothing to do", 1),
    ("latency<=60s", "nothing to do", 1),
    ("loads", "nothing to do", 1),
    ("size<=10B", "not due to delegation", 2),
    ("latency<=1ns", "not due to delegation", 2),
    ("delegates<=0", "found", 0),
]


@pytest.mark.parametrize(("bound", "result", "trials"), METRICS)
def test_every_metric_can_be_asked_for(
    bound: str, result: str, trials: int, tmp_path: Path
) -> None:
    answer, said = here(BisectJob(job_of("plain", "xnnpack"), bound, engine="torch"), tmp_path)
    assert answer["result"] == result
    assert said.count("tried") == trials or not trials
    if result == "found":
        assert answer["nodes"]
        assert answer["after"]["value"] == 0


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--bound", "loads"), 2, "-o DIR is missing: it names the folder"),
        (("--bound", "speed<=3", "-o", "out"), 2, "no metric 'speed'"),
        (("--bound", "latency<=1.1x baseline", "-o", "out"), 2, "has no baseline"),
        (("--bound", "loads", "-o", "taken"), 2, "--force replaces it"),
    ],
)
def test_wrong_words_are_refused_before_anything_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    recipe_in(tmp_path / "taken", job_of("plain"))
    answer = run("bisect", recipe_in(tmp_path, job_of("plain", "xnnpack")), *words)
    assert answer.code == code
    assert sentence in answer.err


def test_recipe_without_partitioner_is_refused_in_a_sentence(tmp_path: Path) -> None:
    answer = run("bisect", recipe_in(tmp_path, job_of("plain")), "-o", tmp_path, "--bound", "loads")
    assert answer.code == 2
    assert "names no partitioner" in answer.err


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"bisect": 9})])
def test_damaged_state_is_refused_with_its_file(tmp_path: Path, content: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "bisect.json").write_text(content, "utf-8")
    recipe = recipe_in(tmp_path, job_of("plain", "xnnpack"))
    answer = run("bisect", recipe, "-o", out, "--bound", "loads")
    assert answer.code == 3
    assert "bisect.json" in answer.err
    assert "--force starts over" in answer.err


def test_folder_without_a_recipe_and_files_that_are_none_are_named(tmp_path: Path) -> None:
    answer = run("bisect", tmp_path, "-o", tmp_path / "out", "--bound", "loads")
    assert (answer.code, "has no recipe.json and no ETRecord" in answer.err) == (3, True)
    other = tmp_path / "model.pte"
    other.write_bytes(b"\0" * 64)
    answer = run("bisect", other, "-o", tmp_path / "out", "--bound", "loads")
    assert (answer.code, "is a recipe or an ETRecord" in answer.err) == (2, True)
