"""`etscope compile --recipe`: the same bytes again, from the folder, the record or a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.inspector.cli_runs import Run, run, valid

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "tests" / "compiler" / "job_sources.py"
FILES = ("model.pte", "model.etrecord", "recipe.json")
OPTIONS = ("--partitioner", "xnnpack", "--deny-op", "aten.add.Tensor", "--memory-planner", "naive")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "out"
    answer = run("compile", f"{SOURCES}:products", "-o", folder, *OPTIONS)
    assert answer.code == 0, answer.err
    return folder


def same_files(one: Path, other: Path) -> bool:
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in FILES)


@pytest.mark.parametrize("name", ["recipe.json", "model.etrecord"])
def test_recipe_makes_the_same_bytes_again(made: Path, tmp_path: Path, name: str) -> None:
    answer = run("compile", "--recipe", made / name, "-o", tmp_path / "out")
    assert answer.code == 0, answer.err
    assert same_files(made, tmp_path / "out")


def test_script_makes_the_same_program(made: Path, tmp_path: Path) -> None:
    answer = run("compile", "--recipe", made / "recipe.json", "--as-python")
    assert answer.code == 0
    (tmp_path / "script.py").write_text(answer.out)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model.pte").read_bytes() == (made / "model.pte").read_bytes()


def test_script_in_json_is_valid_and_starts_nothing(made: Path) -> None:
    answer = run("compile", "--recipe", made / "recipe.json", "--as-python", "--format", "json")
    assert "deny_ops=('aten.add.Tensor',)" in valid(answer, "compile")["data"]["script"]


def test_changed_option_is_in_the_new_recipe(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    answer = run("compile", "--recipe", made / "recipe.json", "-o", folder, "--min-nodes", "50")
    assert answer.code == 0
    job = json.loads((folder / "recipe.json").read_text())["job"]
    assert (job["rules"]["min_nodes"], job["rules"]["deny_ops"]) == (50, ["aten.add.Tensor"])
    assert not same_files(made, folder)


def compile_with(*arguments: object) -> Run:
    return run("compile", *arguments)


def test_changed_source_is_said(tmp_path: Path) -> None:
    source = tmp_path / "net.py"
    source.write_text(
        "import torch\ndef net(): return torch.nn.Linear(2, 2).eval(), (torch.ones(1, 2),)\n"
    )
    assert compile_with(f"{source}:net", "-o", tmp_path / "a").code == 0
    source.write_text(source.read_text() + "\n")
    answer = compile_with("--recipe", tmp_path / "a" / "recipe.json", "-o", tmp_path / "b")
    assert answer.code == 0
    assert f"{source}: has changed since the recipe was made" in answer.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-o", "out"], 2, "what is to be compiled? SOURCE or --recipe FILE names it"),
        (["--recipe", "none.json", "-o", "out"], 3, "none.json"),
        (["--recipe", "damaged.json", "-o", "out"], 3, "damaged.json: expected a recipe as JSON"),
        (["--recipe", "damaged.etrecord", "-o", "out"], 3, "damaged.etrecord"),
        (["--recipe", "gone.json", "-o", "out"], 3, "nowhere.py"),
        (["--recipe", "gone.json"], 2, "where to? -o DIR names the folder"),
    ],
)
def test_compile_with_a_bad_recipe_is_one_sentence(
    arguments: list[str], code: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged.json").write_text("{")
    (tmp_path / "damaged.etrecord").write_bytes(b"PK\x03\x04" + bytes(30))
    source = {"path": "nowhere.py" if "-o" in arguments else str(SOURCES), "function": "good"}
    (tmp_path / "gone.json").write_text(json.dumps({"recipe": 1, "job": {"source": source}}))
    answer = run("compile", *arguments)
    assert (answer.code, answer.err.count("\n")) == (code, 1)
    assert words in answer.err
    assert not (tmp_path / "out").exists()
