"""A warm worker makes what a new one makes, byte for byte, and says before what it would do."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inspector.graph.boundaries import Boundary
from inspector.jobs.compile_server import CompileServer
from inspector.jobs.messages import Ended
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import CompileJob, Precision, Quantization, Rules
from inspector.recipes.edits import EDITS, EditTarget, TargetKind, edit_named
from inspector.recipes.source import Source
from inspector.worker.compile_job import compile_into
from schema import etrecord
from schema.etrecord.parts.verdicts import Verdict
from schema.program import decode
from schema.recipe.passes import recipe_passes
from tests.inspector.plan_boundaries import program_boundaries

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).with_name("server_sources.py")
PATIENCE = 240.0
BASE = CompileJob(Source(str(SOURCES), "net"), partitioners=("xnnpack",))
FILES = ("model.pte", "model.etrecord", "recipe.json")


def _rules(**given: object) -> CompileJob:
    return replace(BASE, rules=replace(BASE.rules, **given))


CHANGES: dict[str, CompileJob] = {
    "nothing": BASE,
    "planner": replace(BASE, memory_planner="greedy"),
    "constants outside": replace(BASE, external_constants=True),
    "node off": _rules(deny_nodes=("aten_sigmoid_default",)),
    "exported node off": _rules(deny_nodes=("linear",)),
    "operator off": _rules(deny_ops=("aten.linear",)),
    "module off": _rules(deny_modules=("second",)),
    "type off": _rules(deny_dtypes=("float32",)),
    "rule off": _rules(deny_rules=("ConvolutionConfig",)),
    "rule of a whole operator off": _rules(deny_rules=("LinearConfig",)),
    "cut": _rules(cut_before=("aten_mul_tensor",), cut_after=("aten_mean_dim",)),
    "alone": _rules(alone_ops=("aten.convolution",), alone_nodes=("aten_mul_tensor",)),
    "per operator": _rules(granularity="operator"),
    "size": _rules(min_nodes=5),
    "forced": _rules(min_nodes=9, force_nodes=("aten_sigmoid_default",)),
    "forced, impossible": _rules(force_nodes=("aten_cumsum_default",)),
    "no delegate": replace(BASE, partitioners=()),
    "two partitioners": replace(
        BASE, partitioners=("demo-add-mul", "xnnpack"), rules=Rules(deny_nodes=("aten_mean_dim",))
    ),
    "types": replace(BASE, precision=Precision(modules=("head=float16",))),
    "types by operator": replace(
        BASE, precision=Precision(operators=("aten.sigmoid=float64",)), partitioners=()
    ),
    "passes": replace(BASE, passes=recipe_passes()),
    "passes, no delegate": replace(BASE, passes=("duplicates", "views"), partitioners=()),
    "emission": replace(
        BASE,
        memory_planner="naive",
        backend_config=("segment_alignment=64", "emit_stacktrace=true", "alloc_graph_input=false"),
    ),
    "quantized": replace(BASE, quantising=Quantization("static")),
    "quantized in part": replace(
        BASE, quantising=Quantization("none", modules=("first=static",), nodes=("linear=dynamic",))
    ),
    "quantized, kept off": replace(
        BASE, quantising=Quantization("dynamic"), rules=Rules(deny_modules=("head",))
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[CompileServer]:
    made = CompileServer()
    yield made
    made.close()


def _same(one: Path, other: Path) -> bool:
    names = {path.name for path in one.iterdir()} - {"compile.json"}
    assert names == {path.name for path in other.iterdir()} - {"compile.json"}
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def _verdicts(folder: Path) -> dict[str, tuple[Verdict, ...]]:
    data = (folder / "model.etrecord").read_bytes()
    record = etrecord.decode(memoryview(data), file="model.etrecord")
    return dict(record.verdicts())


@pytest.mark.parametrize("name", CHANGES)
def test_warm_compile_is_a_cold_one_byte_for_byte(
    name: str, server: CompileServer, tmp_path: Path
) -> None:
    job = CHANGES[name]
    (tmp_path / "cold").mkdir()
    sys.modules.pop(SOURCES.stem, None)  # as a new process has not loaded it
    compile_into(job, tmp_path / "cold", lambda *_, **__: None)
    preview = server.preview(job, PATIENCE)
    outcome = server.compile(job, tmp_path / "warm", guard="off", timeout=PATIENCE)
    assert outcome.ended is Ended.FINISHED, outcome
    assert _same(tmp_path / "cold", tmp_path / "warm")
    told = {method: shown.verdicts for method, shown in preview.methods.items()}
    assert told == _verdicts(tmp_path / "warm") or not any(told.values())
    program = decode((tmp_path / "warm" / "model.pte").read_bytes())
    for method, shown in preview.methods.items():
        assert _kinds(shown.boundaries) == _kinds(program_boundaries(program, method))


def _kinds(boundaries: Sequence[Boundary]) -> Counter[Any]:
    """Return what can be said of boundaries whatever values and partitions are called."""
    return Counter(
        (
            one.source is None,
            one.target is None,
            one.nbytes,
            one.layout_copies,
            one.is_end,
            len(one.quantizing),
        )
        for one in boundaries
    )


def test_changes_in_any_order_and_back_make_the_same(server: CompileServer, tmp_path: Path) -> None:
    for turn in range(2):
        for name in ("nothing", "node off", "types", "two partitioners", "nothing"):
            folder = tmp_path / name.replace(" ", "_")
            outcome = server.compile(
                CHANGES[name], folder / str(turn), force=True, guard="off", timeout=PATIENCE
            )
            assert outcome.ended is Ended.FINISHED
        assert _same(tmp_path / "nothing" / "0", tmp_path / "nothing" / str(turn))
    assert _same(tmp_path / "types" / "0", tmp_path / "types" / "1")


def test_only_what_comes_after_the_change_is_done_again(
    server: CompileServer, tmp_path: Path
) -> None:
    def stages(job: CompileJob) -> set[str]:
        outcome = server.compile(job, tmp_path / "out", force=True, guard="off", timeout=PATIENCE)
        return {stage["stage"] for stage in outcome.result["stages"]}

    stages(BASE)
    planned = stages(replace(BASE, memory_planner="naive"))
    assert not planned & {"load", "export", "edge", "delegate"}
    assert {"emit", "write"} <= planned
    ruled = stages(_rules(deny_nodes=("aten_mean_dim",)))
    assert not ruled & {"load", "export", "edge"}
    assert "delegate" in ruled
    decomposed = stages(_rules(deny_ops=("aten.linear",), min_nodes=2))
    assert not decomposed & {"load", "export"}


def test_one_real_new_process_makes_the_same(server: CompileServer, tmp_path: Path) -> None:
    job = _rules(cut_before=("aten_mul_tensor",), deny_rules=("AddConfig",))
    server.preview(BASE, PATIENCE)
    assert server.compile(job, tmp_path / "warm", timeout=PATIENCE).ended is Ended.FINISHED
    run = JobRun(job, tmp_path / "cold", timeout=PATIENCE)
    try:
        outcome = run.wait(PATIENCE)
    finally:
        run.close()
    assert outcome is not None
    assert outcome.ended is Ended.FINISHED, outcome
    assert _same(tmp_path / "cold", tmp_path / "warm")


def test_difference_is_the_nodes_that_change_owner(server: CompileServer) -> None:
    base = server.preview(BASE, PATIENCE)
    off = server.preview(_rules(deny_nodes=("aten_sigmoid_default",)), PATIENCE)
    found = off.against(base)["forward"]
    assert dict(found.lost) == {"XnnpackBackend": ("aten_sigmoid_default",)}
    assert (dict(found.gained), found.partitions) == ({}, 1)
    assert found.words.startswith("XnnpackBackend loses 1 node, 1 partition more, ")
    assert base.against(off)["forward"].gained == found.lost
    assert base.against(base)["forward"].words == "nothing changes"


def test_suggestions_do_what_they_say(server: CompileServer) -> None:
    job = _rules(deny_nodes=("aten_sigmoid_default",), cut_before=("aten_convolution_default_1",))
    base = server.preview(job, PATIENCE)
    answer = server.suggestions(job, PATIENCE)
    found = answer.suggestions
    assert answer.tried >= len(found)
    assert any(
        one.text.startswith("taking this node in (aten_sigmoid_default) removes") for one in found
    )
    assert any(one.text.startswith("not cutting at aten_convolution_default_1") for one in found)
    for one in found:
        changed = job
        for name, target in one.edits:
            changed = edit_named(name).apply(changed, target)
        assert changed == one.job
        difference = server.preview(changed, PATIENCE).against(base)[one.method]
        assert difference.boundaries == -one.boundaries < 0
        assert difference.copied_bytes == -(one.saved_bytes or 0)
        words = "1 boundary" if one.boundaries == 1 else f"{one.boundaries} boundaries"
        assert f"removes {words}" in one.text


def test_no_suggestion_says_whether_there_was_anything_to_try(server: CompileServer) -> None:
    portable = server.suggestions(replace(BASE, partitioners=()), PATIENCE)
    assert (portable.suggestions, portable.tried) == ((), 0)
    assert portable.text.startswith("Nothing to try: ")
    assert replace(portable, tried=3).text.startswith("3 changes tried: none ")


def test_every_change_of_a_menu_can_be_previewed(server: CompileServer) -> None:
    base = server.preview(BASE, PATIENCE).methods["forward"]
    part = base.partitions[0]
    targets = [
        EditTarget(TargetKind.NODE, "aten_sigmoid_default", exported="sigmoid"),
        EditTarget(TargetKind.PARTITION, part.name, part.nodes),
        EditTarget(TargetKind.OPERATOR, "aten.convolution.default"),
        EditTarget(TargetKind.RULE, "ConvolutionConfig"),
        EditTarget(TargetKind.MODULE, "second"),
    ]
    for target in targets:
        for edit in EDITS:
            if edit.applies(BASE, target) and not edit.name.startswith("quantize"):
                shown = server.preview(edit.apply(BASE, target), PATIENCE)
                assert not shown.warnings, (edit.name, shown.warnings)


def test_rules_that_do_nothing_are_said(server: CompileServer) -> None:
    job = _rules(
        deny_rules=("NoSuchConfig",),
        cut_before=("nowhere",),
        force_nodes=("aten_cumsum_default", "aten_sigmoid_default=other"),
    )
    found = server.preview(replace(job, precision=Precision(("tail=float16",))), PATIENCE).warnings
    assert [one.partition(":")[0] for one in found] == [
        "tail does not match any of the modules of the program",
        "--cut-before nowhere matches nothing in the program",
        "--force-node aten_sigmoid_default=other",
        "--deny-rule NoSuchConfig matches no rule",
        "aten_cumsum_default",
    ]
