"""`etscope compile --recipe`: the same bytes again, from the folder, the record or a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from schema.program import decode
from schema.program.model import Tensor
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


def run_script(text: str, folder: Path) -> None:
    (folder / "script.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_script_makes_the_same_program(made: Path, tmp_path: Path) -> None:
    answer = run("compile", "--recipe", made / "recipe.json", "--as-python")
    assert answer.code == 0
    run_script(answer.out, tmp_path)
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


CHANGES = (
    *("--partitioner", "demo-add-mul", "--partitioner", "xnnpack", "--move-up", "xnnpack"),
    *("--force-node", "aten_sin_default", "--cut-before", "aten_add_tensor"),
    *("--cut-after", "aten_mm_default", "--alone-node", "aten_add_tensor", "--alone-op", "aten.mm"),
    *("--deny-rule", "MMConfig", "--precision-op", "aten.sin=float64"),
    *("--precision-node", "aten_add_tensor=float16", "--precision-module", "nowhere=float16"),
    *("--pass", "duplicates", "--pass", "dead_code", "--backend-config", "segment_alignment=64"),
    *("--backend-config", "alloc_graph_input=false", "--backend-config", "emit_stacktrace=true"),
)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    folder = tmp_path_factory.mktemp("changed") / "out"
    answer = run("compile", f"{SOURCES}:products", "-o", folder, *CHANGES, "--format", "json")
    assert answer.code == 0, answer.err
    return folder, answer


def test_every_change_of_the_options_is_in_the_recipe(changed: tuple[Path, Run]) -> None:
    folder, answer = changed
    job = json.loads((folder / "recipe.json").read_text())["job"]
    assert job["partitioners"] == ["xnnpack", "demo-add-mul"]
    assert job["rules"]["force_nodes"] == ["aten_sin_default"]
    assert job["rules"]["cut_before"] == ["aten_add_tensor"]
    assert job["rules"]["cut_after"] == ["aten_mm_default"]
    assert job["rules"]["alone_nodes"] == ["aten_add_tensor"]
    assert job["rules"]["alone_ops"] == ["aten.mm"]
    assert job["rules"]["deny_rules"] == ["MMConfig"]
    assert job["precision"] == {
        "modules": ["nowhere=float16"],
        "operators": ["aten.sin=float64"],
        "nodes": ["aten_add_tensor=float16"],
    }
    assert job["passes"] == ["duplicates", "dead_code"]
    assert job["backend_config"] == [
        *("segment_alignment=64", "alloc_graph_input=false", "emit_stacktrace=true")
    ]
    (plan,) = decode((folder / "model.pte").read_bytes()).plans
    inputs = [plan.values[index].val for index in plan.inputs]
    assert all(isinstance(one, Tensor) and one.allocation_info is None for one in inputs)
    told = [one["message"] for one in valid(answer, "compile")["issues"]]
    assert "nowhere does not match any of the modules of the program" in told
    assert any(one.startswith("aten_sin_default: it cannot be forced in: ") for one in told)
    assert not any("cut" in one or "alone" in one for one in told)


def test_script_of_every_change_makes_the_same_program(
    changed: tuple[Path, Run], tmp_path: Path
) -> None:
    answer = run("compile", "--recipe", changed[0] / "recipe.json", "--as-python")
    run_script(answer.out, tmp_path)
    assert (tmp_path / "model.pte").read_bytes() == (changed[0] / "model.pte").read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--move-up", "other"), "unknown partitioner 'other' to move up; available: none"),
        (
            ("--precision-op", "aten.sin"),
            "'aten.sin': expected NAME=TYPE, found no '='; available: float16",
        ),
        (("--precision-node", "a=int8"), "'a=int8': expected NAME=TYPE, found 'int8'"),
        (("--pass", "nonsense"), "unknown pass 'nonsense'; available: constant_folding, "),
        (
            ("--backend-config", "alignment"),
            "'alignment': expected NAME=VALUE of the backend config",
        ),
        (("--backend-config", "passes=1"), "'passes=1': expected NAME=VALUE of the backend config"),
        (("--backend-config", "joint_arena=1"), "'joint_arena=1': expected true or false"),
        (("--backend-config", "alignment=x"), "'alignment=x': expected an integer of bytes"),
        (("--deny-rule", "AddConfig"), "rules for partitioners need a --partitioner"),
        (("--quantize-node", "linear"), "options about quantization need --quantize MODE"),
    ],
)
def test_change_without_meaning_is_one_sentence(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    answer = run("compile", f"{SOURCES}:products", "-o", tmp_path / "out", *options)
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert words in answer.err


def compile_with(*arguments: str | Path) -> Run:
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
    assert f"{source}: has changed since the recipe was written" in answer.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-o", "out"], 2, "nothing to compile: pass SOURCE or --recipe FILE"),
        (["--recipe", "none.json", "-o", "out"], 3, "none.json"),
        (["--recipe", "damaged.json", "-o", "out"], 3, "damaged.json: expected a recipe as JSON"),
        (["--recipe", "damaged.etrecord", "-o", "out"], 3, "damaged.etrecord"),
        (["--recipe", "gone.json", "-o", "out"], 3, "nowhere.py"),
        (["--recipe", "gone.json"], 2, "-o DIR is missing: it names the folder"),
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
