"""Backends: registered, initialised, run, traced, and refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime import BackendInterface, ErrorCode, ExecutionError, Program, Runtime
from runtime.delegates.interface import BackendExecutionContext, BackendInitContext
from schema import etdump
from schema.etdump import DebugEvent, ProfileEvent
from schema.program import encode
from schema.program import model as m
from tests.runtime.one_op import Builder, program_of
from tests.runtime.samples import folder, inputs_of

pytestmark = pytest.mark.slow


class AddMulBackend(BackendInterface):
    """a * b + c, or whatever its payload says: one operator a letter."""

    destroyed: list[str]

    def __init__(self) -> None:
        self.destroyed = []

    def init(
        self, context: BackendInitContext, processed: memoryview, compile_specs: Mapping[str, bytes]
    ) -> str:
        text = bytes(processed).decode()
        if set(text) - set("am"):
            raise ExecutionError(ErrorCode.DelegateInvalidCompatibility, f"no letters: {text}")
        return text

    def execute(self, context: BackendExecutionContext, handle: str, args: Sequence[Any]) -> None:
        value, *others, out = args
        for number, (letter, other) in enumerate(zip(handle, others, strict=True)):
            started = context.tracer.start()
            value = value * other if letter == "m" else value + other
            context.tracer.end(f"{letter}#{number}", started, b"about it")
            context.tracer.log_value(f"{letter}#{number}", value)
        context.store(out, value)

    def destroy(self, handle: str) -> None:
        self.destroyed.append(handle)


def _program(payload: bytes, backend: str = "AddMulBackend") -> bytes:
    build = Builder()
    a, b, c = (build.input(torch.ones(3)) for _ in range(3))
    out = build.tensor(torch.float32, (3,))
    delegate = m.BackendDelegate(
        backend, m.BackendDelegateDataReference(0, 0), (m.CompileSpec("key", memoryview(b"x")),)
    )
    plan = build.plan([m.DelegateCall(0, (a, b, c, out))], [out], [])
    program = program_of(replace(plan, delegates=(delegate,)))
    inline = (m.BackendDelegateInlineData(memoryview(payload)),)
    return encode(replace(program, table=replace(program.table, backend_delegate_data=inline)))


def _loaded(payload: bytes, **options: Any) -> tuple[Program, AddMulBackend]:
    runtime, backend = Runtime(), AddMulBackend()
    runtime.backend_registry.register_backend("AddMulBackend", lambda: backend)
    assert runtime.backend_registry.is_available("AddMulBackend")
    return runtime.load_program(_program(payload), **options), backend


GIVEN = [torch.tensor([1.0, 2.0, 3.0]), torch.full((3,), 2.0), torch.ones(3)]


def test_delegate_runs_and_is_let_go() -> None:
    program, backend = _loaded(b"ma")
    found = program.load_method("forward").execute(GIVEN)
    assert torch.equal(found[0], torch.tensor([3.0, 5.0, 7.0]))
    program.unload_method("forward")
    assert backend.destroyed == ["ma"]


def test_delegate_events_and_values_are_in_the_trace(tmp_path: Path) -> None:
    program, _ = _loaded(b"ma", enable_etdump=True, debug_buffer_size=1)
    program.load_method("forward").execute(GIVEN)
    program.write_etdump_result_to_file(tmp_path / "a.etdp", tmp_path / "a.debug")
    dump = etdump.decode((tmp_path / "a.etdp").read_bytes())
    events = list(dump.run_data[-1].events)
    inner = [e for e in events if isinstance(e, ProfileEvent) and e.delegate_id_str]
    assert [e.delegate_id_str for e in inner] == ["m#0", "a#1"]
    assert [bytes(e.metadata or b"") for e in inner] == [b"about it"] * 2
    assert all((e.name, e.chain_index, e.instruction_id) == (None, 0, 0) for e in inner)
    values = [e for e in events if isinstance(e, DebugEvent)]
    assert [e.delegate_id_str for e in values] == ["m#0", "a#1", None, None, None, None, None]
    names = [e.name for e in events if isinstance(e, ProfileEvent) and e.name]
    assert names == ["DELEGATE_CALL", "Method::execute"]


def test_unknown_backend_is_named_and_says_what_there_is() -> None:
    with pytest.raises(ExecutionError) as raised:
        Runtime.get().load_program(_program(b"ma")).load_method("forward")
    assert raised.value.code == ErrorCode.NotFound
    assert "AddMulBackend" in str(raised.value)
    assert "ExecutorBackend" in str(raised.value)


def test_payload_that_a_backend_refuses_names_the_backend() -> None:
    with pytest.raises(ExecutionError) as raised:
        _loaded(b"xyz")[0].load_method("forward")
    assert raised.value.code == ErrorCode.DelegateInvalidCompatibility
    assert raised.value.operator == "AddMulBackend"


def test_backend_that_fails_names_the_instruction() -> None:
    with pytest.raises(ExecutionError) as raised:
        _loaded(b"m")[0].load_method("forward").execute(GIVEN)
    assert (raised.value.instruction, raised.value.operator) == (0, "AddMulBackend")


def test_backend_name_that_is_taken_is_refused() -> None:
    runtime = Runtime()
    with pytest.raises(ExecutionError) as raised:
        runtime.backend_registry.register_backend("ExecutorBackend", AddMulBackend)
    assert raised.value.code == ErrorCode.RegistrationAlreadyRegistered


def test_executor_backend_runs_the_program_inside() -> None:
    inner = _one_sum()
    data = _program(inner, "ExecutorBackend")
    found = Runtime.get().load_program(data).load_method("forward").execute(GIVEN)
    assert torch.equal(found[0], GIVEN[0] + GIVEN[1] + GIVEN[2])


def _one_sum() -> bytes:
    build = Builder()
    a, b, c = (build.input(torch.ones(3)) for _ in range(3))
    one, out = build.value(1), build.tensor(torch.float32, (3,))
    calls = [m.KernelCall(0, (a, b, one, out, out)), m.KernelCall(0, (out, c, one, out, out))]
    return encode(program_of(build.plan(calls, [out], ["aten::add.out"])))


def test_program_inside_itself_ends_with_an_error() -> None:
    data = _one_sum()
    for _ in range(12):
        data = _program(data, "ExecutorBackend")
    with pytest.raises(ExecutionError) as raised:
        Runtime.get().load_program(data).load_method("forward")
    assert raised.value.code == ErrorCode.DelegateInvalidCompatibility
    assert "nested" in str(raised.value)


def test_demo_backend_refuses_payloads_without_operands() -> None:
    program = Runtime.get().load_program(folder("corpus/payloads") / "demo_addmul.pte")
    with pytest.raises(ExecutionError, match="not their operands"):
        program.load_method("forward")


def test_demo_backend_runs_sines() -> None:
    build = Builder()
    x, out = build.input(torch.ones(2)), build.tensor(torch.float32, (2,))
    text = b"2version:0#" + 2 * (
        b"op:demo::aten.sin.default, numel:2, dtype:torch.float32<debug_handle>3#"
    )
    delegate = m.BackendDelegate(
        "BackendWithCompilerDemo", m.BackendDelegateDataReference(0, 0), ()
    )
    plan = build.plan([m.DelegateCall(0, (x, out))], [out], [])
    program = program_of(replace(plan, delegates=(delegate,)))
    inline = (m.BackendDelegateInlineData(memoryview(text)),)
    data = encode(replace(program, table=replace(program.table, backend_delegate_data=inline)))
    method = Runtime.get().load_program(data).load_method("forward")
    given = inputs_of(method.metadata)
    assert torch.equal(method.execute(given)[0], torch.sin(torch.sin(given[0])))
