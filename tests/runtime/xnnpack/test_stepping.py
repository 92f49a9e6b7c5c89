"""A delegate call node by node: run to a node, read a value, replace it, go on."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime import DelegateSteps, ErrorCode, ExecutionError, Method, Runtime
from tests.runtime.samples import inputs_of
from tests.runtime.xnnpack.sessions import DATA
from tests.runtime.xnnpack.test_damaged_payloads import rows

pytestmark = pytest.mark.slow
NET = DATA / "corpus/v1.5.1/convnet_xnnpack/model.pte"
ENGINES = ["torch", pytest.param("native", marks=pytest.mark.interop)]


def loaded(engine: str) -> tuple[Method, list[Any]]:
    method = Runtime().load_program(NET).load_method("forward", engine=engine)
    return method, inputs_of(method.metadata)


def entered(method: Method, given: list[Any]) -> DelegateSteps:
    method.set_inputs(given)
    while not method.at_delegate:
        method.step()
    return method.step_into()


def finish(method: Method) -> list[Any]:
    try:
        while True:
            method.step()
    except ExecutionError as error:
        if error.code != ErrorCode.EndOfMethod:
            raise
    method.reset_execution()
    return method.get_outputs()


@pytest.mark.parametrize("engine", ENGINES)
def test_call_that_is_stepped_through_gives_the_same_outputs(engine: str) -> None:
    method, given = loaded(engine)
    wanted = method.execute(given)
    steps = entered(method, given)
    for node in steps.nodes:
        assert steps.position == node.index
        steps.step()
        for ident in node.outputs:
            assert steps.value(ident).isfinite().all()
    steps.finish()
    for one, other in zip(finish(method), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)
    assert method.execute(given)[0].shape == wanted[0].shape


@pytest.mark.parametrize("engine", ENGINES)
def test_value_that_is_replaced_is_what_later_nodes_read(engine: str) -> None:
    method, given = loaded(engine)
    steps = entered(method, given)
    at = next(n.index for n in steps.nodes if n.kind == "Add")
    steps.run_to(at)
    left, right = steps.nodes[at].inputs
    other = torch.full_like(steps.value(left), 0.5)
    steps.replace(left, other)
    steps.run_to(at + 1)
    found = steps.value(steps.nodes[at].outputs[0])
    wanted = torch.relu(other + steps.value(right))
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)
    assert method.in_progress
    steps.finish()
    assert not torch.equal(finish(method)[0], method.execute(given)[0])


@pytest.mark.parametrize("engine", ENGINES)
def test_what_cannot_be_done_inside_is_refused(engine: str) -> None:
    method, given = loaded(engine)
    steps = entered(method, given)
    made = steps.nodes[-1].outputs[0]
    first = steps.nodes[0].inputs[0]
    weights = next(n for n in steps.nodes if n.kind == "Conv2d").inputs[1]
    refusals = [
        ("is not computed yet", lambda: steps.value(made)),
        ("value 12345 not found", lambda: steps.value(12345)),
        ("is a constant", lambda: steps.replace(weights, torch.zeros(1))),
        ("has the shape", lambda: steps.replace(first, torch.zeros(1))),
        ("torch.float32", lambda: steps.replace(first, torch.zeros(1, dtype=torch.int8))),
        ("cannot run to", lambda: steps.run_to(99)),
    ]
    for words, refused in refusals:
        with pytest.raises(ExecutionError, match=words):
            refused()
    assert steps.value(weights).dtype is torch.float32
    steps.finish()
    for refused in (steps.step, steps.finish):
        with pytest.raises(ExecutionError, match="finished"):
            refused()


def test_instruction_that_is_no_delegate_call_cannot_be_entered() -> None:
    name = "corpus/v1.5.1/mm_portable/model.pte"
    method = Runtime().load_program(DATA / name).load_method("forward")
    method.set_inputs(inputs_of(method.metadata))
    assert not method.at_delegate
    with pytest.raises(ExecutionError, match="cannot be entered"):
        method.step_into()


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_inside_of_a_kernel_can_be_read(engine: str) -> None:
    case = rows()
    method = Runtime().load_program(case.program).load_method("forward", engine=engine)
    steps = entered(method, case.inputs)
    steps.run_to(1)
    seen = steps.value(steps.nodes[0].outputs[0])
    spread = case.inputs[0].amax(1) - case.inputs[0].amin(1)
    assert ((seen - case.inputs[0]).abs() <= spread[:, None] / 255).all()
    assert seen.unique().numel() > 100


@pytest.mark.interop
def test_rows_that_exist_only_inside_of_a_kernel_cannot_be_replaced() -> None:
    case = rows()
    method = Runtime().load_program(case.program).load_method("forward", engine="native")
    steps = entered(method, case.inputs)
    steps.run_to(1)
    with pytest.raises(ExecutionError, match="only inside of the kernel"):
        steps.replace(steps.nodes[0].outputs[0], torch.zeros(3, 64))


def test_quantized_value_is_read_in_its_steps() -> None:
    method = (
        Runtime()
        .load_program(DATA / "corpus/payloads/xnnpack_q8.pte")
        .load_method("forward", engine="torch")
    )
    steps = entered(method, inputs_of(method.metadata))
    steps.run_to(1)
    assert steps.value(steps.nodes[0].outputs[0]).dtype is torch.int8


@pytest.mark.parametrize("engine", ENGINES)
def test_quantized_values_say_what_they_stand_for(engine: str) -> None:
    path = DATA / "corpus/special/xnnpack_int8_static/model.pte"
    method = Runtime().load_program(path).load_method("forward", engine=engine)
    steps = entered(method, inputs_of(method.metadata))
    read: dict[int, torch.Tensor | None] = {}
    for node in steps.nodes:
        steps.step()
        read.update((ident, steps.real(ident)) for ident in (*node.inputs, *node.outputs))
        if node.kind == "Convert":  # between a number and its steps
            given, made = (steps.value(ident) for ident in (node.inputs[0], node.outputs[0]))
            plain, quantized = (given, made) if given.is_floating_point() else (made, given)
            ident = node.outputs[0] if quantized is made else node.inputs[0]
            real = steps.real(ident)
            assert real is not None
            step = float(real.diff().abs()[quantized.diff() != 0].min())
            inside = (quantized > -128) & (quantized < 127)  # others are cut off
            assert (real - plain)[inside].abs().max() <= 0.51 * step
    assert {real is None for real in read.values()} == {True, False}
    for ident, real in read.items():
        assert (real is None) == steps.value(ident).is_floating_point()
        assert real is None or real.shape == steps.value(ident).shape
