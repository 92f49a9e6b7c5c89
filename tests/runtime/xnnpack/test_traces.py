"""Traces of partitions: every node with its times and values, and how they are joined."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.check.session import BELONG, check_session
from inspector.files.load import load_session
from inspector.join.links import Grade, link_block
from inspector.trace.blocks import trace_blocks
from runtime import DebugLevel, EventTracer, Program, Runtime
from runtime.backends.xnnpack.engine import TimeSource
from runtime.backends.xnnpack.model import PayloadNode
from schema.etdump import DebugEvent, ProfileEvent
from schema.payloads.identity import named_node
from schema.payloads.xnnpack.nodes import StaticTranspose
from tests.runtime.samples import inputs_of
from tests.runtime.xnnpack.sessions import DATA

pytestmark = pytest.mark.slow
NET = DATA / "corpus/v1.5.1/convnet_xnnpack"


def traced(name: Path, engine: str, level: DebugLevel) -> tuple[Program, list[Any]]:
    tracer = EventTracer(level)
    program = Runtime().load_program(name / "model.pte", tracer=tracer)
    method = program.load_method("forward", engine=engine)
    method.execute(inputs_of(method.metadata))
    run = tracer.trace().run_data[-1]
    return program, list(run.events)


def inner(events: list[Any]) -> list[ProfileEvent]:
    return [e for e in events if isinstance(e, ProfileEvent) and e.name is None]


def spans_of(program: Program) -> list[int]:
    method = program.load_method("forward")
    return [len(partition.handle.plan.nodes) for partition in method._partitions]


def test_torch_engine_logs_every_node_by_its_place() -> None:
    program, events = traced(NET, "torch", DebugLevel.NONE)
    found = inner(events)
    counts = spans_of(program)
    places = [n for count in counts for n in range(count)]
    assert [named_node(e.delegate_id_str or "") for e in found] == places
    assert {e.delegate_id_int for e in found} == {-1}
    assert {bytes(e.metadata or b"") for e in found} == {b"host emulation"}
    assert all(0 < e.start_time <= e.end_time for e in found)
    calls = [e for e in events if isinstance(e, ProfileEvent) and e.name == "DELEGATE_CALL"]
    for call in calls:
        inside = [e for e in found if e.instruction_id == call.instruction_id]
        assert all(call.start_time <= e.start_time for e in inside)
        assert all(e.end_time <= call.end_time for e in inside)
        assert all(a.end_time <= b.start_time for a, b in pairwise(inside))


def test_inner_values_are_logged_with_shape_and_place() -> None:
    program, events = traced(NET, "torch", DebugLevel.INTERMEDIATE)
    values = [e for e in events if isinstance(e, DebugEvent) and e.delegate_id_str]
    plans = [p.handle.plan for p in program.load_method("forward")._partitions]
    places = [(plan.values[node.outputs[0]], node) for plan in plans for node in plan.nodes]
    wanted = [in_program(value.dims, node) for value, node in places]
    found = [e.value.tensor for e in values if e.value is not None]
    assert [tuple(tensor.sizes) for tensor in found if tensor is not None] == wanted


def in_program(dims: tuple[int, ...], node: PayloadNode) -> tuple[int, ...]:
    """Return the sizes that a value of the small net has outside of the payload."""
    back = isinstance(node.form, StaticTranspose) and node.form.perm == (0, 3, 1, 2)
    if len(dims) != 4 or back:
        return dims
    batch, height, width, channels = dims
    return (batch, channels) if height == width == 1 else (batch, channels, height, width)


@pytest.mark.interop
def test_native_engine_logs_the_durations_of_the_library() -> None:
    program, events = traced(NET, "native", DebugLevel.NONE)
    found = inner(events)
    assert len(found) == sum(spans_of(program)) + 1  # a sum with bounds is two operators there
    assert all(e.delegate_id_str and e.delegate_id_str.rpartition("#")[2] for e in found)
    assert {bytes(e.metadata or b"") for e in found} == {b"measured on real kernels"}


@pytest.mark.interop
def test_native_engine_node_by_node_gives_the_values_of_the_torch_engine() -> None:
    _, ours = traced(NET, "torch", DebugLevel.INTERMEDIATE)
    program, events = traced(NET, "native", DebugLevel.INTERMEDIATE)
    found = inner(events)
    notes = {bytes(e.metadata or b"").decode() for e in found}
    assert notes == {TimeSource.STEPS.value}
    assert len(found) == sum(spans_of(program))
    places = [(e.instruction_id, e.delegate_id_str) for e in inner(ours)]
    assert [(e.instruction_id, e.delegate_id_str) for e in found] == places


@pytest.mark.interop
@pytest.mark.parametrize("name", ["corpus/special/xnnpack_int8_static", "extra/xnnpack_8da4w"])
def test_nodes_one_by_one_equal_the_whole_bit_for_bit(name: str) -> None:
    path = DATA / name / "model.pte"
    whole = Runtime().load_program(path).load_method("forward", engine="native")
    given = inputs_of(whole.metadata)
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    steps = Runtime().load_program(path, tracer=tracer).load_method("forward", engine="native")
    for one, other in zip(steps.execute(given), whole.execute(given), strict=True):
        assert torch.equal(one, other)


def test_measurements_say_where_times_come_from() -> None:
    program = Runtime().load_program(NET / "model.pte")
    found = program.load_method("forward", engine="torch").measurements
    assert {(m.backend, m.engine, m.source, m.note) for m in found} == {
        ("XnnpackBackend", "torch", "host emulation", "")
    }
    assert len(found) == 2


@pytest.mark.interop
def test_auto_takes_the_real_kernels_where_they_are() -> None:
    program = Runtime().load_program(NET / "model.pte")
    found = program.load_method("forward").measurements
    assert {(m.engine, m.source) for m in found} == {("native", "measured on real kernels")}


@pytest.mark.parametrize(
    ("engine", "grade"),
    [
        ("torch", Grade.DELEGATE_ID),
        pytest.param("native", Grade.ORDER, marks=pytest.mark.interop),
    ],
)
def test_inspector_joins_our_trace_of_a_stock_program(
    engine: str, grade: Grade, tmp_path: Path
) -> None:
    program, _ = traced(NET, engine, DebugLevel.NONE)
    program.write_etdump_result_to_file(tmp_path / "run.etdp")
    files = [NET / "model.pte", NET / "model.etrecord", tmp_path / "run.etdp"]
    session = load_session([str(file) for file in files])
    block = next(b for b in trace_blocks(session.dumps).blocks if b.name == "Execute")
    links = link_block(session, block)
    events = [at for at in range(len(block)) if block.delegate_id(at) is not None]
    found = [links.link(at) for at in events]
    assert {link.grade for link in found} == {grade}
    nodes = list(dict.fromkeys((link.delegate, link.payload_nodes) for link in found))
    assert len(nodes) == sum(spans_of(program))
    assert found[0].payload_nodes[0].startswith("StaticTranspose")
    assert all(link.nodes for link in found if not link.inserted)
    assert [link.inserted for link in found].count(True) == 2
    assert check_session(session).verdict == BELONG
