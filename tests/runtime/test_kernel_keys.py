"""Kernels for some tensors only: chosen by dtype and dim order, with one for all behind them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime import ErrorCode, ExecutionError, Runtime
from runtime.compat.kernel_yaml import read_kernel_yaml
from runtime.kernels import TABLE
from runtime.kernels.registry import KernelRegistry
from schema.program import model as m
from tests.runtime.one_op import Builder, encoded, one_operator

SCHEMA = "my::tagged.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"
F32, F16, I64 = "6", "5", "4"


def _key(dtype: str, order: str, count: int = 2) -> str:
    return f"v1/{'|'.join([f'{dtype};{order}'] * count)}"


def _run(runtime: Runtime, dtype: torch.dtype, order: tuple[int, ...]) -> float:
    """Run the operator on a tensor of zeros; kernels add the number that tells which one ran."""
    build = Builder()
    sizes = (2,) * len(order)
    x = build.tensor(dtype, sizes, order)
    build.inputs.append(x)
    out = build.tensor(dtype, sizes, order)
    plan = build.plan([m.KernelCall(0, (x, out, out))], [out], ["my::tagged.out"])
    method = runtime.load_program(encoded(plan)).load_method("forward")
    (found,) = method.execute([torch.zeros(sizes, dtype=dtype)])
    assert len(set(found.flatten().tolist())) == 1
    return float(found.flatten()[0])


def _with(keys: dict[str, int]) -> Runtime:
    runtime = Runtime()
    for key, tag in keys.items():
        runtime.operator_registry.register(SCHEMA, key)(lambda x, tag=tag: x + tag)
    return runtime


@pytest.mark.parametrize("copies", [2, 3], ids=["as in yaml", "as in programs"])
def test_call_takes_the_kernel_of_its_dtype_and_dim_order_else_that_for_all(copies: int) -> None:
    keys = {
        "": 1,
        _key(F32, "0,1", copies): 2,
        _key(F32, "1,0", copies): 3,
        _key(F16, "0,1", copies): 4,
    }
    runtime = _with(keys)
    assert _run(runtime, torch.float32, (0, 1)) == 2.0
    assert _run(runtime, torch.float32, (1, 0)) == 3.0
    assert _run(runtime, torch.float16, (0, 1)) == 4.0
    assert _run(runtime, torch.float16, (1, 0)) == 1.0
    assert _run(runtime, torch.int64, (0, 1)) == 1.0
    assert _run(runtime, torch.float32, (0, 1, 2)) == 1.0
    registry = runtime.operator_registry
    assert registry.kernel_keys("my::tagged.out") == tuple(key for key in keys if key)
    assert "my::tagged.out" in registry.operator_names


def test_tensors_that_no_kernel_is_for_are_an_error_with_the_keys_there_are() -> None:
    runtime = _with({_key(F32, "0,1"): 2})
    assert runtime.operator_registry.missing(["my::tagged.out"]) == []
    assert _run(runtime, torch.float32, (0, 1)) == 2.0
    with pytest.raises(ExecutionError) as caught:
        _run(runtime, torch.int64, (0, 1))
    assert caught.value.code is ErrorCode.OperatorMissing
    assert "v1/4;0,1|4;0,1" in str(caught.value)
    assert _key(F32, "0,1") in str(caught.value)


def test_kernel_for_some_tensors_stands_before_the_built_in_one() -> None:
    runtime = Runtime()
    program, given = one_operator(
        "aten::add.out", [torch.ones(4), torch.ones(4), 1], [(torch.float32, (4,))]
    )
    schema = "aten::add.out(Tensor a, Tensor b, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
    register = runtime.operator_registry.register

    def run() -> list[float]:
        return runtime.load_program(program).load_method("forward").execute(given)[0].tolist()

    register(schema, "v1/4;0|4;0|4;0")(lambda a, b, alpha: a - b)
    assert run() == [2.0] * 4
    register(schema, "v1/6;0|6;0|6;0")(lambda a, b, alpha: a + b + 5)
    assert run() == [7.0] * 4
    method = runtime.load_program(program).load_method("forward")
    assert [method.execute(given)[0].tolist() for _ in range(3)] == [[7.0] * 4] * 3


def test_filling_kernel_can_be_for_some_tensors_too() -> None:
    runtime = _with({"": 1})

    def fill(x: Any, *, out: Any) -> None:
        out.copy_(x + 9)

    runtime.operator_registry.register_filling(SCHEMA, _key(I64, "0"))(fill)
    assert _run(runtime, torch.int64, (0,)) == 9.0
    assert _run(runtime, torch.float32, (0,)) == 1.0


@pytest.mark.parametrize("key", ["", _key(F32, "0,1")])
def test_same_key_twice_is_registered_already(key: str) -> None:
    registry = _with({"": 1, _key(F32, "0,1"): 2}).operator_registry
    with pytest.raises(ExecutionError) as caught:
        registry.register(SCHEMA, key)
    assert caught.value.code is ErrorCode.RegistrationAlreadyRegistered
    assert caught.value.code == 0x16
    assert key in str(caught.value)


@pytest.mark.parametrize("key", ["v2/6;0", "6;0", "v1/", "v1/6;0|", "v1/6", "v1/6;0,", "float"])
def test_key_of_another_form_is_an_error_that_shows_one(key: str) -> None:
    with pytest.raises(ExecutionError, match=r"is not a kernel key.*v1/6;0,1\|6;0,1"):
        KernelRegistry().register(SCHEMA, key)


@pytest.mark.parametrize("only", [None, ("aten::add.out", "aten::mul.out"), ()])
def test_more_kernels_than_there_can_be_is_an_error(only: tuple[str, ...] | None) -> None:
    inside = len(TABLE) if only is None else len(only)
    runtime = Runtime(operators=only, max_kernels=inside + 2)
    registry = runtime.operator_registry
    registry.register("my::a.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")(torch.relu)
    registry.register(SCHEMA, _key(F32, "0"))(torch.relu)
    with pytest.raises(ExecutionError) as caught:
        registry.register(SCHEMA, _key(F16, "0"))(torch.relu)
    assert caught.value.code is ErrorCode.RegistrationExceedingMaxKernels
    assert caught.value.code == 0x15
    assert registry.kernel_keys("my::tagged.out") == (_key(F32, "0"),)


def test_kernels_of_a_library_are_registered_for_their_keys() -> None:
    library = read_kernel_yaml(b"""
- func: my::tagged.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
  type_alias: {T0: [Float, Half], T1: Long}
  dim_order_alias: {D0: [0, 1]}
  kernels:
    - {arg_meta: {x: [T0, D0], out: [T0, D0]}, kernel_name: my::floats}
    - {arg_meta: {x: [T1, D0], out: [T1, D0]}, kernel_name: my::longs}
    - {arg_meta: null, kernel_name: my::others}
""")
    runtime = Runtime()
    functions = {"floats": lambda x: x + 1, "my::longs": lambda x: x + 2, "others": lambda x: x + 3}
    assert library.register(runtime.operator_registry, functions) == ("my::tagged.out",)
    assert _run(runtime, torch.float32, (0, 1)) == 1.0
    assert _run(runtime, torch.float16, (0, 1)) == 1.0
    assert _run(runtime, torch.int64, (0, 1)) == 2.0
    assert _run(runtime, torch.float32, (1, 0)) == 3.0
    assert _run(runtime, torch.float64, (0, 1)) == 3.0
