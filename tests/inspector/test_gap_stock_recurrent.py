"""Gaps of recurrent nets by the stock compiler, whose nodes share one debug handle."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.files.load import load_session
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.report import RunGap
from runtime import Runtime
from tests.tools.forked import run_stock

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

NETS = ("lstm_both_ways", "gru_of_two", "rnn")
WAYS = ("stock", "torch", "native")
SHARE = 0.95  # of the outputs of instructions


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's deserialiser has its own
        yield


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recurrent")
    run_stock(["-m", "tests.inspector.stock_recurrent", folder])
    return folder


def gap(home: Path, way: str) -> RunGap:
    """Compare a run of the stock runtime, or of ours by an engine."""
    inputs: list[Any] = torch.load(home / "inputs.pt")
    folder = home / way
    if way != "stock":
        folder.mkdir(exist_ok=True)
        program = Runtime.get().load_program(
            str(home / "model.pte"), enable_etdump=True, debug_buffer_size=1
        )
        program.load_method("forward", engine=way).execute(inputs)
        program.write_etdump_result_to_file(str(folder / "run.etdp"), str(folder / "run.debug"))
    files = [home / "model.pte", home / "model.etrecord", folder / "run.etdp", folder / "run.debug"]
    session = load_session([str(file) for file in files])
    (found,) = analyse_gap(session, Options(inputs=inputs)).runs
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NETS)
def test_recurrent_net_of_the_stock_compiler_is_compared_and_has_no_divergence(
    name: str, way: str, programs: Path
) -> None:
    run = gap(programs / name, way)
    outputs = run.outside()
    assert sum(row.compared for row in outputs) >= SHARE * len(outputs)
    assert run.first_divergence() is None
    assert run.doubtful() == ()
    if way != "stock":  # which logs nothing inside of this backend
        assert sum(row.compared for row in run.inside()) >= SHARE * len(run.inside())
    assert not any(row.total.out_of_tolerance for row in run.rows if row.total)
