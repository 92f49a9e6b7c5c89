"""The documented table of numeric gaps on programs with branches and loops."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector import Inspector
from inspector.files.load import load_session
from inspector.numerics.replay.analysis import Options, analyse_gap
from runtime import DebugLevel, EventTracer, Program
from runtime.delegates.interface import BackendRegistry
from runtime.kernels.registry import KernelRegistry
from runtime.program.loading import decode_program
from tests.compiler.control_flow import SAMPLES
from tests.inspector.gap_sessions import made, run
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow

COLUMNS = 8
RECORDED = DATA / "corpus/special/control_flow"


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    torch.manual_seed(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's deserialiser has its own
        yield


def table(folder: Path, distance: str = "L1") -> Any:
    inspector = Inspector(
        etdump_path=folder / "run.etdp",
        etrecord=str(folder / "model.etrecord"),
        debug_buffer_path=folder / "run.debug",
    )
    return inspector.calculate_numeric_gap(distance)


UNRECORDED = ("while_loop_number",)  # a record has no form for its arguments


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in UNRECORDED])
def test_table_has_every_node_of_a_body_that_the_gap_compares(name: str, tmp_path: Path) -> None:
    found = made(SAMPLES[name], tmp_path)
    run(tmp_path / "model.pte", tmp_path, found.runs[:1])
    (compared,) = analyse_gap(found.session, Options(runs=(0,))).runs[:1]
    inside = {row.node for row in compared.rows if row.compared and "/" in row.graph_node}
    frame = table(tmp_path)
    named = {node for nodes in frame["aot_ops"] for node in nodes}
    kernels = {row.node for row in compared.rows if row.compared and row.grade == "INSTRUCTION"}
    assert inside & kernels <= named
    assert len(frame) >= len(inside & kernels)
    assert not any(value for gap in frame["gap"] for value in gap)


def test_table_of_a_recorded_program_agrees_with_the_gap_of_its_files() -> None:
    frame = table(RECORDED)
    (compared,) = analyse_gap(load_session([str(RECORDED)]), Options(runs=(0,))).runs
    rows = [row for row in compared.rows if row.total is not None]
    assert len(frame) == len(rows) == 5
    wanted = sorted(row.total.l1 for row in rows if row.total is not None)
    assert sorted(gap[0] for gap in frame["gap"]) == pytest.approx(wanted, rel=1e-5)


def test_table_says_that_it_takes_the_example_inputs(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        frame = table(RECORDED)
    assert frame.attrs["inputs"] == "example inputs of the exported program"
    assert "update_representative_inputs" in caplog.text


def test_table_of_a_run_without_values_has_its_columns_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = made(SAMPLES["cond"], tmp_path)
    tracer = EventTracer(DebugLevel.NONE)
    file = decode_program(memoryview((tmp_path / "model.pte").read_bytes()), "")
    loaded = Program(file, KernelRegistry(), BackendRegistry({}), tracer=tracer)
    loaded.load_method("forward").execute(list(found.runs[0]))
    tracer.write(tmp_path / "run.etdp", tmp_path / "run.debug")
    with caplog.at_level(logging.WARNING):
        frame = table(tmp_path)
    assert (len(frame), len(frame.columns)) == (0, COLUMNS)
    assert "intermediate outputs" in caplog.text
