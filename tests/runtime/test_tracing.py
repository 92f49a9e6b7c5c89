"""Traces: levels, filters, element types, sinks, several runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.files.load import load_session
from inspector.profile.methods import unit_assumed
from runtime import DebugFilter, DebugLevel, EventTracer, ProfilingLevel, Runtime
from runtime.tracing.sinks import FileSink
from schema import etdump
from schema.etdump import DebugEvent, ProfileEvent, debug_buffer
from schema.etdump.clock import clock_marker, marked_clock
from schema.program import model as m
from tests.runtime.one_op import one_operator
from tests.runtime.operators.inputs import DTYPES, Maker
from tests.runtime.samples import folder, inputs_of

pytestmark = pytest.mark.slow

NAME = "extra/counter_state"


def _run(tracer: EventTracer, name: str = NAME, runs: int = 1) -> etdump.ETDump:
    program = Runtime.get().load_program(folder(name) / "model.pte", tracer=tracer)
    inputs = inputs_of(program.metadata("forward"))
    for _ in range(runs):
        program.load_method("forward").execute(inputs)
    return etdump.decode(etdump.encode(tracer.trace()))


def _debug(dump: etdump.ETDump) -> list[DebugEvent]:
    return [event for event in dump.events if isinstance(event, DebugEvent)]


def test_blocks_are_one_load_and_one_for_each_run() -> None:
    dump = _run(EventTracer(), runs=3)
    assert [run.name for run in dump.run_data] == ["Default", "Execute", "Execute", "Execute"]
    loads = [event.name for event in dump.run_data[0].events if isinstance(event, ProfileEvent)]
    assert loads == ["Method::init", "Program::load_method"]


@pytest.mark.parametrize(
    ("level", "instructions", "outputs"),
    [(DebugLevel.NONE, 0, 0), (DebugLevel.OUTPUTS, 0, 2), (DebugLevel.INTERMEDIATE, 6, 2)],
)
def test_debug_level_decides_what_is_logged(
    level: DebugLevel, instructions: int, outputs: int
) -> None:
    events = _debug(_run(EventTracer(level)))
    assert sum(event.chain_index == 0 for event in events) >= instructions
    assert (sum(event.chain_index == 0 for event in events) > 0) == (instructions > 0)
    assert sum(event.chain_index == -1 for event in events) == outputs


def test_method_only_profiling_has_no_events_of_instructions() -> None:
    dump = _run(EventTracer(profiling_level=ProfilingLevel.METHOD_ONLY))
    names = [event.name for event in dump.run_data[-1].events if isinstance(event, ProfileEvent)]
    assert names == ["Method::execute"]


def test_filters_keep_operators_and_instructions() -> None:
    only = DebugFilter(operators=r"aten::copy_")
    events = _debug(_run(EventTracer(DebugLevel.INTERMEDIATE, only=only)))
    kept = {event.instruction_id for event in events if event.chain_index == 0}
    assert kept
    one = DebugFilter(instructions=frozenset({min(kept)}))
    events = _debug(_run(EventTracer(DebugLevel.INTERMEDIATE, only=one)))
    assert {e.instruction_id for e in events if e.chain_index == 0} == {min(kept)}


def test_tensors_of_each_run_are_kept(tmp_path: Path) -> None:
    tracer = EventTracer(DebugLevel.OUTPUTS)
    dump = _run(tracer, runs=2)
    tracer.write(tmp_path / "a.etdp", tmp_path / "a.debug")
    buffer = debug_buffer.decode((tmp_path / "a.debug").read_bytes())
    tensors = [tensor for event in _debug(dump) for tensor in _value(event).all_tensors()]
    counts = [buffer.tensor_array(tensor).values() for tensor in tensors if tensor.sizes == (1,)]
    assert [float(count[0]) for count in counts if count is not None] == [1.0, 2.0]
    assert all(tensor.offset % 64 == 0 for tensor in tensors)


def _value(event: DebugEvent) -> etdump.DebugValue:
    assert event.value is not None
    return event.value


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_is_logged(dtype: torch.dtype, tmp_path: Path) -> None:
    x = Maker(dtype)(2, 3)
    program, given = one_operator("aten::view_copy.out", [x, [3, 2]], [(dtype, (3, 2))])
    loaded = Runtime.get().load_program(program, enable_etdump=True, debug_buffer_size=1)
    loaded.load_method("forward").execute(given)
    loaded.write_etdump_result_to_file(tmp_path / "a.etdp", tmp_path / "a.debug")
    dump = etdump.decode((tmp_path / "a.etdp").read_bytes())
    buffer = debug_buffer.decode((tmp_path / "a.debug").read_bytes())
    logged = [tensor for event in _debug(dump) for tensor in _value(event).all_tensors()]
    assert len(logged) == 2
    for tensor in logged:
        values = buffer.tensor_array(tensor).values()
        assert values is not None
        assert torch.equal(
            torch.tensor(values.tolist(), dtype=torch.float64), x.reshape(3, 2).double()
        )


def test_file_sink_streams_the_same_bytes(tmp_path: Path) -> None:
    memory = EventTracer(DebugLevel.INTERMEDIATE)
    _run(memory)
    memory.write(tmp_path / "m.etdp", tmp_path / "m.debug")
    sink = FileSink(tmp_path / "s.debug")
    streamed = EventTracer(DebugLevel.INTERMEDIATE, sink=sink)
    _run(streamed)
    streamed.write(tmp_path / "s.etdp", tmp_path / "s.debug")
    sink.close()
    assert sink.failure == ""
    assert (tmp_path / "m.debug").read_bytes() == (tmp_path / "s.debug").read_bytes()


def test_trace_names_its_clock_where_no_report_lies_beside_it(tmp_path: Path) -> None:
    tracer = EventTracer()
    _run(tracer, runs=2)
    tracer.write(tmp_path / "run.etdp")
    dump = etdump.decode((tmp_path / "run.etdp").read_bytes())
    assert [run.allocators for run in dump.run_data] == [(clock_marker(),), (), ()]
    foreign = folder("corpus/v1.5.1/mm_portable") / "run.etdp"
    assert (marked_clock(dump), marked_clock(etdump.decode(foreign.read_bytes()))) == ("ns", "")
    assumed = [unit_assumed(load_session([str(path)])) for path in (tmp_path, foreign)]
    assert assumed == [False, True]
    other = etdump.run("Default", [], allocators=["x", clock_marker("us")])
    (tmp_path / "run.etdp").write_bytes(etdump.encode(etdump.dump([other, *dump.run_data[1:]])))
    options = load_session([str(tmp_path)]).options
    assert (options.source_time_scale, options.time_scale_assumed) == ("us", False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file that is always full")
def test_full_disk_ends_logging_not_the_run() -> None:
    sink = FileSink("/dev/full")
    tracer = EventTracer(DebugLevel.INTERMEDIATE, sink=sink)
    program = Runtime.get().load_program(
        folder("corpus/v1.5.1/tinygpt_portable") / "model.pte", tracer=tracer
    )
    inputs = inputs_of(program.metadata("forward"))
    outputs = program.load_method("forward").execute(inputs)
    assert bool(outputs[0].isfinite().all())
    sink.close()
    assert "could not be written" in sink.failure


def test_trace_without_recording_is_refused(tmp_path: Path) -> None:
    program = Runtime.get().load_program(folder(NAME) / "model.pte")
    with pytest.raises(RuntimeError, match="enable_etdump=True"):
        program.write_etdump_result_to_file(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("chosen", [0, 1])
def test_filter_by_instruction_keeps_the_values_inside_of_its_delegate_call_only(
    chosen: int,
) -> None:
    path = folder("corpus/special/xnnpack_two_delegates") / "model.pte"
    plan = Runtime.get().load_program(path).file.plans[0]
    calls = [
        place
        for place, step in enumerate(plan.chains[0].instructions)
        if isinstance(step.instr_args, m.DelegateCall)
    ]
    assert len(calls) == 2

    def inside(only: DebugFilter) -> list[int]:
        tracer = EventTracer(DebugLevel.INTERMEDIATE, only=only)
        method = Runtime().load_program(path, tracer=tracer).load_method("forward", engine="torch")
        method.execute(inputs_of(method.metadata))
        events = tracer.trace().run_data[-1].events
        return [e.instruction_id for e in events if isinstance(e, DebugEvent)]

    assert set(inside(DebugFilter())) >= set(calls)
    only = inside(DebugFilter(instructions=frozenset({calls[chosen]})))
    assert set(only) - {0} <= {calls[chosen]}
    assert calls[chosen] in only
