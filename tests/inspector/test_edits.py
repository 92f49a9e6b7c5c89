"""Changes of a recipe by a click: pure functions that change what they say and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.recipes.compile_job import CompileJob, Precision, Quantization, Rules
from inspector.recipes.edits import (
    EDITS,
    Edit,
    EditTarget,
    TargetKind,
    edit_named,
    edits_for,
    moved_up,
)
from inspector.recipes.recipe import Recipe, parse_recipe
from inspector.recipes.source import Source

BASE = CompileJob(Source("a.py", "f"), partitioners=("demo-all", "xnnpack:per_op_mode=True"))
NODE = EditTarget(TargetKind.NODE, "aten_mm_default", exported="linear")
PARTITION = EditTarget(TargetKind.PARTITION, "tag1", ("a", "b", "c"))
OPERATOR = EditTarget(TargetKind.OPERATOR, "aten.linear.default")
MODULE = EditTarget(TargetKind.MODULE, "blocks.0")
RULE = EditTarget(TargetKind.RULE, "LinearConfig")
PARTITIONER = EditTarget(TargetKind.PARTITIONER, "XnnpackPartitioner")
PLANNER = EditTarget(TargetKind.PLANNER, "greedy")
TOOLCHAIN = EditTarget(TargetKind.TOOLCHAIN, "executorch")
TARGETS = (NODE, PARTITION, OPERATOR, MODULE, RULE, PARTITIONER, PLANNER, TOOLCHAIN)
_NAMES = st.sampled_from(["a", "b", "aten_mm_default", "linear", "blocks.0", "LinearConfig"])
_SOME = st.lists(_NAMES, max_size=2, unique=True).map(tuple)
_JOBS = st.builds(
    lambda rules, words, mode: replace(
        BASE,
        rules=rules,
        precision=Precision(nodes=tuple(f"{word}=float16" for word in words)),
        quantising=Quantization(mode, operators=("aten.linear=dynamic",) if mode else ()),
    ),
    st.builds(
        Rules,
        deny_nodes=_SOME,
        deny_modules=_SOME,
        deny_rules=_SOME,
        force_nodes=_SOME,
        cut_before=_SOME,
        alone_nodes=_SOME,
        min_nodes=st.integers(1, 3),
    ),
    _SOME,
    st.sampled_from(["", "static"]),
)


@pytest.mark.slow
@settings(deadline=None)
@given(_JOBS, st.sampled_from(EDITS), st.sampled_from(TARGETS))
def test_edit_made_twice_is_made_once_and_is_a_recipe(
    job: CompileJob, edit: Edit, target: EditTarget
) -> None:
    if target.kind not in edit.kinds:
        with pytest.raises(ValueError, match=f"does not apply to a {target.kind.value}"):
            edit.apply(job, target)
        assert not edit.applies(job, target)
        return
    changed = edit.apply(job, target)
    assert edit.applies(job, target) == (changed != job)
    assert edit.name == "move-up" or edit.apply(changed, target) == changed
    assert parse_recipe(Recipe(changed).text.encode(), "r").job == changed
    assert (changed.source, changed.methods) == (job.source, job.methods)


MADE: list[tuple[str, EditTarget, CompileJob]] = [
    ("keep-off", NODE, replace(BASE, rules=Rules(deny_nodes=("aten_mm_default",)))),
    ("keep-off", PARTITION, replace(BASE, rules=Rules(deny_nodes=("a", "b", "c")))),
    ("keep-off", OPERATOR, replace(BASE, rules=Rules(deny_ops=("aten.linear.default",)))),
    ("keep-off", MODULE, replace(BASE, rules=Rules(deny_modules=("blocks.0",)))),
    ("force", NODE, replace(BASE, rules=Rules(force_nodes=("aten_mm_default",)))),
    (
        "force",
        replace(NODE, partitioner="xnnpack"),
        replace(BASE, rules=Rules(force_nodes=("aten_mm_default=xnnpack",))),
    ),
    ("cut-before", PARTITION, replace(BASE, rules=Rules(cut_before=("a",)))),
    ("cut-after", PARTITION, replace(BASE, rules=Rules(cut_after=("c",)))),
    ("alone", OPERATOR, replace(BASE, rules=Rules(alone_ops=("aten.linear.default",)))),
    ("rule-off", RULE, replace(BASE, rules=Rules(deny_rules=("LinearConfig",)))),
    (
        "move-up",
        PARTITIONER,
        replace(BASE, partitioners=("xnnpack:per_op_mode=True", "demo-all")),
    ),
    (
        "compute-float16",
        MODULE,
        replace(BASE, precision=Precision(modules=("blocks.0=float16",))),
    ),
    (
        "quantize-dynamic",
        NODE,
        replace(BASE, quantising=Quantization("none", nodes=("linear=dynamic",))),
    ),
    (
        "quantize-static",
        OPERATOR,
        replace(BASE, quantising=Quantization("none", operators=("aten.linear=static",))),
    ),
]


def test_a_module_left_in_float_keeps_how_the_rest_is_quantized() -> None:
    how = Quantization("8da4w:group=32", "data.py:batches", True, embedding="4w")
    changed = edit_named("quantize-none").apply(replace(BASE, quantising=how), MODULE)
    assert changed.quantising == replace(how, modules=("blocks.0=none",))


TABLES, WORDS = Quantization(embedding="4"), Quantization("8da4w", embedding="8")


@pytest.mark.parametrize("how", [TABLES, WORDS, Quantization("int8")])
@pytest.mark.parametrize("word", ["none", "int8", "4w", "8da4w", "8da8w"])
def test_modules_of_quantized_weights_have_words_of_weights_and_go_back(
    how: Quantization, word: str
) -> None:
    job = replace(BASE, quantising=how)
    changed = edit_named(f"quantize-{word}").apply(job, MODULE)
    assert changed.quantising == replace(how, modules=(f"blocks.0={word}",))
    assert edit_named("quantize-as-rest").apply(changed, MODULE) == job


@pytest.mark.parametrize("how", [TABLES, WORDS])
@pytest.mark.parametrize("target", [NODE, OPERATOR, MODULE])
def test_quantized_weights_have_no_edit_that_their_compile_refuses(
    how: Quantization, target: EditTarget
) -> None:
    """A mode that observes calls, or one for nodes and operators."""
    job = replace(BASE, quantising=how)
    found = {edit.name for edit in edits_for(job, target) if edit.name.startswith("quantize-")}
    assert not found & {"quantize-static", "quantize-dynamic", "quantize-weight-only"}
    assert (target is MODULE) == bool(found)


def test_words_of_weights_are_not_offered_among_modes_of_nodes() -> None:
    job = replace(BASE, quantising=Quantization("static"))
    names = {edit.name for edit in edits_for(job, NODE)}
    assert "quantize-dynamic" in names
    assert not names & {"quantize-8da4w", "quantize-int8"}


@pytest.mark.parametrize(("name", "target", "wanted"), MADE)
def test_edit_makes_the_job_that_it_says(name: str, target: EditTarget, wanted: CompileJob) -> None:
    assert edit_named(name).apply(BASE, target) == wanted
    assert target.name in edit_named(name).describe(target)


UNDONE = [
    ("keep-off", "let-in", NODE),
    ("keep-off", "let-in", MODULE),
    ("keep-off", "force", NODE),
    ("force", "keep-off", NODE),
    ("cut-before", "join", NODE),
    ("alone", "join", OPERATOR),
    ("rule-off", "rule-on", RULE),
    ("compute-float16", "compute-own", MODULE),
]


@pytest.mark.parametrize(("name", "back", "target"), UNDONE)
def test_edit_and_its_contrary_leave_no_trace(name: str, back: str, target: EditTarget) -> None:
    changed = edit_named(back).apply(edit_named(name).apply(BASE, target), target)
    assert changed == edit_named(back).apply(BASE, target)


def test_rule_of_the_user_is_turned_off_by_leaving_it_out() -> None:
    job = replace(BASE, rules=Rules(min_nodes=4, deny_ops=("aten.mm",), deny_dtypes=("int8",)))
    off = edit_named("rule-off")
    assert off.apply(job, EditTarget(TargetKind.RULE, "min_nodes")).rules.min_nodes == 1
    assert off.apply(job, EditTarget(TargetKind.RULE, "deny_ops")).rules.deny_ops == ()
    assert off.apply(job, EditTarget(TargetKind.RULE, "deny_tensors")).rules.deny_dtypes == ()


def test_menu_has_what_would_change_something() -> None:
    names = {edit.name for edit in edits_for(BASE, NODE)}
    assert {"keep-off", "force", "cut-before", "alone", "compute-float16"} <= names
    assert not names & {"let-in", "join", "compute-own", "rule-off", "quantize-none"}
    assert edits_for(BASE, EditTarget(TargetKind.PARTITIONER, "demo-all")) == ()
    assert {edit.name for edit in edits_for(BASE, PARTITIONER)} == {"move-up"}
    assert len({edit.name for edit in EDITS}) == len(EDITS)


def test_partitioner_moves_up_by_any_of_its_names() -> None:
    given = ("demo-all", "dir/mine.py:Mine:x=1", "xnnpack:per_op_mode=True")
    for name in ("xnnpack", "XnnpackPartitioner", given[2]):
        assert moved_up(given, name) == (given[0], given[2], given[1])
    assert moved_up(given, "Mine") == (given[1], given[0], given[2])
    with pytest.raises(
        KeyError, match="unknown partitioner 'other' to move up; available: demo-all"
    ):
        moved_up(given, "other")
