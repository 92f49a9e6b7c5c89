"""Recipes as text: what was written is read, anything else is one sentence."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.cli.recipes import merged
from inspector.recipes.compile_job import (
    GRANULARITIES,
    QUANTIZING_MODES,
    CompileJob,
    Quantization,
    Rules,
)
from inspector.recipes.recipe import LARGEST, Recipe, RecipeError, parse_recipe, recipe_of
from inspector.recipes.recipe_file import read_recipe
from inspector.recipes.source import Source
from inspector.toolchain.recipe_script import python_script
from schema.recipe.passes import recipe_passes
from tests.inspector.sessions import DATA

SESSIONS = DATA / "corpus" / "v1.5.1"
_TEXTS = st.lists(st.text(max_size=5), max_size=2).map(tuple)
_RULES = st.builds(
    Rules,
    deny_ops=_TEXTS,
    allow_ops=_TEXTS,
    deny_nodes=_TEXTS,
    allow_modules=_TEXTS,
    deny_dtypes=_TEXTS,
    min_nodes=st.integers(1, 9),
    max_partitions=st.none() | st.integers(1, 9),
    granularity=st.sampled_from(GRANULARITIES),
)
_JOBS = st.builds(
    CompileJob,
    source=st.builds(
        Source,
        st.sampled_from(["a.py", "é'\"\n.pt2", 'x"""y.etrecord', "{0}.py"]),
        st.sampled_from(["f", "g"]),
    ),
    python=st.text(max_size=5),
    methods=_TEXTS,
    partitioners=_TEXTS,
    rules=_RULES,
    memory_planner=st.sampled_from(["", "greedy"]),
    passes=st.lists(st.sampled_from(recipe_passes()), max_size=2).map(tuple),
    backend_config=st.lists(
        st.sampled_from(["joint_arena=true", "alignment=32", "segment_alignment=64"]), max_size=3
    ).map(tuple),
    external_constants=st.booleans(),
    libraries=_TEXTS,
    quantising=st.builds(
        Quantization,
        mode=st.sampled_from(["", *QUANTIZING_MODES]),
        calibration=st.text(max_size=3),
        per_tensor=st.booleans(),
        modules=_TEXTS,
        operators=_TEXTS,
    ),
)


@settings(deadline=None)
@given(_JOBS, st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2))
def test_recipe_reads_what_it_writes(job: CompileJob, versions: dict[str, str]) -> None:
    recipe = Recipe(job, "0" * 64, versions)
    found = parse_recipe(recipe.text.encode(), "recipe.json")
    assert (found.job, found.source_sha256, found.made_with) == (job, "0" * 64, versions)
    assert found.text == recipe.text


@settings(deadline=None)
@given(_JOBS)
def test_script_of_any_job_is_python_and_names_its_source(job: CompileJob) -> None:
    tree = ast.parse(python_script(job))
    texts = {one.value for one in ast.walk(tree) if isinstance(one, ast.Constant)}
    assert job.source.path in texts
    assert {*job.partitioners, *job.libraries} <= texts
    assert set(job.rules.deny_ops) <= texts or not job.partitioners


def _content(**changes: Any) -> dict[str, Any]:
    job = CompileJob(Source("a.py", "f"), partitioners=("xnnpack",))
    return {**json.loads(Recipe(job).text), **changes}


def _job(**changes: Any) -> dict[str, Any]:
    content = _content()
    return _content(job={**content["job"], **changes})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "r.json: expected a recipe as JSON"),
        (b"\xff\xfe", "r.json: expected a recipe as JSON"),
        (b"[" * 100_000, "r.json: expected a recipe as JSON"),
        (b" " * (LARGEST + 1), "r.json: expected a recipe, found 1,048,577 bytes"),
        ([], "r.json: expected an object, found a list"),
        ({}, "r.json: recipe: expected version 1, found nothing"),
        (_content(recipe=True), "r.json: recipe: expected version 1, found true"),
        (
            _content(recipe=2, made_with={"etscope": "9.9"}),
            "recipe: expected version 1, found 2, which etscope 9.9 wrote",
        ),
        (_content(recipe=[2], made_with=[]), "r.json: recipe: expected version 1, found [2]"),
        ({"recipe": 1}, "r.json: job is missing"),
        (_content(recipe=2), "r.json: recipe: expected version 1, found 2"),
        (_content(colour="red"), "r.json: unknown colour; available: recipe, job"),
        (_content(job=None), "r.json: job: expected an object, found null"),
        (_content(job={}), "r.json: job: source is missing"),
        (_content(source_sha256=1), "r.json: source_sha256: expected a string, found 1"),
        (_content(made_with=[]), "r.json: made_with: expected an object, found []"),
        (_content(made_with={"a": 1}), "r.json: made_with.a: expected a string, found 1"),
        (_job(speed=1), "r.json: job: unknown speed; available: source"),
        (_job(source={}), "r.json: job.source: path is missing"),
        (_job(source={"path": 1}), "r.json: job.source.path: expected a string, found 1"),
        (_job(methods="forward"), "r.json: job.methods: expected a list, found 'forward'"),
        (
            _job(partitioners=["a", None]),
            "r.json: job.partitioners[1]: expected a string, found null",
        ),
        (_job(external_constants=1), "external_constants: expected true or false, found 1"),
        (_job(rules={"min_nodes": True}), "job.rules.min_nodes: expected an integer, found t"),
        (_job(rules={"max_partitions": "1"}), "expected an integer or null, found '1'"),
        (_job(rules={"granularity": "fine"}), "expected maximal, module, operator, found 'fine'"),
        (
            _job(quantising={"mode": "best"}),
            "mode: expected static, dynamic, weight-only, none, 8da4w, ",
        ),
        (_job(passes=["faster"]), "r.json: job.passes: unknown pass 'faster'; available: const"),
        (
            _job(backend_config=["alignment"]),
            "job.backend_config: 'alignment': expected NAME=VALUE of",
        ),
        (_job(backend_config=["alignment=-1"]), "'alignment=-1': expected an integer of bytes"),
        (
            _job(backend_config=["alignment=0000000000019999999999"]),
            "'alignment=0000000000019999999999': expected an integer of bytes",
        ),
        (_job(rules={"deny_op": []}), "r.json: job.rules: unknown deny_op"),
    ],
)
def test_recipe_that_is_none_is_one_sentence(content: Any, words: str) -> None:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    with pytest.raises(RecipeError) as caught:
        parse_recipe(data, "r.json")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_recipe_without_what_has_a_default_is_complete() -> None:
    content = _content(job={"source": {"path": "a.py", "function": "f"}})
    assert parse_recipe(json.dumps(content).encode(), "r").job == CompileJob(Source("a.py", "f"))


def test_recipe_knows_that_its_source_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("1")
    recipe = recipe_of(CompileJob(Source(str(path), "f")), {})
    assert not recipe.changed_source()
    path.write_text("2")
    assert recipe.changed_source()
    assert not replace(recipe, source_sha256="").changed_source(), "nothing is known"


def test_recipe_moved_with_its_source_finds_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    for path in ("/nowhere/at all/a.py", "C:\\Users\\me\\a.py"):
        text = Recipe(CompileJob(Source(path, "f"))).text
        (tmp_path / "recipe.json").write_text(text)
        found = read_recipe(str(tmp_path / "recipe.json")).recipe
        assert found.job.source == Source(str(tmp_path / "a.py"), "f")


_RELATIVE = CompileJob(
    Source("a.py", "f"),
    python="env/bin/python",
    partitioners=("xnnpack:x=1", "mine/own.py:Own:level=2"),
    quantising=Quantization("static", calibration="data.pt"),
)


def _files(folder: Path) -> CompileJob:
    return replace(
        _RELATIVE,
        source=Source(str(folder / "a.py"), "f"),
        python=str(folder / "env/bin/python"),
        partitioners=("xnnpack:x=1", f"{folder / 'mine/own.py'}:Own:level=2"),
        quantising=Quantization("static", calibration=str(folder / "data.pt")),
    )


def test_recipe_of_a_job_names_files_that_no_other_folder_changes(tmp_path, monkeypatch) -> None:
    (tmp_path / "a.py").write_text("1")
    monkeypatch.chdir(tmp_path)
    assert recipe_of(_RELATIVE, {}).job == _files(tmp_path)
    named = replace(_RELATIVE, python="python3")
    assert recipe_of(named, {}).job.python == "python3", "looked for on the path of programs"


@pytest.mark.parametrize("here", [True, False])
def test_recipe_with_relative_files_counts_them_from_its_own_folder(
    here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("recipes", "elsewhere"):
        for name in ("a.py", "env/bin/python", "mine/own.py", "data.pt"):
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("1")
    (tmp_path / "recipes" / "recipe.json").write_text(Recipe(_RELATIVE).text)
    monkeypatch.chdir(tmp_path / ("recipes" if here else "elsewhere"))
    path = "recipe.json" if here else "../recipes/recipe.json"
    assert read_recipe(path).recipe.job == _files(
        tmp_path / "recipes" if here else tmp_path / "elsewhere" / ".." / "recipes"
    )


@pytest.mark.parametrize(
    ("name", "found"), [("convnet_xnnpack", ("xnnpack",)), ("mm_portable", ())]
)
def test_recipe_of_a_stock_record_is_what_the_record_tells(name, found) -> None:
    folder = next(one for one in SESSIONS.iterdir() if one.name.startswith(name))
    path = str(folder / "model.etrecord")
    recipe = read_recipe(path)
    assert recipe.recipe.job == CompileJob(Source(path), partitioners=found)
    assert "no recipe in it: its passes, rules and memory planner are not recorded" in (
        recipe.unknown
    )


@pytest.mark.parametrize(
    ("name", "found"),
    [("vulkan_m1", ("vulkan",)), ("tosa_m1", ("tosa",)), ("coreml_m1", ("coreml",))],
)
def test_recipe_of_a_stock_record_has_the_partitioner_of_the_vendor(
    name: str, found: tuple[str, ...]
) -> None:
    recipe = read_recipe(str(DATA / "backends" / f"{name}.etrecord"))
    assert recipe.recipe.job.partitioners == found
    assert "has no partitioner here" not in recipe.unknown


def test_options_replace_only_what_was_asked_for() -> None:
    rules = Rules(deny_ops=("a",), min_nodes=3)
    known = CompileJob(Source("a.py", "f"), partitioners=("x",), rules=rules)
    assert merged(known, CompileJob(Source(""))) == known
    asked = CompileJob(Source("b.pt2"), rules=Rules(deny_ops=("b",)), memory_planner="greedy")
    assert merged(known, asked) == CompileJob(
        Source("b.pt2"),
        partitioners=("x",),
        rules=Rules(deny_ops=("b",), min_nodes=3),
        memory_planner="greedy",
    )
