"""What `etscope run` leaves in a folder, beside what the stock runtime and Inspector make of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.utils import _pytree as pytree

from compiler import to_edge
from inspector.jobs.executing import RunJob
from inspector.worker.executing import execute
from inspector.worker.tasks import Task
from runtime import Runtime
from tests.compiler.compare import exported, flat, module_of
from tests.compiler.programs import EVERY
from tests.runtime.samples import assert_close, folder, inputs_of
from tests.runtime.stock import Stock

pytestmark = [pytest.mark.slow, pytest.mark.interop]

RECORDED = (
    "corpus/v1.5.1/convnet_portable",
    "corpus/v1.5.1/tinygpt_portable",
    "corpus/special/control_flow",
    "extra/counter_state",
    "extra/external_weights",
    "extra/lstm_portable",
    "extra/many_outputs",
    "extra/scan_rows",
)
COMPILED = ("conv_bn", "counter", "gru", "kv_cache")


def _run(
    program: Path,
    inputs: list[torch.Tensor],
    place: Path,
    data: tuple[str, ...] = (),
) -> list[torch.Tensor]:
    """Do what the worker of `etscope run` does; return the outputs it saved."""
    torch.save(inputs, place / "in.pt")
    out = place / "out"
    out.mkdir()
    job = RunJob(
        str(program),
        inputs=str(place / "in.pt"),
        timed=False,
        debug_level="intermediate",
        data_files=data,
    )
    execute(job, Task(out, lambda *_said, **_content: None))
    return torch.load(out / "outputs.pt", weights_only=True)


def _assert_same_trace(stock: Stock, place: Path, record: Path | None) -> int:
    """Both traces are the same to the stock Inspector; return how many tensors were compared."""
    ours = _executed(*stock.inspect(place / "out/values", record))
    theirs = _executed(*stock.inspect(place / "stock", record))
    assert [row for row, _ in ours] == [row for row, _ in theirs]
    for (_, one), (_, other) in zip(ours, theirs, strict=True):
        assert_close(pytree.tree_leaves(one), pytree.tree_leaves(other))
    return sum(len(values) for _, values in ours)


def _executed(rows: list[list[object]], values: list[list[object]]) -> list[tuple[object, list]]:
    return [pair for pair in zip(rows, values, strict=True) if pair[0][0] == "Execute"]


@pytest.mark.parametrize("name", RECORDED)
def test_run_of_a_recorded_session_equals_stock(name: str, stock: Stock, tmp_path: Path) -> None:
    program = folder(name) / "model.pte"
    inputs = inputs_of(Runtime.get().load_program(program).metadata("forward"))
    data = tuple(map(str, sorted(folder(name).glob("*.ptd"))))
    found = _run(program, inputs, tmp_path, data)
    wanted = stock.calls(
        program, [("forward", inputs)], next(iter(data), ""), str(tmp_path / "stock")
    )
    assert_close(found, wanted[-1])
    record = folder(name) / "model.etrecord"
    assert _assert_same_trace(stock, tmp_path, record if record.exists() else None) >= 2


@pytest.mark.parametrize("name", COMPILED)
def test_run_of_a_program_of_ours_equals_stock(name: str, stock: Stock, tmp_path: Path) -> None:
    sample = EVERY[name]
    module = module_of(sample)
    program = tmp_path / "model.pte"
    program.write_bytes(to_edge(exported(sample, module)).to_executorch().buffer)
    inputs = list(flat(sample.inputs))
    found = _run(program, inputs, tmp_path)
    wanted = stock.calls(program, [("forward", inputs)], "", str(tmp_path / "stock"))
    assert_close(found, wanted[-1])
    assert _assert_same_trace(stock, tmp_path, None) >= 2
