"""A warm worker makes what a new one makes, byte for byte, and says before what it would do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inspector.jobs.description import CompileJob, Precision, Quantising, Rules, Source
from inspector.jobs.messages import Ended
from inspector.jobs.studio import Studio
from inspector.worker.compile_job import compile_into
from schema import etrecord
from schema.etrecord.verdicts import Verdict

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).with_name("studio_sources.py")
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
    "quantised": replace(BASE, quantising=Quantising("static")),
    "quantised in part": replace(
        BASE, quantising=Quantising("none", modules=("first=static",), nodes=("linear=dynamic",))
    ),
    "quantised, kept off": replace(
        BASE, quantising=Quantising("dynamic"), rules=Rules(deny_modules=("head",))
    ),
}


@pytest.fixture(scope="module")
def studio() -> Iterator[Studio]:
    made = Studio()
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
    name: str, studio: Studio, tmp_path: Path
) -> None:
    job = CHANGES[name]
    (tmp_path / "cold").mkdir()
    sys.modules.pop(SOURCES.stem, None)  # as a new process has not loaded it
    compile_into(job, tmp_path / "cold", lambda *_, **__: None)
    preview = studio.preview(job, PATIENCE)
    outcome = studio.compile(job, tmp_path / "warm", guard="off", timeout=PATIENCE)
    assert outcome.ended is Ended.FINISHED, outcome
    assert _same(tmp_path / "cold", tmp_path / "warm")
    told = {method: shown.verdicts for method, shown in preview.methods.items()}
    assert told == _verdicts(tmp_path / "warm") or not any(told.values())
