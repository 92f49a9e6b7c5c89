"""Which of several methods a trace is of, and what the gap says where that is open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from inspector.files.load import load_session
from inspector.jobs.gap import REPORT, GapJob
from inspector.join.methods import block_method, is_execution
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.report import GapReport
from inspector.trace.blocks import trace_blocks
from inspector.worker.gap_job import compare
from runtime import DebugLevel, EventTracer, Runtime
from tests.inspector.cli_runs import run

pytestmark = pytest.mark.slow


class _Two(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.body(x)))


class _Short(torch.nn.Module):
    def __init__(self, two: _Two) -> None:
        super().__init__()
        self.two = two

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.two.body(x))


def _made(folder: Path, modules: dict[str, torch.nn.Module], *, delegated: bool) -> Path:
    inputs = (torch.randn(2, 8),)
    programs = {name: torch.export.export(one.eval(), inputs) for name, one in modules.items()}
    partitioner = [XnnpackPartitioner()] if delegated else []
    edge = to_edge_transform_and_lower(programs, partitioner=partitioner, generate_etrecord=True)
    made = edge.to_executorch()
    (folder / "model.pte").write_bytes(bytes(made.buffer))
    made.get_etrecord().save(str(folder / "model.etrecord"))
    return folder


def _run(folder: Path, method: str) -> None:
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    program = Runtime.get().load_program(folder / "model.pte", tracer=tracer)
    program.load_method(method, engine="torch").execute([torch.randn(2, 8)])
    tracer.write(folder / "run.etdp", folder / "run.debug")


def _gap(folder: Path, method: str = "") -> GapReport:
    names = ("model.pte", "model.etrecord", "run.etdp", "run.debug")
    return analyse_gap(load_session([str(folder / name) for name in names]), Options(method=method))


@pytest.mark.parametrize("method", ["forward", "body"])
def test_nodes_inside_of_delegates_tell_the_method(tmp_path: Path, method: str) -> None:
    two = _Two()
    folder = _made(tmp_path, {"forward": two, "body": _Short(two)}, delegated=True)
    _run(folder, method)
    session = load_session([str(folder / "model.pte"), str(folder / "run.etdp")])
    blocks = [one for one in trace_blocks(session.dumps).blocks if is_execution(one)]
    assert [block_method(session.program, one) for one in blocks] == [method]
    report = _gap(folder)
    assert {run.method for run in report.runs} == {method}
    assert report.coverage(report.runs)["compared"] >= 1


def test_methods_alike_are_named_and_the_user_chooses(tmp_path: Path) -> None:
    folder = _made(tmp_path, {"one": _Two(), "other": _Two()}, delegated=False)
    _run(folder, "other")
    open_question = _gap(folder)
    assert open_question.runs == ()
    assert "one, other fit: name one with --method" in open_question.notes[0]
    told = _gap(folder, "other")
    assert [run.method for run in told.runs] == ["other"]
    assert _gap(folder, "third").notes == ("the trace has no run of third",)


@pytest.mark.parametrize(
    ("report", "found"),
    [
        ('{"method": "other"}', "other"),
        ("{}", ""),
        ("[1]", ""),
        ("no JSON", ""),
        ('{"method": 3}', ""),
        (None, ""),
    ],
)
def test_method_that_a_run_wrote_down_is_taken_where_the_trace_leaves_it_open(
    report: str | None, found: str, tmp_path: Path
) -> None:
    folder = _made(tmp_path, {"one": _Two(), "other": _Two()}, delegated=False)
    _run(folder, "other")
    if report is not None:
        (folder / "run.json").write_text(report, "utf-8")
    names = ("model.pte", "model.etrecord", "run.etdp", "run.debug")
    job = GapJob(tuple(str(folder / name) for name in names))
    out = tmp_path / "gap"
    out.mkdir()
    compare(job, out, lambda *_, **__: None)
    told = json.loads((out / REPORT).read_text("utf-8"))
    assert [run["method"] for run in told["runs"]] == ([found] if found else [])


def test_trace_that_only_loads_has_nothing_to_compare(tmp_path: Path) -> None:
    folder = _made(tmp_path, {"forward": _Two()}, delegated=False)
    tracer = EventTracer()
    Runtime.get().load_program(folder / "model.pte", tracer=tracer).load_method("forward")
    tracer.write(folder / "run.etdp", folder / "run.debug")
    assert _gap(folder).notes == ("the trace has no run of a method",)


def test_inputs_that_a_run_kept_are_those_of_the_gap(tmp_path: Path) -> None:
    folder = _made(tmp_path, {"forward": _Two()}, delegated=False)
    out = folder / "out"
    recorded = ("--debug-level", "intermediate")
    assert run("run", folder / "model.pte", "-o", out, *recorded).code == 0
    files = [
        folder / "model.pte",
        folder / "model.etrecord",
        out / "values.etdp",
        out / "values.debug",
    ]
    told = run("gap", *files).out
    assert "the inputs are those of inputs.pt next to the trace" in told
    assert "no node exceeds the tolerance by its own error" in told
    (out / "inputs.pt").unlink()
    told = run("gap", *files).out
    assert "assumed: the run had the example inputs" in told
    assert "not distinguishable: aten_addmm_default computed otherwise" in told
