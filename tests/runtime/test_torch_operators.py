"""Operators that a library registers with torch, as kernels of a runtime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from runtime import ErrorCode, ExecutionError, Runtime
from runtime.kernels.registry import KernelRegistry
from runtime.kernels.torch_operators import operator_names
from schema.program import encode
from schema.program import model as m
from tests.runtime.one_op import Builder, program_of

SCHEMAS = {
    "scaled": "(Tensor self, float by) -> Tensor",
    "scaled.out": "(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)",
    "filled.out": "(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)",
    "both.out": "(Tensor self, *, Tensor(a!) low, Tensor(b!) high) -> (Tensor(a!), Tensor(b!))",
    "grow_": "(Tensor(a!) self, float by) -> ()",
    "kept": "(Tensor(a!) self, Tensor by) -> Tensor",
    "kept.out": "(Tensor(a!) self, Tensor by, *, Tensor(b!) out) -> Tensor(b!)",
    "lonely.out": "(Tensor(a!) self, *, Tensor(b!) out) -> Tensor(b!)",
    "plain": "(Tensor self) -> Tensor",
    "table.out": "(Tensor self, Dict(str, int) d, *, Tensor(a!) out) -> Tensor(a!)",
}


def _kept(value: Any, by: Any) -> Any:
    value.add_(by)
    return value * 2


def _both(value: Any, *, low: Any, high: Any) -> Any:
    return low.copy_(value - 1), high.copy_(value + 1)


def _grow(value: Any, by: float) -> None:
    value.add_(by)


FUNCTIONS: dict[str, Any] = {
    "scaled": lambda value, by: value * by,
    "filled.out": lambda value, by, *, out: torch.mul(value, by, out=out),
    "both.out": _both,
    "grow_": _grow,
    "kept": _kept,
}


@pytest.fixture(scope="module")
def names() -> Iterator[frozenset[str]]:
    before = operator_names()
    library = torch.library.Library("adopted", "DEF")
    for name, schema in SCHEMAS.items():
        library.define(name + schema)
    for name, function in FUNCTIONS.items():
        library.impl(name, function, "CompositeExplicitAutograd")
    yield operator_names() - before
    library._destroy()


def test_what_a_program_can_call_gets_a_kernel(names: frozenset[str]) -> None:
    registry = KernelRegistry()
    found = registry.adopt(names)
    called = ("both.out", "filled.out", "grow_", "kept.out", "scaled.out")
    assert found == tuple(f"adopted::{name}" for name in called)
    assert registry.adopt(names) == ()


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("adopted::scaled", ["scaled.out"]),
        ("adopted::scaled.out", ["scaled.out"]),
        (["adopted::kept", "adopted::grow_"], ["grow_", "kept.out"]),
        ("adopted", ["both.out", "filled.out", "grow_", "kept.out", "scaled.out"]),
        ([], []),
    ],
)
def test_operators_are_adopted_by_overload_operator_or_namespace(
    names: frozenset[str], asked: str | list[str], found: list[str]
) -> None:
    registry = KernelRegistry()
    assert registry.adopt_torch(asked) == tuple(f"adopted::{name}" for name in found)
    assert registry.adopt_torch(asked) == ()
    assert registry.missing(f"adopted::{name}" for name in found) == []


def test_everything_that_is_not_torchs_own_is_adopted_when_nothing_is_named(
    names: frozenset[str],
) -> None:
    registry = KernelRegistry(only=())
    found = registry.adopt_torch()
    assert {"adopted::scaled.out", "adopted::grow_"} <= set(found)
    assert not any(name.startswith(("aten::", "prim::", "prims::")) for name in found)


def test_operator_of_torch_itself_is_adopted_by_its_name() -> None:
    runtime = Runtime()
    assert runtime.operator_registry.find("aten::cumprod.out") is None
    assert runtime.operator_registry.adopt_torch("aten::cumprod.out") == ("aten::cumprod.out",)
    build = Builder()
    given = torch.tensor([1.0, 2.0, 3.0])
    args = (build.input(given), build.value(0), build.value(None))
    out = build.tensor(torch.float32, (3,))
    plan = build.plan([m.KernelCall(0, (*args, out, out))], [out], ["aten::cumprod.out"])
    method = runtime.load_program(encode(program_of(plan))).load_method("forward")
    assert method.execute([given])[0].tolist() == [1.0, 2.0, 6.0]


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        ("adopted::nothing", ErrorCode.NotFound, "no operator 'adopted::nothing'"),
        ("nowhere", ErrorCode.NotFound, "load the library"),
        ("adopted::plain", ErrorCode.InvalidArgument, "adopted::plain"),
        ("aten", ErrorCode.Ok, ""),
    ],
)
def test_names_that_cannot_be_adopted_are_errors_that_say_why(
    names: frozenset[str], asked: str, code: ErrorCode, words: str
) -> None:
    registry = KernelRegistry()
    if code is ErrorCode.Ok:
        assert registry.adopt_torch(asked)
        return
    with pytest.raises(ExecutionError) as caught:
        registry.adopt_torch(["adopted::scaled", asked])
    assert caught.value.code is code
    assert words in str(caught.value)


def test_implementation_without_a_schema_is_left_out(names: frozenset[str]) -> None:
    library = torch.library.Library("unschemed", "FRAGMENT")
    library.impl("orphan", lambda value: value, "CPU")
    try:
        assert "unschemed::orphan" in operator_names()
        assert KernelRegistry().adopt(["unschemed::orphan", "adopted::grow_"]) == (
            "adopted::grow_",
        )
    finally:
        library._destroy()


def _program_of_scaled() -> bytes:
    build = Builder()
    args = (build.input(torch.ones(3)), build.value(2.0), build.tensor(torch.float32, (3,)))
    plan = build.plan([m.KernelCall(0, (*args, args[2]))], [args[2]], ["adopted::scaled.out"])
    return encode(program_of(plan))


def test_remedy_of_a_missing_kernel_is_the_call_that_adopts_it(names: frozenset[str]) -> None:
    runtime = Runtime()
    program = runtime.load_program(_program_of_scaled())
    with pytest.raises(ExecutionError) as caught:
        program.load_method("forward")
    assert caught.value.code is ErrorCode.OperatorMissing
    call = "operator_registry.adopt_torch(['adopted::scaled'])"
    assert f"torch has them registered: call {call}" in caught.value.remedy
    eval(f"runtime.{call}")  # the remedy is code that works
    assert program.load_method("forward").execute([torch.ones(3)])[0].tolist() == [2.0] * 3


def _run(name: str, extra: list[Any], inputs: list[Any], outs: int) -> list[Any]:
    runtime = Runtime()
    runtime.operator_registry.adopt_torch()
    build = Builder()
    given = [build.input(value) for value in inputs]
    more = [build.value(value) for value in extra]
    made = [build.tensor(torch.float32, (3,)) for _ in range(outs)]
    last = [made[0]] if outs == 1 else [build.value(m.TensorList(tuple(made)))] if outs else []
    call = m.KernelCall(0, (*given, *more, *made, *last))
    plan = build.plan([call], [*made, *given], [f"adopted::{name}"])
    method = runtime.load_program(encode(program_of(plan))).load_method("forward")
    return [value.tolist() for value in method.execute(inputs)]


@pytest.mark.parametrize(
    ("name", "extra", "more", "outs", "expected"),
    [
        ("scaled.out", [2.0], [], 1, [[2.0, 4.0, 6.0], [1.0, 2.0, 3.0]]),
        ("filled.out", [3.0], [], 1, [[3.0, 6.0, 9.0], [1.0, 2.0, 3.0]]),
        ("both.out", [], [], 2, [[0.0, 1.0, 2.0], [2.0, 3.0, 4.0], [1.0, 2.0, 3.0]]),
        ("grow_", [0.5], [], 0, [[1.5, 2.5, 3.5]]),
        ("kept.out", [], [10.0], 1, [[22.0, 24.0, 26.0], [11.0, 12.0, 13.0], [10.0] * 3]),
    ],
)
def test_adopted_operator_gives_what_torch_gives(
    names: frozenset[str],
    name: str,
    extra: list[Any],
    more: list[float],
    outs: int,
    expected: list[list[float]],
) -> None:
    assert f"adopted::{name}" in names
    inputs = [torch.tensor([1.0, 2.0, 3.0]), *(torch.full((3,), value) for value in more)]
    assert _run(name, extra, inputs, outs) == expected
