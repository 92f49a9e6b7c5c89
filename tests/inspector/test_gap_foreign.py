"""Gaps of delegates that nobody here knows: their original subgraph is run, cut at its outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from compiler import to_edge_transform_and_lower
from compiler.backends.demo import AddMulPartitionerDemo, AllNodesPartitionerDemo
from compiler.interface.partitioner import Partitioner
from inspector.files.load import load_session
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.report import GapReport, Row
from runtime import DebugLevel, EventTracer, Program, Runtime
from runtime.delegates.interface import BackendRegistry
from runtime.kernels.registry import KernelRegistry
from runtime.program.loading import decode_program
from schema import etrecord
from schema import program as pte
from tests.inspector.sessions import DATA
from tests.runtime.samples import inputs_of

pytestmark = pytest.mark.slow

DEMO, WHOLE = "BackendWithCompilerDemo", "ExecutorBackend"
TWO = DATA / "corpus/special/xnnpack_two_delegates"


class Branches(nn.Module):
    """Several results, two of which are each other's part; something for every partitioner."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.scale = nn.Parameter(torch.full((8, 8), 3.25))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        summed = torch.mm(x + y, x) + y
        made = torch.sigmoid(self.linear(summed)) + self.scale
        return made, (made + summed).amax(-1), summed


class Alone(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.sin(torch.sin(x) + y)


class Cube(nn.Module):
    """A convolution with as many channels as rows and columns: its layout cannot be guessed."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x.reshape(1, 1, 8, 8))) + y


class Norms(nn.Module):
    """Operators of several results behind those of one."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        first, second = torch.split(self.norm(torch.erf(x)), 4, 1)
        return torch.cat([second, first], 1) * y


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's deserialiser has its own
        yield


def lowered(module: nn.Module, partitioner: Partitioner, folder: Path) -> tuple[torch.Tensor, ...]:
    """Write program and record; return the inputs."""
    torch.manual_seed(3)
    inputs = (torch.randn(8, 8), torch.randn(8, 8))
    exported = torch.export.export(module.eval(), inputs)
    manager = to_edge_transform_and_lower(
        exported, partitioner=[partitioner], generate_etrecord=True
    )
    done = manager.to_executorch()
    (folder / "model.pte").write_bytes(done.buffer)
    done.get_etrecord().save(folder / "model.etrecord")
    return inputs


def run(folder: Path, inputs: tuple[torch.Tensor, ...], *, known: bool) -> None:
    """Run by the backends that are here, or with none of them by the record."""
    record = etrecord.decode((folder / "model.etrecord").read_bytes())
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    file = decode_program(memoryview((folder / "model.pte").read_bytes()), "")
    if known:
        program = Runtime.get().load_program(
            str(folder / "model.pte"), enable_etdump=True, debug_buffer_size=1
        )
        program.load_method("forward", emulate=record).execute(list(inputs))
        program.write_etdump_result_to_file(str(folder / "run.etdp"), str(folder / "run.debug"))
        return
    program = Program(file, KernelRegistry(), BackendRegistry({}), tracer=tracer)
    program.load_method("forward", emulate=record).execute(list(inputs))
    tracer.write(folder / "run.etdp", folder / "run.debug")


def rows(report: GapReport) -> tuple[list[Row], list[Row]]:
    """Return rows of delegates' outputs and of what is inside, of the first run."""
    found = report.runs[0]
    calls = [row for row in found.rows if row.operator in (DEMO, WHOLE, "XnnpackBackend")]
    return calls, [row for row in found.rows if row.place == "inside"]


CASES = [
    (Branches, AddMulPartitionerDemo, True),
    (Branches, AddMulPartitionerDemo, False),
    (Branches, AllNodesPartitionerDemo, True),
    (Branches, AllNodesPartitionerDemo, False),
    (Alone, AddMulPartitionerDemo, False),
    (Alone, AllNodesPartitionerDemo, True),
    (Cube, AllNodesPartitionerDemo, False),
    (Norms, AllNodesPartitionerDemo, False),
]


@pytest.mark.parametrize(("module", "partitioner", "known"), CASES)
def test_delegates_without_a_kernel_of_their_own_are_compared_at_their_outputs(
    module: type[nn.Module], partitioner: type[Partitioner], known: bool, tmp_path: Path
) -> None:
    run(tmp_path, lowered(module(), partitioner(), tmp_path), known=known)
    report = analyse_gap(load_session([str(tmp_path)]))
    calls, inside = rows(report)
    assert calls
    assert all(row.own is not None and row.own.max_abs == 0 for row in calls)
    assert all(row.total is not None and row.inherited is not None for row in calls)
    assert all(found.first_divergence() is None for found in report.runs)
    (found,) = report.runs
    assert all(row.total is not None for row in found.rows if row.place != "inside")
    if not known or partitioner is AddMulPartitionerDemo:  # run by the record, node by node
        assert inside
        assert all(row.total is not None for row in inside)
        assert all(row.own is not None and row.own.max_abs == 0 for row in inside)


@pytest.mark.parametrize("error", [0.5, 2.0])
def test_error_of_a_foreign_delegate_is_its_own_and_others_inherit_it(
    error: float, tmp_path: Path
) -> None:
    _with_error_inside(tmp_path, error)
    report = analyse_gap(load_session([str(tmp_path)]))
    (found,) = report.runs
    first = found.first_divergence()
    assert first is not None
    assert (first.place, first.operator, first.sizes) == ("instruction", WHOLE, (8, 8))
    assert first.own is not None
    assert first.own.max_abs == pytest.approx(error, rel=1e-5)
    assert first.inherited is not None
    assert first.inherited.max_abs == 0
    (behind,) = [row for row in rows(report)[0] if row.sizes == (8,)]
    assert behind.own is not None
    assert behind.own.max_abs == 0
    assert behind.inherited is not None
    assert behind.inherited.max_abs == pytest.approx(error, rel=1e-5)


def _with_error_inside(folder: Path, error: float) -> None:
    """Lower everything into one delegate, then change what is added in its payload."""
    inputs = lowered(Branches(), AllNodesPartitionerDemo(), folder)
    program = decode_program(memoryview((folder / "model.pte").read_bytes()), "")
    plan = program.plan("forward")
    assert [delegate.id for delegate in plan.delegates] == [WHOLE]
    before = bytes(program.delegate_data(plan.delegates[0]))
    old, new = (torch.full((8, 8), 3.25 + more).numpy().tobytes() for more in (0.0, error))
    assert before.count(old) == 1
    after = before.replace(old, new)
    place = plan.delegates[0].processed
    assert place is not None
    segments = [*program.segments]
    segments[place.index] = memoryview(after)
    changed = pte.encode(replace(program, segments=tuple(segments)))
    (folder / "model.pte").write_bytes(changed)
    run(folder, inputs, known=True)


def test_program_recorded_after_delegation_is_run_with_what_is_inside_its_delegates() -> None:
    report = analyse_gap(load_session([str(TWO)]), Options(reference="edge"))
    calls, inside = rows(report)
    assert [row.node for row in calls] == ["aten_relu_default_1", "aten_linear_default"]
    assert len(inside) == 5
    for row in calls:
        assert row.own is not None
        assert row.total is not None
        assert 0 < row.total.max_abs < 1e-6
    assert calls[0].inherited is not None
    assert calls[0].inherited.max_abs == 0
    assert all(found.first_divergence() is None for found in report.runs)


@pytest.mark.parametrize(
    "name", ["corpus/special/xnnpack_int8_static", "corpus/v1.5.1/tinygpt_xnnpack"]
)
def test_programs_of_the_stock_compiler_run_here_have_no_divergence_inside(
    name: str, tmp_path: Path
) -> None:
    for own in ("model.pte", "model.etrecord"):
        (tmp_path / own).write_bytes((DATA / name / own).read_bytes())
    program = Runtime.get().load_program(
        str(tmp_path / "model.pte"), enable_etdump=True, debug_buffer_size=1
    )
    method = program.load_method("forward", engine="torch")
    method.execute(inputs_of(method.metadata))
    program.write_etdump_result_to_file(str(tmp_path / "run.etdp"), str(tmp_path / "run.debug"))
    inputs = inputs_of(method.metadata)
    (found,) = analyse_gap(load_session([str(tmp_path)]), Options(inputs=inputs)).runs
    inside = [row for row in found.rows if row.place == "inside"]
    assert any(row.total is not None for row in inside)
    assert [row.node for row in found.rows if row.diverges] == []
