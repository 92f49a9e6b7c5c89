"""Gap of command streams for Ethos-U: what runs is the TOSA graph that the record has kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.files.load import load_session
from inspector.files.payloads import delegate_payload, executed_payload
from inspector.graph.delegate_inside import executed_inside, inside_delegate
from inspector.numerics.inside import AT_BOUNDARY, IN_INTEGERS, SHARED
from inspector.numerics.replay.analysis import Options, analyse_gap
from runtime import DebugLevel, EventTracer, Runtime
from schema import etrecord
from tests.conftest import DATA

PROGRAM = DATA / "backends/ethosu_m1_int8.pte"
FLATTENED = "quantized_decomposed_quantize_per_tensor_default_2"  # its step also moves the layer's


def test_the_graph_that_runs_is_that_of_the_record() -> None:
    session = load_session([PROGRAM, PROGRAM.with_suffix(".etrecord")])
    alone = load_session([PROGRAM])
    assert session.program is not None
    stream = delegate_payload(session.program, session.program.plan("forward"), 0)
    found = executed_payload(session, "forward", 0)
    assert found.backend_id == "TOSABackend"
    assert executed_payload(alone, "forward", 0).backend_id == stream.backend_id == "EthosUBackend"
    assert {"CONV2D", "TABLE"} <= {
        one.node.target for one in executed_inside(session, "forward", 0).nodes
    }
    assert not {"CONV2D", "TABLE"} & {
        one.node.target for one in inside_delegate(session, "forward", 0).nodes
    }


@pytest.mark.slow
def test_each_integer_value_inside_is_compared(tmp_path: Path) -> None:
    made = [tmp_path / "run.etdp", tmp_path / "run.debug"]
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    record = etrecord.decode(PROGRAM.with_suffix(".etrecord").read_bytes())
    program = Runtime().load_program(PROGRAM, tracer=tracer)
    inputs, _ = torch.load(PROGRAM.with_suffix(".pt"))
    program.load_method("forward", emulate=record).execute(inputs)
    tracer.write(*made)
    session = load_session([PROGRAM, PROGRAM.with_suffix(".etrecord"), *made])
    report = analyse_gap(session, Options(inputs=inputs))
    rows = [row for row in report.runs[0].rows if row.place == "inside"]
    integers = [row for row in rows if "_quantize_per_tensor" in row.node]
    left = {row.node: row.reason for row in integers if not row.compared}
    assert len(integers) == 4
    assert {name: why for name, why in left.items() if why != AT_BOUNDARY} == {FLATTENED: SHARED}
    assert all(row.total is None or row.total.max_abs == 0 for row in rows)
    reasons = {row.reason for row in rows if "dequantize" in row.node and not row.compared}
    assert SHARED not in reasons
    assert IN_INTEGERS in reasons
