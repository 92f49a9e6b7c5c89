"""Findings: their order by what they would save, and the edits and commands they end in."""

from __future__ import annotations

import json
import shlex
import shutil
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import pytest

from devtools_app.sample_data import LOOP
from inspector.cli.compile import add_arguments
from inspector.files.load import load_session
from inspector.files.machine import this_machine, torch_release
from inspector.files.session import Session
from inspector.findings.attempts import (
    command_of,
    edit_words,
    edited,
    edits_that_delegate,
    edits_that_shrink,
)
from inspector.findings.finding import Finding, Tone
from inspector.findings.limits import limit_findings
from inspector.findings.session import findings, rank
from inspector.memory.plan import analyse_memory
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.edits import SMALLEST_PLAN, EditTarget, TargetKind
from inspector.recipes.source import Source
from inspector.roofline.calibration import COPY, Calibration, Ceiling, save_calibration
from inspector.roofline.rows import known_limits, roofline
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA, session

RUNS = DATA / "runs"


def _named(text: str, path: Path = RUNS / "convnet_portable") -> Finding:
    (found,) = [one for one in findings(session(path)) if text in one.text]
    return found


def test_doubt_comes_first_then_time_then_bytes_then_the_rest() -> None:
    note = Finding(Tone.NEUTRAL, "", weight=50)
    doubt, worse = replace(note, doubt=True, weight=2), replace(note, doubt=True, saves_ms=0.1)
    slow, slower = replace(note, saves_ms=0.1), replace(note, saves_ms=2.0, weight=70)
    small, large = replace(note, saves_bytes=10), replace(note, saves_bytes=1 << 30)
    ordered = [worse, doubt, slower, slow, large, small, note]
    assert sorted([note, slow, small, slower, doubt, large, worse], key=rank) == ordered
    assert slow.saved == "saves 100 µs a run at most"
    assert large.line.startswith("note · saves 1 GiB at most")


def _timed(folder: Path, run_ms: list[float], cut: int | None = None) -> Path:
    """Return a copy of a run with other times, and its trace cut off."""
    shutil.copytree(RUNS / "convnet_portable", folder)
    report = json.loads((folder / "run.json").read_text("utf-8"))
    if cut is not None:
        trace = folder / "run.etdp"
        trace.write_bytes(trace.read_bytes()[:cut])
    report["run_ms"] = run_ms
    (folder / "run.json").write_text(json.dumps(report), "utf-8")
    return folder


QUIET = [0.1 + 0.0001 * (number % 5) for number in range(30)]


@pytest.mark.parametrize(
    ("run_ms", "words"),
    [
        (QUIET, ""),
        ([0.1, 0.16] * 15, "noisy (moderate)"),
        ([0.05, 0.2] * 15, "noisy (severe)"),
        (QUIET[:3], "Times are of 3 runs"),
        ([0.1] * 14 + [0.103] * 16, ""),
    ],
)
def test_runs_in_doubt_come_before_what_is_saved(
    run_ms: list[float], words: str, tmp_path: Path
) -> None:
    found = findings(load_session([_timed(tmp_path / "run", run_ms)]))
    doubts = [one.text for one in found if one.doubt]
    assert [words in text for text in doubts] == ([True] if words else [])
    assert [one.doubt for one in found] == sorted([one.doubt for one in found], reverse=True)
    (saving,) = [place for place, one in enumerate(found) if one.saves_ms]
    assert saving == len(doubts)


def test_damaged_and_foreign_files_come_before_what_is_saved(tmp_path: Path) -> None:
    whole = (RUNS / "convnet_portable/run.etdp").stat().st_size
    damaged = findings(load_session([_timed(tmp_path / "cut", QUIET, whole * 2 // 3)]))
    assert (damaged[0].doubt, damaged[0].view) == (True, "issues")
    other = DATA / "extra/kv_cache/model.etrecord"
    files = [RUNS / f"convnet_portable/{name}" for name in ("model.pte", "run.etdp")]
    foreign = findings(load_session([*files, other]))
    assert "do not belong together" in foreign[0].text
    for found in (damaged, foreign):
        assert [one.doubt for one in found] == sorted((one.doubt for one in found), reverse=True)
    assert any(one.saves_ms for one in foreign)


def test_every_tone_has_a_word_and_a_sign_of_its_own() -> None:
    assert len({tone.severity for tone in Tone}) == len(Tone)
    assert len({tone.shape for tone in Tone}) == len(Tone)


def test_program_without_delegates_ends_in_a_partitioner_to_try() -> None:
    found = _named("is delegated")
    assert found.saves_ms is not None
    command = command_of(session(RUNS / "convnet_portable"), found)
    words = shlex.split(command)
    parser = ArgumentParser()
    add_arguments(parser)
    assert words[:2] == ["etscope", "compile"]
    options = parser.parse_args(words[2:])
    assert options.partitioner == ["xnnpack"]
    assert options.recipe.endswith("model.etrecord")
    assert edit_words(found.edits) == "Delegate to xnnpack"
    tree = valid(run("summary", RUNS / "convnet_portable", "--format", "json"), "summary")
    (shown,) = [one for one in tree["data"]["findings"] if one["try"]]
    assert shown["try"] == command
    assert shown["edits"] == [{"edit": "add-partitioner", "kind": "partitioner", "name": "xnnpack"}]
    assert f"try it: {command}" in run("summary", RUNS / "convnet_portable").out


def test_edits_without_an_option_have_no_command() -> None:
    one = session(RUNS / "convnet_portable")
    nothing = Finding(Tone.NEUTRAL, "")
    assert command_of(one, nothing) == ""
    had = ("let-in", EditTarget(TargetKind.NODE, "a"))
    assert command_of(one, replace(nothing, edits=(had,))) == ""
    alone = session(RUNS / "convnet_portable/run.etdp")
    assert command_of(alone, _named("is delegated")) == ""


def test_edits_of_a_finding_change_a_recipe_once() -> None:
    job = CompileJob(Source("m.py", "f"))
    once = edited(job, _named("is delegated").edits)
    assert once.partitioners == ("xnnpack",)
    assert edited(once, _named("is delegated").edits) == once


@pytest.mark.slow
def test_command_of_a_finding_compiles_and_ends_the_finding(tmp_path: Path) -> None:
    record = RUNS / "convnet_xnnpack/model.etrecord"
    kept = tmp_path / "kept"
    assert (
        run("compile", "--recipe", record, "--deny-op", "aten.relu.default", "-o", kept).code == 0
    )
    before = load_session([kept])
    (found,) = [one for one in findings(before) if one.edits]
    (_, target), *_ = found.edits
    assert "relu" in target.name
    words = shlex.split(command_of(before, found))[1:]
    words[words.index("-o") + 1] = str(tmp_path / "tried")
    assert run(*words).code == 0
    assert not edits_that_delegate(load_session([tmp_path / "tried"]), "forward")


SOURCE = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(300, 256)
        self.one, self.two = torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256)
        self.out = torch.nn.Linear(256, 300, bias=False)
        self.out.weight = self.table.weight

    def forward(self, x):
        y = self.table(x)
        return self.out(self.two(torch.relu(self.one(y))) + y)

def build():
    return Net().eval(), (torch.tensor([[1]]),)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("source") / "net.py"
    path.write_text(SOURCE)
    return f"{path}:build"


def _compiled(source: str, folder: Path, *more: str) -> Session:
    answer = run("compile", source, *more, "-o", folder)
    assert answer.code == 0, answer.err
    return load_session([folder])


def _tried(before: Session, found: Finding, folder: Path) -> Session:
    """Compile with the command of a finding."""
    words = shlex.split(command_of(before, found))[1:]
    words[words.index("-o") + 1] = str(folder)
    answer = run(*words)
    assert answer.code == 0, answer.err
    return load_session([folder])


def _waste(one: Session) -> int:
    assert one.program is not None
    arenas = analyse_memory(one.program, "forward").arenas
    return sum(arena.planned_bytes - arena.lower_bound_bytes for arena in arenas)


@pytest.mark.slow
def test_wasteful_plan_ends_in_a_planner_that_wastes_less(source: str, tmp_path: Path) -> None:
    before = _compiled(source, tmp_path / "naive", "--memory-planner", "naive")
    (found,) = [one for one in findings(before) if "more is planned" in one.detail]
    assert edit_words(found.edits) == "Plan memory with greedy"
    after = _tried(before, found, tmp_path / "tried")
    assert found.saves_bytes == _waste(before)
    assert _waste(after) < _waste(before) / 4
    assert not any("more is planned" in one.detail for one in findings(after))
    greedy = CompileJob(Source("m.py", "f"), memory_planner="greedy")
    smallest = ("plan-with", EditTarget(TargetKind.PLANNER, SMALLEST_PLAN))
    assert edited(greedy, [smallest]).memory_planner == ""


@pytest.mark.slow
@pytest.mark.interop
def test_duplicated_constants_end_in_the_toolchain_that_shares_them(
    source: str, tmp_path: Path
) -> None:
    more = ("--partitioner", "xnnpack", "--toolchain", "executorch")
    before = _compiled(source, tmp_path / "stock", *more)
    (found,) = [one for one in findings(before) if "a copy of another part" in one.text]
    assert edit_words(found.edits) == "Compile with built-in"
    after = _tried(before, found, tmp_path / "tried")
    sizes = [(tmp_path / name / "model.pte").stat().st_size for name in ("stock", "tried")]
    assert found.saves_bytes is not None
    assert sizes[0] - sizes[1] > 0.9 * found.saves_bytes
    assert not any("copy of another part" in one.text for one in findings(after))


@pytest.mark.slow
def test_memory_bound_layers_end_in_smaller_weights(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _compiled(source, tmp_path / "float")
    assert run("run", tmp_path / "float", "-o", tmp_path / "float/run").code == 0
    before = load_session([tmp_path / "float", tmp_path / "float/run"])
    _calibrate(1e12)
    rows = roofline(before, "forward", known_limits(before)).rows
    linear = [row for row in rows if "mm" in row.label or "linear" in row.label]
    slowest = max(linear, key=lambda row: row.time_ns or 0.0)
    assert slowest.bytes_per_s is not None
    _calibrate(slowest.bytes_per_s * 1.2)
    (found,) = [one for one in limit_findings(before) if "memory-bound" in one.text]
    assert edit_words(found.edits) == "Delegate to xnnpack, quantize every aten.linear: dynamic"
    _tried(before, found, tmp_path / "tried")
    read = [_bytes_read(tmp_path / name) for name in ("float", "tried")]
    assert read[1] < 0.4 * read[0]
    quantized = ("--partitioner", "xnnpack", "--quantize", "dynamic")
    _compiled(source, tmp_path / "small", *quantized)
    assert edits_that_shrink(load_session([tmp_path / "small"]), [slowest]) == ()


IMAGES = """
import torch

def build():
    layers = [torch.nn.Conv2d(16, 16, 3, padding=1, groups=16) for _ in range(4)]
    return torch.nn.Sequential(*layers).eval(), (torch.randn(1, 16, 96, 96),)
"""


@pytest.mark.slow
def test_memory_bound_convolutions_end_in_smaller_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "net.py").write_text(IMAGES)
    source = f"{tmp_path / 'net.py'}:build"
    _compiled(source, tmp_path / "float", "--partitioner", "xnnpack")
    assert run("run", tmp_path / "float", "-o", tmp_path / "float/run").code == 0
    before = load_session([tmp_path / "float", tmp_path / "float/run"])
    _calibrate(1e12)
    rows = roofline(before, "forward", known_limits(before)).rows
    slowest = max((row for row in rows if "Conv" in row.label), key=lambda row: row.time_ns or 0.0)
    assert slowest.bytes_per_s is not None
    _calibrate(slowest.bytes_per_s * 1.2)
    (found,) = [one for one in limit_findings(before) if "memory-bound" in one.text]
    assert edit_words(found.edits).endswith("quantize every aten.conv2d: static")
    _tried(before, found, tmp_path / "tried")
    read = [_bytes_read(tmp_path / name) for name in ("float", "tried")]
    assert read[1] < 0.6 * read[0]


def _bytes_read(folder: Path) -> int:
    tree = valid(run("summary", folder / "model.pte", "--format", "json"), "summary")
    return int(tree["data"]["methods"]["forward"]["work"]["read_bytes"])


def _calibrate(bandwidth: float) -> None:
    compute = (Ceiling("float32", 1, 1e14, 9e13, 1.1e14, 9),)
    memory = (Ceiling(COPY, 1, bandwidth, bandwidth, bandwidth, 9),)
    date = "2026-01-01T00:00:00+00:00"
    save_calibration(Calibration(this_machine(), torch_release(), date, compute, memory))


def test_limits_are_findings_on_a_calibrated_machine_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one = session(RUNS / "convnet_portable")
    assert limit_findings(one) == []
    compute = (Ceiling("float32", 1, 1e11, 9e10, 1.1e11, 9),)
    memory = (Ceiling(COPY, 1, 1e10, 9e9, 1.1e10, 9),)
    date = "2026-01-01T00:00:00+00:00"
    save_calibration(Calibration(this_machine(), torch_release(), date, compute, memory))
    assert limit_findings(one) == []  # nothing tells that this machine ran it
    monkeypatch.setattr("inspector.roofline.rows._machine_note", lambda *_: "")
    (found,) = limit_findings(one)
    assert "overhead-bound" in found.text
    assert found.text.endswith("µs a call")
    assert found.view == "roofline"
    assert found.saves_ms is not None
    assert 0 < found.saves_ms < 1


def test_largest_part_is_called_by_its_user_and_not_by_a_hash() -> None:
    (found,) = [one for one in findings(load_session(LOOP[:2])) if "named data" in one.text]
    assert found.detail == "largest: stem.0.weight, 15 KiB"
