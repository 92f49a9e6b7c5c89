"""Programs of the corpus on the stock runtime and on ours: outputs, events, tensors."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch.utils import _pytree as pytree

from schema import etdump
from tests.runtime.samples import PORTABLE, UNTRACED, assert_close, calls_of, folder, load
from tests.runtime.stock import Stock

pytestmark = [pytest.mark.slow, pytest.mark.interop]


@pytest.mark.parametrize("name", PORTABLE)
def test_execute_portable_program_equals_stock(name: str, stock: Stock, tmp_path: Path) -> None:
    program = load(name, enable_etdump=True, debug_buffer_size=1)
    calls = calls_of(program)
    found = [program.load_method(method).execute(inputs) for method, inputs in calls]
    traced = name not in UNTRACED
    theirs = tmp_path / "stock"
    data = next(iter(sorted(folder(name).glob("*.ptd"))), "")
    wanted = stock.calls(
        folder(name) / "model.pte", calls, str(data), str(theirs) if traced else ""
    )
    for ours, other in zip(found, wanted, strict=True):
        assert_close(ours, other)
    if traced:
        program.write_etdump_result_to_file(tmp_path / "ours.etdp", tmp_path / "ours.debug")
        assert _events(tmp_path / "ours.etdp") == _events(tmp_path / "stock.etdp")


def _events(path: Path) -> list[list[tuple[object, ...]]]:
    """Kind, name and place of all events of all runs, and the shapes of what is logged."""
    dump = etdump.decode(path.read_bytes())
    assert dump.issues == ()
    return [
        [_said(event) for event in run.events] for run in dump.run_data if run.name == "Execute"
    ]


def _said(event: etdump.AnyEvent) -> tuple[object, ...]:
    if isinstance(event, etdump.DebugEvent):
        assert event.value is not None
        tensors = [(one.scalar_type, one.sizes, one.strides) for one in event.value.all_tensors()]
        kind = (event.value.type, event.value.output, tuple(tensors))
        return ("debug", event.chain_index, event.instruction_id, kind)
    assert isinstance(event, etdump.ProfileEvent)
    assert event.end_time >= event.start_time > 0
    return (event.name, event.chain_index, event.instruction_id)


@pytest.mark.parametrize(
    "name", ["corpus/v1.5.1/tinygpt_portable", "extra/lstm_portable", "extra/many_outputs"]
)
def test_trace_read_by_stock_inspector_equals_stock_trace(
    name: str, stock: Stock, tmp_path: Path
) -> None:
    program = load(name, enable_etdump=True, debug_buffer_size=1)
    calls = calls_of(program, rounds=1) * 2
    for method, inputs in calls:
        program.load_method(method).execute(inputs)
    program.write_etdump_result_to_file(tmp_path / "ours.etdp", tmp_path / "ours.debug")
    stock.calls(folder(name) / "model.pte", calls, "", str(tmp_path / "stock"))
    record = folder(name) / "model.etrecord"
    rows, tensors = stock.inspect(tmp_path / "ours", record)
    stock_rows, stock_tensors = stock.inspect(tmp_path / "stock", record)
    assert [row for row in rows if row[0] == "Execute"] == [
        row for row in stock_rows if row[0] == "Execute"
    ]
    ours = [v for row, v in zip(rows, tensors, strict=True) if row[0] == "Execute"]
    theirs = [v for row, v in zip(stock_rows, stock_tensors, strict=True) if row[0] == "Execute"]
    assert sum(len(values) for values in ours) >= 5
    for a, b in zip(ours, theirs, strict=True):
        assert_close(pytree.tree_leaves(a), pytree.tree_leaves(b))
