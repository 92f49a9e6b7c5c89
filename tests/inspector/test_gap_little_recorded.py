"""Runs that recorded little or nothing: what can be compared is, and it is said what would help."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from inspector.cli.gap import _lines as lines_of
from inspector.files.load import load_session
from inspector.numerics.inside import AT_BOUNDARY, FUSED, NO_TENSORS
from inspector.numerics.replay.analysis import ONLY_OUTPUTS, Options, analyse_gap
from inspector.numerics.report import GapReport
from runtime import DebugLevel, EventTracer, Runtime
from tests.compiler.programs import Sample
from tests.inspector.gap_sessions import made

pytestmark = pytest.mark.slow


class Heads(nn.Module):
    """Two results, one of them made last, and a sum that only a kernel has."""

    def __init__(self) -> None:
        super().__init__()
        self.over_time = nn.Conv1d(4, 6, 3, padding=1)
        self.body = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return sums along the sequence, and a head on its mean."""
        seen = torch.relu(self.over_time(x))
        return seen.cumsum(2), self.body(seen.mean(2))


@pytest.fixture(scope="module", params=[False, True], ids=["portable", "delegated"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(5)
    sample = Sample(lambda: Heads().eval(), (torch.randn(2, 4, 9),))
    return made(sample, tmp_path_factory.mktemp("little"), delegated=request.param).folder


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _gap(folder: Path, into: Path, level: DebugLevel) -> GapReport:
    tracer = EventTracer(level)
    program = Runtime.get().load_program(folder / "model.pte", tracer=tracer)
    torch.manual_seed(5)
    example = (torch.randn(2, 4, 9),)
    program.load_method("forward", engine="torch").execute(list(example))
    tracer.write(into / "run.etdp", into / "run.debug")
    names = ("model.pte", "model.etrecord")
    files = [*(folder / name for name in names), into / "run.etdp", into / "run.debug"]
    return analyse_gap(load_session([str(one) for one in files]), Options())


def test_outputs_alone_are_compared_with_those_of_the_recorded_program(
    folder: Path, tmp_path: Path
) -> None:
    report = _gap(folder, tmp_path, DebugLevel.OUTPUTS)
    (run,) = report.runs
    rows = [row for row in run.rows if row.compared and row.place == "instruction"]
    assert len(rows) == 2
    assert all(row.total is not None and row.total.out_of_tolerance == 0 for row in rows)
    assert ONLY_OUTPUTS in run.notes
    cover = report.coverage([run])
    assert cover["compared"] + cover["stated_reasons"] == cover["instruction_outputs"]
    assert all(row.reason for row in run.rows if not row.compared)


def test_run_without_values_says_how_to_record_them(folder: Path, tmp_path: Path) -> None:
    report = _gap(folder, tmp_path, DebugLevel.NONE)
    (run,) = report.runs
    assert not any(row.compared for row in run.rows)
    assert ONLY_OUTPUTS in run.notes
    assert "--debug-level intermediate" in ONLY_OUTPUTS
    assert not any(row.reason == AT_BOUNDARY for row in run.rows), "that is not compared either"
    assert all(row.reason in (NO_TENSORS, FUSED) for row in run.inside())


def test_run_with_all_values_compares_every_node_inside_in_its_own_shape(
    folder: Path, tmp_path: Path
) -> None:
    report = _gap(folder, tmp_path, DebugLevel.INTERMEDIATE)
    (run,) = report.runs
    assert ONLY_OUTPUTS not in run.notes
    cover = report.coverage([run])
    assert cover["compared"] == cover["instruction_outputs"]
    assert all(row.compared or row.reason == FUSED for row in run.inside()), [
        (row.node, row.reason) for row in run.inside()
    ]
    assert not any(row.total.out_of_tolerance for row in run.rows if row.total)
    first = lines_of(
        {"coverage": cover | {"inside": {"nodes": 0, "compared": 0}}, "first_divergence": None}
    )
    assert first[-1] == "no node exceeds the tolerance by its own error"
