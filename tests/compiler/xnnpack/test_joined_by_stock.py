"""What the stock Inspector makes of records with XNNPACK delegates, of its traces and of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import DebugLevel, EventTracer, Runtime
from schema.payloads.xnnpack.identity import named_node
from tests.compiler.compare import exported, module_of
from tests.compiler.programs import EVERY
from tests.compiler.stock import Stock

pytestmark = [pytest.mark.slow, pytest.mark.interop]

NETS = ("conv_bn", "elementwise", "mobile_net", "pools", "u_net")


@pytest.mark.parametrize("name", NETS)
def test_kernels_of_a_stock_trace_are_given_to_no_node(
    name: str, stock: Stock, tmp_path: Path
) -> None:
    buffer, record = _made(name, tmp_path)
    trace = str(tmp_path / "run")
    stock.run(buffer, [("forward", EVERY[name].inputs)], trace=trace)
    facts = stock.ask("record", etrecord=str(record), trace=trace, gap="yes")
    assert "error" not in facts, facts["error"]
    inner = [row for row in facts["rows"] if row["name"].rpartition("#")[2].isdecimal()]
    assert inner
    assert [row for row in inner if row["op_types"]] == []


@pytest.mark.parametrize("name", NETS)
def test_nodes_of_our_trace_are_found(name: str, stock: Stock, tmp_path: Path) -> None:
    buffer, record = _made(name, tmp_path)
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    program = Runtime().load_program(buffer, tracer=tracer)
    program.load_method("forward", engine="torch").execute(EVERY[name].inputs)
    tracer.write(tmp_path / "run.etdp", tmp_path / "run.debug")
    facts = stock.ask("record", etrecord=str(record), trace=str(tmp_path / "run"))
    assert "error" not in facts, facts["error"]
    inner = [row for row in facts["rows"] if named_node(row["name"]) is not None]
    assert inner
    assert any(row["op_types"] for row in inner)


def _made(name: str, folder: Path) -> tuple[bytes, Path]:
    sample = EVERY[name]
    program = exported(sample, module_of(sample))
    manager = to_edge_transform_and_lower(
        program, partitioner=XnnpackPartitioner(), generate_etrecord=True
    )
    emitted = manager.to_executorch()
    path, record = folder / "model.etrecord", emitted.get_etrecord()
    record.update_representative_inputs(list(sample.inputs))
    record.save(path)
    return emitted.buffer, path
