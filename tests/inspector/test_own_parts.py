"""Passes, planners, quantizers and edge configs of the user's own, by command line and recipe."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from devtools_app.state.compile_form import CompileForm, form_content, form_from
from inspector.recipes.compile_job import CompileJob, Quantization, code_files
from inspector.recipes.paths import found_beside, placed
from inspector.recipes.recipe import Recipe, RecipeError, parse_recipe
from inspector.recipes.source import Source
from runtime import Runtime
from schema.program import decode
from tests.inspector.cli_runs import Run, run, valid
from tests.inspector.own_parts import net
from tests.inspector.test_cli_recipe import run_script, same_files

OWN = Path(__file__).with_name("own_parts.py")
KEEPS_LINEAR = "preserve_ops=aten.linear.default"
EXPECTED = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "sin": torch.sin,
}


def compiled(folder: Path, *options: object) -> Run:
    return run("compile", f"{OWN}:net", "-o", folder, *options)


def options_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "compile.json").read_text())["options"]


def operators(folder: Path) -> set[str]:
    return {
        one.name for one in decode((folder / "model.pte").read_bytes()).execution_plan[0].operators
    }


def output(folder: Path) -> torch.Tensor:
    method = Runtime.get().load_program(folder / "model.pte").load_method("forward")
    return method.execute(net()[1])[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "activation"),
    [
        (f"{OWN}:ReluTo", "sigmoid"),
        (f"{OWN}:ReluTo:name=sin", "sin"),
        (f"{OWN}:relu_to_tanh", "tanh"),
    ],
    ids=["class", "class with options", "function"],
)
def test_pass_in_a_file_changes_the_program(word: str, activation: str, tmp_path: Path) -> None:
    first = compiled(tmp_path / "a", "--pass", word, "--pass", "duplicates", "--format", "json")
    assert first.code == 0, first.err
    valid(first, "compile")
    assert options_of(tmp_path / "a")["passes"] == [word, "duplicates"]
    model, inputs = net()
    expected = model.second(EXPECTED[activation](model.first(*inputs)))
    torch.testing.assert_close(output(tmp_path / "a"), expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "distance"),
    [(f"{OWN}:one_after_the_other", 4096), (f"{OWN}:Roomy", 1024)],
    ids=["algorithm", "pass"],
)
def test_planner_in_a_file_places_the_values(word: str, distance: int, tmp_path: Path) -> None:
    answer = compiled(tmp_path / "a", "--memory-planner", word)
    assert answer.code == 0, answer.err
    plan = decode((tmp_path / "a" / "model.pte").read_bytes()).execution_plan[0]
    places = [
        value.val.allocation_info.memory_offset_low
        for value in plan.values
        if getattr(value.val, "allocation_info", None) is not None
    ]
    assert len(set(places)) > 2
    assert all(place % distance == 0 for place in places)
    model, inputs = net()
    torch.testing.assert_close(output(tmp_path / "a"), model(*inputs))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["FirstLayerOnly", "second_layer_only"])
def test_quantizer_in_a_file_decides_what_is_quantized(name: str, tmp_path: Path) -> None:
    answer = compiled(tmp_path / "a", "--quantizer", f"{OWN}:{name}")
    assert answer.code == 0, answer.err
    found = operators(tmp_path / "a")
    assert {"quantized_decomposed::quantize_per_tensor", "aten::addmm"} <= found
    model, inputs = net()
    torch.testing.assert_close(output(tmp_path / "a"), model(*inputs), atol=0.05, rtol=0.05)


@pytest.mark.slow
def test_edge_config_keeps_an_operator_whole(tmp_path: Path) -> None:
    answer = compiled(tmp_path / "a", "--edge-config", KEEPS_LINEAR, "--format", "json")
    assert answer.code == 0, answer.err
    assert options_of(tmp_path / "a")["edge_config"] == [KEEPS_LINEAR]
    assert operators(tmp_path / "a") == {"aten::linear", "aten::relu"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--pass", f"{OWN}:ReluTo:name=sin", "--memory-planner", f"{OWN}:Roomy"),
        ("--quantizer", f"{OWN}:FirstLayerOnly", "--pass", f"{OWN}:relu_to_tanh"),
        ("--edge-config", KEEPS_LINEAR, "--memory-planner", f"{OWN}:one_after_the_other"),
    ],
    ids=["pass", "quantizer", "edge config"],
)
def test_recipe_and_script_of_own_parts_make_the_same_program(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    assert compiled(tmp_path / "a", *options).code == 0
    recipe = tmp_path / "a" / "recipe.json"
    again = run("compile", "--recipe", recipe, "-o", tmp_path / "b")
    assert again.code == 0, again.err
    assert same_files(tmp_path / "a", tmp_path / "b")
    run_script(run("compile", "--recipe", recipe, "--as-python").out, tmp_path)
    assert (tmp_path / "model.pte").read_bytes() == (tmp_path / "a" / "model.pte").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--pass", f"{OWN}:NOT_A_PASS"), "NOT_A_PASS is not a pass"),
        (("--pass", f"{OWN}:missing"), "does not define 'missing'"),
        (("--pass", f"{OWN}:ReluTo:colour=1"), "does not accept these options"),
        (("--pass", f"{OWN}:raises"), "this pass fails"),
        (("--memory-planner", f"{OWN}:NOT_A_PASS"), "neither a planning algorithm"),
        (("--memory-planner", "missing.py:plan"), "missing.py: file not found"),
        (("--quantizer", f"{OWN}:NOT_A_PASS"), "is not a quantizer"),
        (("--edge-config", "preserve_ops=aten.nothing.default"), "unknown operator"),
    ],
)
def test_parts_that_cannot_be_used_are_refused_in_a_sentence(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    answer = compiled(tmp_path / "a", *options)
    assert answer.code == (4 if "raises" in options[1] else 2)
    assert words in answer.err
    assert "Traceback" not in answer.err
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--pass", "nothing"), "unknown pass 'nothing'"),
        (("--edge-config", "colour=1"), "expected NAME=VALUE of the edge config, found 'colour'"),
        (("--edge-config", "preserve_ops=linear"), "expected operators as aten.linear.default"),
        (("--edge-config", "_skip_dim_order=maybe"), "expected true or false"),
        (("--quantizer", "static"), "expected file.py:NAME"),
        (("--quantizer", "a.py:b", "--quantize", "static"), "--quantizer replaces --quantize"),
    ],
)
def test_words_that_mean_nothing_are_wrong_usage(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    answer = compiled(tmp_path / "a", *options)
    assert answer.code == 2
    assert words in answer.err


def job(folder: str) -> CompileJob:
    return CompileJob(
        Source(f"{folder}net.py", "net"),
        partitioners=(f"{folder}p.py:Mine:a=1",),
        memory_planner=f"{folder}m.py:plan",
        quantising=Quantization(quantizer=f"{folder}q.py:Mine"),
        passes=("views", f"{folder}x.py:Mine"),
        edge_config=("_skip_dim_order=true",),
    )


def test_every_file_whose_code_runs_is_listed() -> None:
    names = ("net", "p", "x", "m", "q")
    assert code_files(job("/a/")) == tuple(f"/a/{name}.py" for name in names)


def test_files_of_a_recipe_are_found_beside_it(tmp_path: Path) -> None:
    for name in ("net", "p", "x", "m", "q"):
        (tmp_path / f"{name}.py").touch()
    assert found_beside(job("gone/"), tmp_path) == job(f"{tmp_path}/")
    assert placed(job(f"{tmp_path}/")) == job(f"{tmp_path}/")


def test_recipe_with_own_parts_reads_back_and_refuses_wrong_ones() -> None:
    text = Recipe(job("/a/"), made_with={}).text
    assert parse_recipe(text.encode(), "recipe.json").job == job("/a/")
    wrong = Recipe(replace(job("/a/"), edge_config=("colour=1",)), made_with={}).text
    with pytest.raises(RecipeError, match=r"recipe.json: job.edge_config: 'colour=1'"):
        parse_recipe(wrong.encode(), "recipe.json")


def test_compile_form_asks_for_own_parts_and_names_their_code(tmp_path: Path) -> None:
    wanted = CompileJob(
        Source(str(OWN), "net"),
        memory_planner=f"{OWN}:Roomy",
        passes=("views", f"{OWN}:ReluTo"),
        quantising=Quantization(quantizer=f"{OWN}:FirstLayerOnly"),
        edge_config=("_skip_dim_order=true",),
    )
    form = CompileForm(wanted, str(tmp_path / "out"))
    assert form.problem() == ""
    assert form.runs() == (str(OWN),)
    assert form.request() == wanted
    assert form_from(form_content(form)) == form
    old = {
        "source": str(OWN),
        "passes": f"views {OWN}:ReluTo",
        "quantizer": f"{OWN}:FirstLayerOnly",
        "edge_config": "_skip_dim_order=true",
    }
    again = form_from(old).job
    assert (again.passes, again.quantising.quantizer) == (wanted.passes, f"{OWN}:FirstLayerOnly")
    assert again.edge_config == wanted.edge_config
    for passes, words in (("nothing", "Unknown pass"), ("gone.py:Pass", "file not found")):
        assert words in replace(form, job=replace(wanted, passes=(passes,))).problem()
