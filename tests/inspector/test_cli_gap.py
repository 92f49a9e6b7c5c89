"""gap on committed sessions: JSON that keeps its contract, coverage that adds up."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from runtime import DebugLevel, EventTracer, Runtime
from runtime.backends.openvino import detect
from runtime.backends.openvino.detect import HostPool
from schema import etrecord
from tests.inspector.cli_runs import FORMATS, run, valid
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow

GPT = DATA / "corpus/v1.5.1/tinygpt_xnnpack"


def test_gap_of_a_transformer_compares_everything_and_finds_no_divergence() -> None:
    answer = run("gap", GPT, "--format", "json")
    assert (answer.code, answer.err) == (0, "")
    data = valid(answer, "gap")["data"]
    cover = data["coverage"]
    assert cover["compared"] == cover["instruction_outputs"] == 47
    assert cover["inside"]["nodes"] > 0
    assert data["first_divergence"] is None
    assert max(row["max_abs"] for row in data["rows"] if row["compared"]) < 1e-5
    assert [each["run"] for each in data["runs"]] == [0, 1, 2]


@pytest.mark.parametrize("name", ["model.pte", "model.etrecord", "run.etdp", "run.debug"])
def test_gap_of_one_file_says_what_is_missing(name: str) -> None:
    for form in FORMATS:
        answer = run("gap", GPT / name, "--format", form)
        assert (answer.code, answer.err) == (0, "")
        if form == "json":
            data = valid(answer, "gap")["data"]
            assert data["rows"] == []
            assert data["notes"][0].startswith("gap needs")


@pytest.mark.parametrize(
    ("trace", "buffer"), [("run.etdp", "run.debug"), ("logged.etdump", "logged.debug")]
)
def test_gap_names_the_debug_buffer_that_is_missing(
    trace: str, buffer: str, tmp_path: Path
) -> None:
    shutil.copy(GPT / "run.etdp", tmp_path / trace)
    files = (GPT / "model.pte", GPT / "model.etrecord", tmp_path / trace)
    words = f"expected: {tmp_path / buffer}"
    notes = valid(run("gap", *files, "--format", "json"), "gap")["data"]["notes"]
    assert [words in note for note in notes].count(True) == 1
    shutil.copy(GPT / "run.debug", tmp_path / buffer)
    notes = valid(run("gap", *files, tmp_path / buffer, "--format", "json"), "gap")["data"]["notes"]
    assert not any(words in note for note in notes)


def test_gap_without_a_record_gives_every_output_that_reason(tmp_path: Path) -> None:
    files = [GPT / name for name in ("model.pte", "run.etdp", "run.debug")]
    data = valid(run("gap", *files, "--format", "json"), "gap")["data"]
    cover = data["coverage"]
    assert cover["compared"] == 0
    assert cover["stated_reasons"] == cover["instruction_outputs"] == 47
    assert {row["reason"] for row in data["rows"]} == {"no ETRecord"}


@pytest.mark.parametrize(
    ("name", "emulated"),
    [
        ("openvino/openvino_m1", True),
        ("openvino/openvino_m2", True),
        ("vulkan_m1", False),
        ("tosa_m1", False),
    ],
)
def test_gap_says_that_the_recorded_graph_was_compared_with_itself(
    name: str, emulated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostPool, "host", None)
    monkeypatch.setattr(detect, "is_installed", lambda: False)
    monkeypatch.setattr(detect, "python_with", lambda _module: "")
    path = DATA / "backends" / name
    made = [tmp_path / "run.etdp", tmp_path / "run.debug"]
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    record = etrecord.decode(path.with_suffix(".etrecord").read_bytes())
    found = Runtime().load_program(path.with_suffix(".pte"), tracer=tracer)
    inputs, *_ = torch.load(path.with_suffix(".pt"))
    found.load_method("forward", emulate=record).execute(inputs)
    tracer.write(*made)
    files = [path.with_suffix(".pte"), path.with_suffix(".etrecord"), *made]
    notes = valid(run("gap", *files, "--format", "json"), "gap")["data"]["notes"]
    words = "emulated by the recorded graph: not what the payload computes"
    assert any(words in note for note in notes) is emulated
    assert (words in run("gap", *files).out) is emulated
