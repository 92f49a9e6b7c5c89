"""What the stock Inspector makes of records with XNNPACK delegates, of its traces and of ours."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import DebugLevel, EventTracer, Runtime
from schema.payloads.identity import named_node
from tests.compiler.compare import exported, module_of
from tests.compiler.programs import EVERY
from tests.compiler.stock import Stock

pytestmark = [pytest.mark.slow, pytest.mark.interop]

IMAGES = {  # one output each: of others the stock tool takes no inner value
    "picture": (
        nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Hardswish()),
        (torch.randn(2, 3, 9, 12),),
    ),
    "square": (  # as many channels as rows and columns
        nn.Sequential(nn.Conv2d(6, 6, 1), nn.Sigmoid(), nn.MaxPool2d(3, 1, 1)),
        (torch.randn(1, 6, 6, 6),),
    ),
    "signal": (
        nn.Sequential(nn.Conv1d(3, 4, 3), nn.Tanh(), nn.Conv1d(4, 4, 3, groups=4), nn.GELU()),
        (torch.randn(2, 3, 11),),
    ),
    "head": (
        nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Sigmoid(), nn.Flatten(), nn.Linear(4, 3)
        ),
        (torch.randn(2, 2, 5, 7),),
    ),
    "in_the_other_order": (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.LeakyReLU(), nn.ConvTranspose2d(4, 2, 2, 2)),
        (torch.randn(2, 3, 6, 8).to(memory_format=torch.channels_last),),
    ),
}
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


@pytest.mark.parametrize(
    ("name", "engine"), [*((name, "torch") for name in IMAGES), ("square", "native")]
)
def test_gap_of_stock_compares_what_is_inside_of_our_delegates(
    name: str, engine: str, stock: Stock, tmp_path: Path
) -> None:
    module, given = IMAGES[name]
    program = torch.export.export(module.eval(), given)
    manager = to_edge_transform_and_lower(
        program, partitioner=XnnpackPartitioner(), generate_etrecord=True
    )
    emitted = manager.to_executorch()
    record = emitted.get_etrecord()
    record.update_representative_inputs(list(given))
    record.save(tmp_path / "model.etrecord")
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    loaded = Runtime().load_program(emitted.buffer, tracer=tracer)
    method = loaded.load_method("forward", engine=engine)
    method.execute(given)
    tracer.write(tmp_path / "run.etdp", tmp_path / "run.debug")
    facts = stock.ask(
        "record", etrecord=str(tmp_path / "model.etrecord"), trace=str(tmp_path / "run"), gap="yes"
    )
    assert "error" not in facts, facts["error"]
    assert len(facts["gaps"]) >= 3
    assert [pair for pair in facts["gap_shapes"] if pair[0] != pair[1]] == []
    assert max(facts["gaps"]) < 1e-8


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
