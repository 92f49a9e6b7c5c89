"""Clock, log and memory can be replaced; memory is told; kernels can be selected."""

from __future__ import annotations

import itertools
import mmap
from pathlib import Path

import pytest

from runtime import ErrorCode, EventTracer, ExecutionError, Runtime, platform
from runtime.compat.selection import selected
from runtime.platform import LogLevel, LogMessage
from schema import etdump
from tests.runtime.samples import folder, inputs_of, load

pytestmark = pytest.mark.slow

NET = "corpus/v1.5.1/convnet_portable"


def test_times_are_those_of_the_clock_that_was_given() -> None:
    ticks = itertools.count(1_000, 10)
    tracer = EventTracer()
    with platform.replaced(clock=lambda: next(ticks)):
        program = load(NET, tracer=tracer)
        method = program.load_method("forward")
        for _ in range(2):
            method.execute(inputs_of(method.metadata))
    run = tracer.trace().run_data[-1]
    events = [event for event in run.events if isinstance(event, etdump.ProfileEvent)]
    assert len(events) > 5
    assert all(event.start_time % 10 == 0 for event in events)
    assert {e.end_time - e.start_time for e in events if e.name == "OPERATOR_CALL"} == {10}
    assert platform.clock() > 10_000_000


def test_log_tells_of_loads_and_errors() -> None:
    said: list[LogMessage] = []
    with platform.replaced(log=said.append):
        method = load(NET).load_method("forward")
        with pytest.raises(ExecutionError):
            method.execute([])
        method.execute(inputs_of(method.metadata))
    assert [message.level for message in said] == [LogLevel.INFO]
    assert "forward" in said[0].text


def test_memory_that_is_refused_is_the_documented_error() -> None:
    def none(size: int) -> mmap.mmap:
        raise MemoryError(size)

    with platform.replaced(allocate=none), pytest.raises(ExecutionError) as raised:
        load(NET).load_method("forward")
    assert raised.value.code == ErrorCode.MemoryAllocationFailed


def test_hooks_given_back_are_those_before() -> None:
    before = platform.register(abort=lambda: exit(3))
    assert platform.current().abort is not before.abort
    platform.restore(before)
    assert platform.current() is before


def test_memory_of_a_method_is_told_and_logged(tmp_path: Path) -> None:
    tracer = EventTracer(allocations=True)
    method = load(NET, tracer=tracer).load_method("forward")
    use = method.memory
    plan = method.metadata
    assert list(use.planned_bytes) == [
        plan.memory_planned_buffer_size(index) for index in range(plan.num_memory_planned_buffers())
    ]
    assert 0 < use.temporary_bytes <= sum(use.planned_bytes)
    assert use.constant_bytes > 0
    tracer.write(tmp_path / "run.etdp")
    run = etdump.decode((tmp_path / "run.etdp").read_bytes()).run_data[0]
    found = [event for event in run.events if isinstance(event, etdump.AllocationEvent)]
    sizes = [event.allocation_size for event in found]
    assert sizes == [*use.planned_bytes, use.temporary_bytes]


def test_selected_kernels_run_the_program_they_were_selected_for() -> None:
    program = load(NET)
    choice = selected(programs=[program.file], with_dtypes=True)
    assert set(choice.operators) == {o.full_name for p in program.file.plans for o in p.operators}
    assert choice.saved == len(selected(every=True).operators) - len(choice.operators)
    assert set(choice.dtypes["aten::convolution.out"]) == {"float32"}
    small = Runtime(operators=choice.operators)
    method = small.load_program(folder(NET) / "model.pte").load_method("forward")
    assert len(method.execute(inputs_of(method.metadata))) == 1
    fewer = Runtime(operators=choice.operators[1:])
    with pytest.raises(ExecutionError, match=choice.operators[0]):
        fewer.load_program(folder(NET) / "model.pte").load_method("forward")


def test_selectors_exclude_each_other() -> None:
    for options in ({}, {"operators": ["a::b"], "every": True}):
        with pytest.raises(ExecutionError, match="exactly one"):
            selected(**options)
    with pytest.raises(ExecutionError, match="programs only"):
        selected(operators=["a::b"], with_dtypes=True)
    assert selected(operators=["a::b"]).missing == ("a::b",)
