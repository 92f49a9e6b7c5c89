"""The remedy of an error fits its cause, not its code alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime import BackendInterface, ErrorCode, EventTracer, ExecutionError, Runtime
from runtime.compat.module import Module
from runtime.compat.portable_lib import _load_for_executorch_from_buffer
from runtime.verify import compare_outputs
from schema.program import encode
from schema.program import model as m
from tests.runtime.one_op import Builder, encoded, one_operator, program_of

F32 = torch.float32
ONES = torch.ones(4)


def _added() -> bytes:
    return one_operator("aten::add.out", [ONES, ONES, 1], [(F32, (4,))])[0]


def _method(program: bytes, runtime: Runtime | None = None) -> Any:
    return (runtime or Runtime()).load_program(program).load_method("forward")


def _custom(run: Callable[..., Any]) -> Any:
    """Run a program whose one operator is computed by a function."""
    runtime = Runtime()
    runtime.operator_registry.register("my::op.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")(run)
    build = Builder()
    x, out = build.input(ONES), build.tensor(F32, (4,))
    plan = build.plan([m.KernelCall(0, (x, out, out))], [out], ["my::op.out"])
    return _method(encoded(plan), runtime).execute([ONES])


class Broken(BackendInterface):
    """Fails with an error of its own, when it is loaded or when it runs."""

    fails_in = "execute"

    def is_available(self) -> bool:
        return self.fails_in != "is_available"

    def init(self, context: Any, processed: Any, compile_specs: Any) -> Any:
        if self.fails_in == "init":
            raise TypeError("init takes no such thing")
        return 1

    def execute(self, context: Any, handle: Any, args: Any) -> None:
        raise TypeError("unsupported operand")


def _delegated(fails_in: str, *, registered: bool = True) -> Any:
    runtime = Runtime()
    backend = type("Own", (Broken,), {"fails_in": fails_in})
    if registered:
        runtime.backend_registry.register_backend("Own", backend)
    build = Builder()
    x, out = build.input(ONES), build.tensor(F32, (4,))
    plan = build.plan([m.DelegateCall(0, (x, out))], [out], [])
    reference = m.BackendDelegateDataReference(0, 0)
    program = _with_delegate(program_of(plan), reference)
    return _method(encode(program), runtime).execute([ONES])


def _with_delegate(program: Any, reference: Any) -> Any:
    plan = replace(
        program.table.execution_plan[0], delegates=(m.BackendDelegate("Own", reference, ()),)
    )
    data = (m.BackendDelegateInlineData(memoryview(b"own")),)
    table = replace(program.table, execution_plan=(plan,), backend_delegate_data=data)
    return replace(program, table=table)


def _stepped() -> None:
    method = _method(_added())
    method.set_inputs([ONES, ONES])
    method.step()
    method.set_inputs([ONES, ONES])


def _twice() -> None:
    registry = Runtime().operator_registry
    registry.register("aten::add.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")


def _index() -> None:
    program, given = one_operator(
        "aten::embedding.out",
        [torch.ones(3, 2), torch.tensor([9]), -1, False, False],
        [(F32, (1, 2))],
    )
    _method(program).execute(given)


def _raises(error: Exception) -> Callable[..., Any]:
    def run(*_args: Any) -> None:
        raise error

    return run


INPUTS = "Compare the inputs with the method's metadata"
CAUSES: dict[str, tuple[Callable[[], Any], ErrorCode, str]] = {
    "too few inputs": (
        lambda: _method(_added()).execute([ONES]),
        ErrorCode.InvalidArgument,
        INPUTS,
    ),
    "dtype of an input": (
        lambda: _method(_added()).execute([ONES, ONES.int()]),
        ErrorCode.InvalidArgument,
        INPUTS,
    ),
    "kind of an input": (
        lambda: _method(_added()).execute([ONES, 3]),
        ErrorCode.InvalidArgument,
        INPUTS,
    ),
    "input without values": (
        lambda: _method(_added()).execute([ONES, ONES.to("meta")]),
        ErrorCode.InvalidArgument,
        "device with memory",
    ),
    "input of a module": (
        lambda: Module(_added()).forward(ONES),
        ErrorCode.InvalidArgument,
        INPUTS,
    ),
    "sizes of an input": (
        lambda: _method(_added()).execute([ONES, torch.ones(5)]),
        ErrorCode.NotSupported,
        "within the shapes the program was exported with",
    ),
    "input while it runs": (_stepped, ErrorCode.InvalidState, "Finish or reset the run"),
    "value of an input": (_index, ErrorCode.InvalidArgument, "check the values and sizes"),
    "schema of a kernel": (
        lambda: Runtime().operator_registry.register("my::op(Tensor"),
        ErrorCode.InvalidArgument,
        "A schema reads as",
    ),
    "schema without out": (
        lambda: Runtime().operator_registry.register("my::op(Tensor x) -> Tensor"),
        ErrorCode.InvalidArgument,
        "A schema reads as",
    ),
    "kernel that is there": (_twice, ErrorCode.RegistrationAlreadyRegistered, "another name"),
    "error in a kernel": (
        lambda: _custom(_raises(TypeError("own mistake"))),
        ErrorCode.InvalidArgument,
        "registered kernel raised it (__cause__",
    ),
    "results of a kernel": (
        lambda: _custom(lambda x: (x, x)),
        ErrorCode.InvalidArgument,
        "registered kernel raised it",
    ),
    "sizes of a kernel's result": (
        lambda: _custom(lambda x: x[:2]),
        ErrorCode.NotSupported,
        "result of the registered kernel",
    ),
    "error in a backend's init": (
        lambda: _delegated("init"),
        ErrorCode.DelegateInvalidCompatibility,
        "backend raised it in its initialization",
    ),
    "error in a backend's execute": (
        lambda: _delegated("execute"),
        ErrorCode.InvalidArgument,
        "backend raised it (__cause__",
    ),
    "backend that cannot run": (
        lambda: _delegated("is_available"),
        ErrorCode.NotFound,
        "Register the backend",
    ),
    "backend that is not there": (
        lambda: _delegated("execute", registered=False),
        ErrorCode.NotFound,
        "Register the backend",
    ),
    "method that is not there": (
        lambda: Runtime().load_program(_added()).load_method("nope"),
        ErrorCode.InvalidArgument,
        "Available: forward.",
    ),
    "file that is not there": (
        lambda: Runtime().load_program(Path(os.devnull) / "none.pte"),
        ErrorCode.AccessFailed,
        "path and the permissions",
    ),
    "file of another kind": (
        lambda: Runtime().load_program(b"nothing of that kind" * 9),
        ErrorCode.InvalidProgram,
        "not written by an ExecuTorch compiler",
    ),
    "outputs that are compared": (
        lambda: compare_outputs([ONES], []),
        ErrorCode.InvalidArgument,
        "",
    ),
}


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_remedy_fits_the_cause(cause: str) -> None:
    act, code, remedy = CAUSES[cause]
    with pytest.raises(ExecutionError) as caught:
        act()
    error = caught.value
    assert error.code is code, error
    assert remedy in error.remedy, error
    if not remedy:
        assert error.remedy == ""
    if remedy is not INPUTS:
        assert INPUTS not in str(error)
    if "__cause__" in error.remedy:
        assert isinstance(error.__cause__, TypeError | AttributeError)


@pytest.mark.parametrize("traced", [False, True], ids=["plain", "traced"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda program: program.load_method("nope"),
        lambda program: program.fresh_method("nope"),
        lambda program: program.metadata("nope"),
        lambda program: program.method_meta("nope"),
    ],
)
def test_unknown_method_is_an_error_of_both_documented_kinds(
    ask: Callable[[Any], Any], traced: bool
) -> None:
    program = Runtime().load_program(_added(), tracer=EventTracer() if traced else None)
    for kind in (RuntimeError, KeyError, ExecutionError):
        with pytest.raises(kind) as caught:
            ask(program)
        assert str(caught.value) == (
            "the program has no method 'nope'. (InvalidArgument 0x12) Available: forward."
        )


@pytest.mark.parametrize(
    "ask",
    [
        lambda: _load_for_executorch_from_buffer(_added()).run_method("nope", []),
        lambda: _load_for_executorch_from_buffer(_added()).method_meta("nope"),
        lambda: Module(_added()).execute("nope"),
        lambda: Module(_added()).method_meta("nope"),
    ],
)
def test_facades_raise_the_same_for_an_unknown_method(ask: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"no method 'nope'.*Available: forward"):
        ask()
