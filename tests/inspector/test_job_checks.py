"""Files and names of a recipe are checked before anything is exported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compiler.memory.planners import PLANNERS as PLANNED_BY
from inspector.cli import bisect as bisect_verb
from inspector.cli import compile as verb
from inspector.cli import gate_subject
from inspector.recipes.compile_job import EXECUTORCH, CompileJob, Precision, Quantization, Rules
from inspector.recipes.job_checks import job_problems, source_problems
from inspector.recipes.python_file import names_in
from inspector.recipes.recipe import Recipe
from inspector.recipes.source import Source as SourceOf
from inspector.worker import compile_job
from inspector.worker.exporter import AnswerError
from schema.recipe.planners import PLANNERS
from tests.inspector.cli_runs import run

MODEL = "def build():\n    raise RuntimeError('the export has begun')\n"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    found = tmp_path / "model.py"
    found.write_text(MODEL)
    return found


def job(model: Path, **more: object) -> CompileJob:
    return CompileJob(SourceOf(str(model), "build"), **more)


def of(found: CompileJob) -> list[tuple[str, str]]:
    return [(one.path, one.sentence) for one in job_problems(found)]


def test_files_that_cannot_be_used_are_found_without_running_them(model, tmp_path) -> None:
    own = tmp_path / "own.py"
    own.write_text("import torch\nraise RuntimeError('this was run')\nclass Mine: pass\n")
    assert of(job(model, partitioners=(f"{own}:Mine:a=1",))) == []
    broken = tmp_path / "broken.py"
    broken.write_text("x = 1\nclass Mine(:\n")
    needy = tmp_path / "needy.py"
    needy.write_text("import torch\nfrom no_such_package.parts import x\nclass Mine: pass\n")
    gone = tmp_path / "gone.py"
    for text, words in (
        (f"{gone}:Mine", f"{gone}: file not found"),
        (f"{broken}:Mine", f"{broken}:2: SyntaxError: "),
        (f"{own}:Other", f"{own} does not define 'Other'"),
        (f"{needy}:Mine", f"{needy}:2: ModuleNotFoundError: No module named 'no_such_package'"),
    ):
        for path, changed in (
            ("partitioners", job(model, partitioners=(text,))),
            ("memory_planner", job(model, memory_planner=text)),
            ("passes", job(model, passes=(text,))),
            ("quantising.quantizer", job(model, quantising=Quantization(quantizer=text))),
            ("quantising.calibration", job(model, quantising=Quantization("static", text))),
        ):
            ((field, sentence),) = of(changed)
            assert (field, sentence.startswith(words)) == (path, True), sentence


def test_names_are_checked_by_field(model) -> None:
    wrong = job(
        model,
        partitioners=("xnnpak",),
        rules=Rules(deny_dtypes=("f32",)),
        memory_planner="best",
        quantising=Quantization("static", modules=("blocks.0",)),
        precision=Precision(nodes=("a=int8",)),
        passes=("nothing",),
        backend_config=("colour=1",),
        edge_config=("colour=1",),
        libraries=("gone.so",),
    )
    assert [path for path, _ in of(wrong)] == [
        "partitioners",
        "rules.deny_dtypes",
        "memory_planner",
        "quantising.modules",
        "precision.nodes",
        "passes",
        "backend_config",
        "edge_config",
        "libraries",
    ]
    assert dict(of(wrong))["partitioners"].endswith("did you mean xnnpack?")
    other = replace(wrong, toolchain=EXECUTORCH)  # its names are known to its interpreter only
    assert "partitioners" not in dict(of(other))


def test_quantization_without_torchao_is_known_before(model, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torchao", None)
    assert of(job(model)) == []
    ((path, sentence),) = of(job(model, quantising=Quantization("static")))
    assert path == "quantising.mode"
    assert sentence.endswith("pip install torchao")


def test_source_is_checked_for_a_form(model, tmp_path) -> None:
    assert source_problems(job(model)) == ()
    for source, path in (
        (SourceOf(""), "source.path"),
        (SourceOf(str(tmp_path / "gone.pt2")), "source.path"),
        (SourceOf(str(model), ""), "source.function"),
        (SourceOf(str(model), "other"), "source.function"),
    ):
        assert [one.path for one in source_problems(CompileJob(source))] == [path]


@pytest.mark.parametrize(
    ("content", "function", "path", "words"),
    [
        ("def build(:\n", "", "source.path", "1: SyntaxError"),
        ('"""Nothing."""\n', "", "source.path", "defines no function"),
        ("def build(size): ...\n", "build", "source.function", "takes arguments"),
        ("if True:\n    def build(*, size): ...\n", "build", "source.function", "takes arguments"),
        ("@given\ndef build(size): ...\n", "build", "", ""),  # the decorator may give it
        ("from nets import build\n", "build", "", ""),
    ],
)
def test_function_is_checked_before_its_file_is_run(
    tmp_path: Path, content: str, function: str, path: str, words: str
) -> None:
    file = tmp_path / "net.py"
    file.write_text(content)
    found = source_problems(CompileJob(SourceOf(str(file), function)))
    assert [one.path for one in found] == ([path] if path else [])
    assert all(words in one.sentence for one in found)


def test_file_that_holds_no_program_is_known_before(tmp_path: Path) -> None:
    for name, data in (("model.pte", b"\0\0\0\0ET12"), ("notes.txt", b"hello"), ("m.pt2", b"")):
        (tmp_path / name).write_bytes(data)
        (found,) = source_problems(CompileJob(SourceOf(str(tmp_path / name))))
        assert "expected a .pt2 file or an ETRecord" in found.sentence
    (found,) = source_problems(CompileJob(SourceOf(str(tmp_path))))
    assert "is a folder" in found.sentence


def test_names_of_a_file_that_may_define_more_are_not_refused(tmp_path) -> None:
    file = tmp_path / "names.py"
    file.write_text(
        "try:\n    from fast import Quick\nexcept ImportError:\n    Quick = None\n"
        "if True:\n    def late(): ...\n"
        "one, *rest = 1, 2\nfor each in rest:\n    last = each\n"
    )
    found = names_in(str(file))
    assert all(map(found.defines, ("Quick", "late", "one", "rest", "each", "last")))
    assert not found.defines("other")
    assert found.imports == ()
    for text in ("from m import *", "globals()['x'] = 1", "def __getattr__(name): ..."):
        file.write_text(text + "\n")
        assert names_in(str(file)).defines("anything")


def test_command_line_refuses_before_a_worker_is_started(model, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(verb, "JobRun", lambda *_given, **_more: pytest.fail("a worker started"))
    answer = run(
        "compile", f"{model}:build", "--partitioner", "gone.py:Mine", "-o", tmp_path / "out"
    )
    assert answer.code == 2
    assert "gone.py: file not found" in answer.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb_name", ["bisect", "gate"])
def test_verbs_that_compile_a_recipe_refuse_it_as_early(
    verb_name, model, tmp_path, monkeypatch
) -> None:
    where = {"bisect": bisect_verb, "gate": gate_subject}[verb_name]
    monkeypatch.setattr(where, "JobRun", lambda *_given, **_more: pytest.fail("a worker started"))
    recipe = tmp_path / "recipe.json"
    recipe.write_text(Recipe(job(model, partitioners=("gone.py:Mine",))).text)
    bound = ("--bound", "size<=1MiB") if verb_name == "bisect" else ("--require", "size<=1MiB")
    answer = run(verb_name, recipe, *bound, "-o", tmp_path / "out")
    assert answer.code == 2
    assert "gone.py: file not found" in answer.err


def test_worker_refuses_before_the_source_is_loaded(model, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(compile_job, "compile_into", lambda *_given, **_more: pytest.fail("begun"))
    with pytest.raises(AnswerError, match="file not found"):
        compile_job.compile_built_in(job(model, passes=(f"{tmp_path}/gone.py:Mine",)), None)


def test_planners_are_those_of_the_compiler() -> None:
    assert list(PLANNERS) == list(PLANNED_BY)
