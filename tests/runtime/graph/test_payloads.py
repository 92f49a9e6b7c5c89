"""Payloads that vendors' tools wrote are executed: see tests/data/backends/recipe.py."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from runtime import ErrorCode, ExecutionError, Runtime
from runtime.backends.vulkan.backend import OWN, VulkanBackend
from schema import etrecord
from schema.origins import ValueOrigin
from tests.conftest import DATA

FOLDER = DATA / "backends"
_STATEFUL = "cache"  # a second run gives other numbers
# Without delegates, or not without a record: tests/runtime/vendors; XNNPACK has engines of its own
_FLOWS = ("cadence_", "cortexm_", "ethosu_", "xnnpack_")
PAYLOADS = sorted(
    path.stem
    for path in FOLDER.glob("*.pte")
    if _STATEFUL not in path.stem and not path.stem.startswith(_FLOWS)
)
# Floating point differs by the order of sums; halves round to 11 bits; `tan` becomes sin / cos.
# With 16-bit activations TOSA's own rounding differs from the quantized program by a last bit.
# Vulkan's compiler leaves dynamic quantization of activations out where weights have 8 bits: the
# payload computes with real activations, which a run of the recorded graph would not show.
# Core ML's compiler writes the approximation of GELU by tanh as the exact one.
TOLERANCE = {
    "coreml_attention_fp16": 2e-3,
    "coreml_excite_int8": 6e-3,  # halves between its integers: less than one step
    "coreml_linears_torchao4w-iOS18": 2e-6,
    "coreml_m1_fp16": 5e-4,
    "coreml_m1_int8": 0.63,  # two scales that its compiler merges; a run of the record shows 0.02
    "coreml_m2_fp16": 1e-2,
    "coreml_quantized_int8": 5e-2,
    "coreml_shapes_fp16": 2e-3,
    "coreml_unaries": 1e-3,
    "mps_m1_fp16": 5e-4,
    "tosa_quantized_int16": 5e-4,
    "tosa_unary": 1e-4,
    "vulkan_linears_dynamic8": 1e-2,
    "vulkan_m1_fp16": 5e-4,
    "vulkan_sharing_fp16": 2e-3,
    "vulkan_strided_fp16": 1e-3,
}


def _expected(name: str) -> tuple[list[Any], list[Any]]:
    inputs, outputs, *_ = torch.load(FOLDER / f"{name}.pt")
    return inputs, outputs


def _is_exact(value: torch.Tensor) -> bool:
    return not value.is_floating_point()


@pytest.mark.parametrize("name", PAYLOADS)
def test_payload_computes_what_its_vendor_compiled(name: str) -> None:
    method = Runtime().load_program(FOLDER / f"{name}.pte").load_method("forward")
    inputs, outputs = _expected(name)
    for _ in range(2):  # state and registers of a run do not leak into the next one
        results = method.execute(inputs)
        assert len(results) == len(outputs)
        for result, expected in zip(results, outputs, strict=True):
            assert result.dtype == expected.dtype
            bound = 0.0 if _is_exact(expected) else TOLERANCE.get(name, 2e-6)
            torch.testing.assert_close(result, expected, rtol=bound, atol=bound)
    assert {one.origin for one in method.measurements} == {ValueOrigin.INTERPRETED}
    assert {one.source for one in method.measurements} == {"interpreted: torch ran the payload"}


@pytest.mark.parametrize("name", [name for name in PAYLOADS if name.endswith("_m1")])
def test_payload_runs_node_by_node_to_the_same_result_and_a_replaced_value_reaches_it(
    name: str,
) -> None:
    inputs, (expected,) = _expected(name)
    method = Runtime().load_program(FOLDER / f"{name}.pte").load_method("forward")
    method.set_inputs(inputs)
    steps = method.step_into()
    assert steps is not None
    last = steps.nodes[-1] if steps.nodes[-1].outputs else steps.nodes[-2]
    with pytest.raises(ExecutionError, match="not computed yet"):
        steps.value(last.outputs[0])
    steps.run_to(len(steps.nodes))
    value = steps.value(last.outputs[0])
    torch.testing.assert_close(value.reshape(expected.shape), expected, rtol=1e-6, atol=1e-6)
    with pytest.raises(ExecutionError, match=r"is torch\.float32, found torch\.int32"):
        steps.replace(last.outputs[0], value.int())
    steps.replace(last.outputs[0], torch.ones_like(value))
    steps.finish()
    assert not method.at_delegate
    assert method.get_outputs()[0].tolist() == [[1.0] * expected.numel()]


def test_operator_outside_of_the_table_is_refused_by_name_and_the_record_stands_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from runtime.backends.vulkan import backend

    known = backend.bind
    table = backend.VulkanBackend.table
    monkeypatch.setattr(
        backend.VulkanBackend,
        "table",
        replace(table, bind=lambda node, g: None if "sin" in node.target else known(node, g)),
    )
    program = Runtime().load_program(FOLDER / "vulkan_m1.pte")
    with pytest.raises(ExecutionError, match=r"not known: aten\.sin\.default") as refused:
        program.load_method("forward")
    assert refused.value.code == ErrorCode.DelegateInvalidCompatibility
    record = etrecord.decode((FOLDER / "vulkan_m1.etrecord").read_bytes())
    method = program.load_method("forward", emulate=record)
    (measured,) = method.measurements
    assert measured.origin is ValueOrigin.EMULATED
    assert measured.source == "emulated by the recorded graph: not what the payload computes"
    assert "aten.sin.default" in measured.note
    inputs, (expected,) = _expected("vulkan_m1")
    torch.testing.assert_close(method.execute(inputs)[0], expected)


def test_literals_take_the_type_that_an_operator_wants() -> None:
    from runtime.backends.graph.torch_call import literal

    assert literal(1.797693134862315e308, "Optional[number]") == float("inf")
    assert literal(-1.797693134862315e308, "float") == float("-inf")
    assert literal((1.0, 2), "List[int]") == [1, 2]
    assert isinstance(literal(2.0, "int"), int)
    assert isinstance(literal(0, "bool"), bool)
    assert literal("float16", "Optional[ScalarType]") is torch.float16
    assert literal("torch.strided", "Optional[Layout]") is None


def test_slice_ends_that_were_stored_as_real_numbers_are_indices() -> None:
    x = torch.arange(6)
    run = OWN["aten.slice_copy.Tensor"]
    assert run(x, 0.0, 1.0, float(2**63 - 1), 2.0).tolist() == [1, 3, 5]
    assert run(x, 0, None, 2, 1).tolist() == [0, 1]


@pytest.mark.parametrize("first", [torch.ones(4), torch.ones(2, 2, 2), torch.ones(())])
def test_result_that_the_call_does_not_declare_is_named(first: torch.Tensor) -> None:
    """A compiler puts the new content of a state before the results, unlike the program."""
    results = [first, torch.ones(5, 3)]
    graph = SimpleNamespace(inputs=("x",), outputs=("state", "y"), values={})
    engine = SimpleNamespace(graph=graph, run=lambda *_: results)
    context = SimpleNamespace(tracer=None, store=lambda argument, value: argument.copy_(value))
    graph.values["x"] = SimpleNamespace(tensor=SimpleNamespace(sizes=(5, 4)), kind="tensor")
    args: Any = [torch.ones(5, 4), torch.zeros(5, 3), torch.zeros(first.shape)]
    words = re.escape(f"payload are {list(first.shape)}, [5, 3], those of its call [5, 3],")
    with pytest.raises(ExecutionError, match=rf"{words}.*such as the new content of a state"):
        VulkanBackend().execute(cast("Any", context), cast("Any", engine), args)
    assert not args[1].any()
    with pytest.raises(ExecutionError, match="alias_buffer_mutations=true") as refused:
        VulkanBackend().execute(cast("Any", context), cast("Any", engine), args[1:])
    assert "the delegate call has 2 arguments; the payload has 1 inputs and 2" in str(refused.value)
    VulkanBackend().execute(cast("Any", context), cast("Any", engine), [args[0], args[2], args[1]])
    assert args[1].all()
    assert args[2].all()
