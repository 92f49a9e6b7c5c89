"""The measured costs of calls: their file, the job that measures them, and who uses them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from compiler.partition.work import flops_of
from inspector.compare.as_stock import AS_STOCK
from inspector.compare.sessions import compare_sessions
from inspector.experiments.gates.evidence import Evidence, MissingError
from inspector.experiments.gates.times import latency
from inspector.files.machine import Machine, this_machine
from inspector.files.run_report import run_report
from inspector.graph.boundaries import Boundary, Crossing
from inspector.jobs.calibrate import CallCostsJob
from inspector.jobs.preview import MethodPreview, NodePreview, PartitionPreview
from inspector.jobs.suggestions import cost_of_calls
from inspector.profile.methods import analyse_profile
from inspector.roofline.as_target import exchanged_calls
from inspector.roofline.call_costs import (
    STOCK,
    THIS,
    CallCosts,
    costs_file,
    device_target,
    known_costs,
    load_costs,
    save_costs,
    usual_costs,
)
from inspector.worker import calibrating_calls
from inspector.worker.tasks import Task
from schema.errors import FormatError
from schema.program import instructions
from schema.program.model import JumpFalseCall
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA, session

RAN = DATA / "runs" / "convnet_xnnpack"
TIMES = {
    "few": 5_000.0,
    "many": 133_000.0,  # 1000 ns an instruction
    "few calls": 20_000.0,
    "many calls": 212_000.0,  # 3000 ns a call
    "image": 1e6,
    "moved": 1e6 + 4 * 64**3,  # 1 ns a byte
    "matmul": 0.0,
    "matmuls": 2.0 * 128**3 * 7,  # 1 ns a FLOP
    "matmul inside": 5.0,
    "matmuls inside": 5.0 + 128**3 * 7,
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _costs(target: str = THIS, machine: Machine | None = None, **changes: float) -> CallCosts:
    release = "1.5.1" if target == STOCK else ""
    one = CallCosts(
        *(target, release, machine or this_machine(), "2026-11-24T00:00:00+00:00"),
        run=5e3,
        instruction=5e2,
        call=2e3,
        byte=0.1,
        portable_flop=1.0,
        delegate_flop=0.5,
    )
    return replace(one, **changes)


def test_costs_are_slopes_between_the_programs_of_a_pair() -> None:
    found = calibrating_calls.costs_of(TIMES, CallCostsJob(), {})
    assert (found.instruction, found.call, found.byte) == (1000.0, 3000.0, 1.0)
    assert (found.portable_flop, found.delegate_flop) == (1.0, 0.5)
    assert found.run == 0.0
    assert (found.fewest_nodes, found.least_work) == (3, 6000)
    assert found.target == THIS
    swapped = {**TIMES, "many": 0.0, "matmuls": 0.0}
    none = calibrating_calls.costs_of(swapped, CallCostsJob(toolchain="executorch"), {})
    assert (none.instruction, none.fewest_nodes, none.least_work) == (0.0, 1, None)
    assert none.target == STOCK


def test_each_target_has_a_file_and_the_stock_runtime_comes_first() -> None:
    assert (load_costs(STOCK), usual_costs()) == (None, None)
    kept = [_costs(THIS), _costs(device_target("board")), _costs(STOCK)]
    assert len({save_costs(one) for one in kept}) == 3
    save_costs(_costs(STOCK, Machine("another", 4, "Linux")))
    assert [one.target for one in known_costs()] == [STOCK, THIS, "device board"]
    assert usual_costs() == _costs(STOCK)
    costs_file(THIS).write_text("{}")
    with pytest.raises(FormatError):
        load_costs(THIS)
    assert [one.target for one in known_costs()] == [STOCK, "device board"]


@pytest.mark.slow
def test_job_measures_our_runtime(tmp_path: Path) -> None:
    said: list[str] = []
    task = Task(tmp_path, lambda kind, **_: said.append(kind))
    calibrating_calls.work(CallCostsJob(blocks=2), task)
    found = load_costs(THIS)
    assert found is not None
    for cost in (found.instruction, found.call, found.byte):
        assert 0 < cost < 1e6
    assert {"stage", "counted"} <= set(said)
    answer = run("roofline", RAN, "--format", "json")
    (shown,) = valid(answer, "roofline")["data"]["limits"]["calls"]
    assert shown["call_ns"] == found.call


def test_a_gate_is_judged_with_the_calls_of_the_stock_runtime() -> None:
    evidence = Evidence(session(RAN), "the run")
    with pytest.raises(MissingError, match="--calibrate-calls"):
        latency("latency.stock", evidence)
    report = run_report(session(RAN).dumps[0])
    assert report is not None
    machine = report.machine or this_machine()
    save_costs(_costs(THIS, machine, run=0.0, call=2e3, instruction=0.0))
    save_costs(_costs(STOCK, machine, run=0.0, call=5e2, instruction=0.0))
    calls = exchanged_calls(session(RAN), "forward")
    assert calls is not None
    (time,) = analyse_profile(session(RAN)).methods
    assert time.bare is not None
    found = latency("latency.stock", evidence)
    expected = latency("latency", evidence)
    assert found.value is not None
    assert expected.value is not None
    assert "delegate call" in found.words
    assert STOCK in found.words
    bare = sorted(time.bare.times)
    middle = (bare[(len(bare) - 1) // 2] + bare[len(bare) // 2]) / 2
    assert found.value == pytest.approx(middle - calls.calls * 1.5e-3)


def test_a_comparison_has_a_row_with_the_calls_of_the_stock_runtime() -> None:
    sides = [session(DATA / "runs" / name) for name in ("convnet_portable", "convnet_xnnpack")]
    assert AS_STOCK not in [one.what for one in compare_sessions(sides).summary]
    for side in sides:
        report = run_report(side.dumps[0])
        machine = this_machine() if report is None or report.machine is None else report.machine
        save_costs(_costs(THIS, machine))
        save_costs(_costs(STOCK, machine, run=0.0, call=0.0, instruction=0.0))
    (row,) = [one for one in compare_sessions(sides).summary if one.what == AS_STOCK]
    (recorded,) = [one for one in compare_sessions(sides).summary if one.what == "recorded runs"]
    for taken, ms in zip(row.values, recorded.values, strict=True):
        assert taken is not None
        assert ms is not None
        assert 0 <= taken < ms
    assert "instead of this runtime" in row.note


def test_a_trace_without_a_report_is_of_no_known_runtime(tmp_path: Path) -> None:
    for target in (THIS, STOCK):
        save_costs(_costs(target))
    for name in ("model.pte", "run.etdp"):
        shutil.copy(RAN / name, tmp_path)
    foreign = session(tmp_path)
    assert foreign.dumps
    assert exchanged_calls(foreign, "forward") is None
    assert exchanged_calls(foreign, "forward", THIS) is not None


def test_calls_of_a_program_with_branches_are_not_counted() -> None:
    for target in (THIS, STOCK):
        save_costs(_costs(target))
    branching = session(DATA / "corpus/special/control_flow")
    assert branching.program is not None
    kinds = {type(one.instr_args) for *_, one in instructions(branching.program.plans[0])}
    assert JumpFalseCall in kinds
    assert exchanged_calls(branching, branching.methods[0], THIS) is None


def test_calls_and_copies_of_a_preview_have_a_cost() -> None:
    moved = Boundary(None, 0, (Crossing("x", "float32[4]", 16, 2), Crossing("y", "", None)))
    shown = MethodPreview(
        (NodePreview("a", "aten.neg.default", 0), NodePreview("b", "aten.sin.default")),
        (PartitionPreview("tag0", "XnnpackBackend", "XnnpackPartitioner", ("a",)),),
        (moved,),
        (),
    )
    assert cost_of_calls(shown, _costs()) == pytest.approx(2e3 + 5e2 + 0.1 * 32)


_NET = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)
    def forward(self, x):
        return torch.asinh(torch.asinh(self.linear(x)).neg())
def build():
    return Net().eval(), (torch.ones(1, 64),)
"""


@pytest.mark.slow
def test_fewest_nodes_are_those_that_cost_a_call(tmp_path: Path) -> None:
    source = tmp_path / "net.py"
    source.write_text(_NET)
    words = ("compile", f"{source}:build", "--partitioner", "xnnpack", "--min-nodes")
    unknown = run(*words, "auto", "-o", tmp_path / "a")
    assert unknown.code == 2
    assert "the cost of a call is not known" in unknown.err
    save_costs(_costs(STOCK))
    save_costs(_costs(THIS, call=5e2))
    answer = run(*words, "auto", "-o", tmp_path / "b", "--format", "json")
    issues = valid(answer, "compile")["issues"]
    (note,) = [one for one in issues if one["where"] == "--min-nodes auto"]
    assert note["message"].startswith("at least 4 nodes, or 4,000 FLOPs a partition: stock runtime")
    rules = json.loads((tmp_path / "b" / "recipe.json").read_text())["job"]["rules"]
    assert (rules["min_nodes"], rules["min_work"]) == (4, 4000)
    delegation = run("delegation", tmp_path / "b", "--format", "json")
    (method,) = valid(delegation, "delegation")["data"]["methods"].values()
    assert len(method["delegates"]) == 1  # the layer of 8,192 FLOPs, and not the negation
    own = run(*words, "auto:built-in", "-o", tmp_path / "c", "--format", "json")
    rules = json.loads((tmp_path / "c" / "recipe.json").read_text())["job"]["rules"]
    assert rules["min_nodes"] == 1
    assert own.code == 0


@pytest.mark.slow
def test_work_of_nodes_is_that_of_torch() -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from compiler import to_edge

    nets = {
        "linear": (torch.nn.Linear(5, 7), (3, 5)),
        "conv": (torch.nn.Conv2d(4, 6, 3, groups=2), (1, 4, 9, 8)),
        "transposed": (torch.nn.ConvTranspose2d(4, 6, 3, stride=2), (1, 4, 5, 6)),
    }
    for name, (net, shape) in nets.items():
        x = torch.randn(shape)
        with FlopCounterMode(display=False) as counter:
            net(x)
        program = to_edge(torch.export.export(net.eval(), (x,))).exported_program()
        nodes = [n for n in program.graph.nodes if n.op == "call_function"]
        layers = [n for n in nodes if any(w in n.name for w in ("addmm", "convolution"))]
        assert sum(map(flops_of, layers)) == counter.get_total_flops(), name


@pytest.mark.slow
def test_a_size_that_depends_on_data_counts_once() -> None:
    import torch

    class Found(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nonzero(x).float().neg()

    program = torch.export.export(Found(), (torch.eye(3),))
    (neg,) = (one for one in program.graph.nodes if one.name.startswith("neg"))
    assert flops_of(neg) == 2
