"""The other toolchain from the command line: wrong words, wrong interpreters, folders, crashes."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from inspector.jobs.messages import Ended
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import EXECUTORCH, CompileJob
from inspector.recipes.recipe import Recipe, RecipeError, parse_recipe
from inspector.recipes.source import Source
from inspector.toolchain.child import ReportedError, ignore_message
from inspector.toolchain.recipe_script import python_script
from inspector.worker.toolchain_compile import compile_with_executorch
from tests.inspector.cli_runs import Run, run, valid
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).with_name("toolchain_sources.py")
PROGRAM = DATA / "corpus/v1.5.1/mm_portable/model.pte"
PATIENCE = 100.0  # seconds


def python_with(folder: Path, files: dict[str, str]) -> str:
    """Return an interpreter whose ``executorch`` is made of these files."""
    for name, text in files.items():
        path = folder / "packages" / "executorch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    start = folder / "python"
    start.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/packages" exec {sys.executable} "$@"\n')
    start.chmod(start.stat().st_mode | stat.S_IXUSR)
    return str(start)


def stock(verb: str, python: str, folder: Path, *more: str) -> Run:
    what = f"{SOURCES}:mixed" if verb == "compile" else str(PROGRAM)
    options = ("--toolchain", EXECUTORCH, "--toolchain-python", python, *more)
    return run(verb, what, "-o", folder, *options)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--toolchain", "gcc"), "invalid choice: 'gcc'"),
        (("--toolchain-python", "/p"), "--toolchain-python needs --toolchain executorch"),
        (("--toolchain", "built-in", "--toolchain-python", "/p"), "needs --toolchain executorch"),
    ],
)
@pytest.mark.parametrize("verb", ["compile", "run"])
def test_words_that_contradict_each_other_are_wrong_usage(
    verb: str, words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    what = f"{SOURCES}:mixed" if verb == "compile" else str(PROGRAM)
    answer = run(verb, what, "-o", tmp_path / "out", *words)
    assert answer.code == 2
    assert said in answer.err
    assert list(tmp_path.iterdir()) == []


def test_two_interpreters_for_one_function_are_wrong_usage(tmp_path: Path) -> None:
    answer = stock("compile", "/p", tmp_path / "out", "--python", "/q")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "remove --python" in answer.err


def test_full_folder_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", "utf-8")
    for verb in ("compile", "run"):
        answer = stock(verb, "/none", tmp_path)
        assert (answer.code, [p.name for p in tmp_path.iterdir()]) == (2, ["mine.txt"])
        assert "is not empty; --force writes into it" in answer.err


def test_list_of_partitioners_is_ours_or_says_why_there_is_none(tmp_path: Path) -> None:
    ours = valid(run("compile", "--list-partitioners", "--format", "json"), "compile")["data"]
    assert "xnnpack" in {one["alias"] for one in ours["partitioners"]}
    answer = run(
        *("compile", "--list-partitioners", "--toolchain", EXECUTORCH),
        *("--toolchain-python", str(tmp_path / "none")),
    )
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "cannot be started" in answer.err


def test_package_that_crashes_is_one_sentence_and_the_folder_as_it_was(tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    python = python_with(home, {"__init__.py": "", "exir.py": "import os\nos.abort()\n"})
    answer = stock("compile", python, out)
    lines = [line for line in answer.err.splitlines() if line.startswith("etscope: ")]
    assert (answer.code, len(lines)) == (4, 1), answer.err
    assert "crashed (SIGABRT) in stage load executorch" in lines[0]
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise ImportError('built for another torch')\n", "ImportError: built for another torch"),
        (
            "import os\nos.write(1, b'{\"type\": \"finished\"}\\n')\nprint('noise')\n",
            "AttributeError: module 'executorch.exir' has no attribute 'to_edge'",
        ),
    ],
)
def test_package_of_another_kind_is_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    for folder in (home, out):
        folder.mkdir()
    python = python_with(home, {"__init__.py": "", "exir.py": text})
    job = CompileJob(Source(str(SOURCES), "mixed"), python, toolchain=EXECUTORCH)
    with pytest.raises(ReportedError) as caught:
        compile_with_executorch(job, out, ignore_message)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_package_that_never_ends_is_ended_with_its_job(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    python = python_with(home, {"__init__.py": "", "exir.py": "import time\ntime.sleep(600)\n"})
    job = CompileJob(Source(str(SOURCES), "mixed"), python, toolchain=EXECUTORCH)
    running = JobRun(job, tmp_path / "out", timeout=PATIENCE)
    try:
        while running.outcome is None:
            told = running.take(0.1)
            if any(getattr(one, "stage", "") == "load executorch" for one in told):
                running.cancel()
        assert running.outcome.ended is Ended.CANCELLED
        assert running.outcome.sentence == "cancelled in stage load executorch"
    finally:
        running.close()
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_recipe_keeps_the_toolchain_and_refuses_others() -> None:
    job = CompileJob(Source("a.py", "f"), toolchain=EXECUTORCH)
    text = Recipe(job).text
    assert parse_recipe(text.encode(), "r").job == job
    with pytest.raises(RecipeError, match=r"r: job\.toolchain: expected built-in, executorch"):
        parse_recipe(text.replace(EXECUTORCH, "gcc").encode(), "r")
    script = python_script(job)
    compile(script, "script", "exec")
    names: dict[str, object] = {}
    line = next(one for one in script.splitlines() if one.startswith("RECIPE = "))
    exec(line, names)
    assert json.loads(str(names["RECIPE"]))["job"]["toolchain"] == EXECUTORCH
