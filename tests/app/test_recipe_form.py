"""A recipe as fields and as texts: every field can be read, set and undone; texts say the same."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import fields, is_dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools_app.state.variants import Draft, Variant
from devtools_app.viewmodels.recipe_form import (
    FieldKind,
    FormField,
    change_line,
    differences,
    sections,
    with_value,
)
from devtools_app.viewmodels.recipe_texts import commands, job_in, recipe_texts
from inspector.recipes.compile_job import CompileJob, Quantization, Rules, code_files
from inspector.recipes.recipe import Recipe, parse_recipe
from inspector.recipes.source import Source

JOB = CompileJob(Source("/models/net.py", "build"), partitioners=("xnnpack",))
VALUES = {
    FieldKind.TEXT: "naive",
    FieldKind.NUMBER: 7,
    FieldKind.FLAG: True,
    FieldKind.LINES: ("one=float16", "two=float16"),
}
WORDS = {  # fields in which only some words mean anything
    "passes": ("duplicates", "views"),
    "backend_config": ("alignment=32", "joint_arena=true"),
    "edge_config": ("preserve_ops=aten.linear.default", "_skip_dim_order=true"),
}


def all_fields(job: CompileJob) -> list[FormField]:
    return [one for section in sections(job) for one in section.fields]


def leaves(part: object, prefix: str = "") -> list[str]:
    found = []
    for one in fields(part):
        value = getattr(part, one.name)
        name = f"{prefix}{one.name}"
        found += leaves(value, f"{name}.") if is_dataclass(value) else [name]
    return found


def value_for(one: FormField) -> object:
    if one.kind is FieldKind.CHOICE:
        return one.choices[-1][0]
    return WORDS.get(one.path, VALUES[one.kind])


def test_form_has_every_field_of_a_recipe_with_words() -> None:
    found = all_fields(JOB)
    assert sorted(one.path for one in found) == sorted(leaves(JOB))
    assert all(one.help for one in found)
    assert all(one.label for one in found)


@pytest.mark.parametrize("path", leaves(JOB))
def test_field_set_in_the_form_is_set_in_the_text_and_said_as_a_change(path: str) -> None:
    one = next(field for field in all_fields(JOB) if field.path == path)
    changed = with_value(JOB, path, value_for(one))
    assert next(f for f in all_fields(changed) if f.path == path).value == value_for(one)
    assert parse_recipe(Recipe(changed).text.encode(), "here").job == changed
    said = differences(JOB, changed)
    assert len(said) >= 1
    assert with_value(changed, path, one.value) == JOB


def test_form_refuses_a_field_that_is_not_there() -> None:
    for path in ("nothing", "rules.nothing"):
        with pytest.raises(KeyError):
            with_value(JOB, path, 1)


NAMES = st.lists(st.sampled_from(["aten_add", "aten_mul", "aten_mm"]), unique=True)


@given(NAMES, NAMES)
def test_changes_name_what_came_and_what_went(old: list[str], new: list[str]) -> None:
    before = replace(JOB, rules=Rules(deny_nodes=tuple(old)))
    after = replace(JOB, rules=Rules(deny_nodes=tuple(new)))
    words = " ".join(differences(before, after))
    if old == new:
        assert words == ""
    elif set(old) == set(new):
        assert "in the order" in words
    else:
        assert ("+" in words) == bool(set(new) - set(old))
        assert ("−" in words) == bool(set(old) - set(new))


def test_many_changes_stay_one_line() -> None:
    changed = replace(
        JOB,
        memory_planner="greedy",
        external_constants=True,
        partitioners=(),
        quantising=Quantization("dynamic"),
    )
    line = change_line(JOB, changed)
    assert line.endswith(" and 1 more")
    assert "\n" not in line


def variant(job: CompileJob, files: tuple[str, ...] = ()) -> Variant:
    return Variant(0, str(job.source), Recipe(JOB), Draft(job), files=files)


def test_texts_are_those_of_the_draft() -> None:
    one = variant(replace(JOB, rules=Rules(deny_ops=("aten.mul.*",))))
    texts = recipe_texts(one)
    assert texts.title == "net.py:build"
    assert texts.changes == "deny operators + aten.mul.*"
    assert job_in(texts.text) == (one.draft.present, "")
    assert "aten.mul.*" in texts.script
    assert texts.runs == ("/models/net.py",)
    assert code_files(replace(JOB, source=Source("/a.pt2"), partitioners=("/p.py:Mine:a=1",))) == (
        "/p.py",
    )


@pytest.mark.parametrize("text", ["", "{", "[]", '{"recipe": 99}', '{"recipe": 1, "x": 2}'])
def test_text_that_is_no_recipe_is_one_sentence(text: str) -> None:
    job, problem = job_in(text)
    assert job is None
    assert problem.endswith(".")
    assert "\n" not in problem


def test_commands_use_the_saved_recipe_where_it_is_the_same(tmp_path) -> None:
    program = tmp_path / "model's folder" / "model.pte"
    program.parent.mkdir()
    program.touch()
    changed = variant(replace(JOB, memory_planner="greedy"), (str(program),))
    assert commands(changed).startswith("cat > recipe.json <<'END_OF_RECIPE'\n{")
    same = variant(JOB, (str(program),))
    assert commands(same).startswith("cat")
    (program.parent / "recipe.json").write_text(Recipe(JOB).text)
    assert commands(same) == (
        f"etscope compile --recipe '{tmp_path}/model'\"'\"'s folder/recipe.json' -o build\n"
    )


def test_help_of_every_field_survives_without_docstrings() -> None:
    code = (
        "from devtools_app.viewmodels.recipe_form import sections\n"
        "from inspector.recipes.compile_job import CompileJob\n"
        "from inspector.recipes.source import Source\n"
        "found = sections(CompileJob(Source('net.py', 'net')))\n"
        "print([(one.path, one.help) for part in found for one in part.fields])"
    )
    command = [sys.executable, "-OO", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [
        field for part in sections(CompileJob(Source("net.py", "net"))) for field in part.fields
    ]
    assert ast.literal_eval(done.stdout) == [(one.path, one.help) for one in found]
