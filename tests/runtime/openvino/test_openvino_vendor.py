"""Payloads run by the real OpenVINO, where it is installed: see tests/data/backends/recipe.py."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime import DebugLevel, ErrorCode, EventTracer, ExecutionError, Runtime
from runtime.backends.openvino import direct
from runtime.backends.openvino.backend import OpenvinoBackend
from runtime.backends.openvino.detect import HostPool
from schema.origins import ValueOrigin
from tests.conftest import DATA

FOLDER = DATA / "backends" / "openvino"
PAYLOADS = sorted(path.stem for path in FOLDER.glob("*.pte"))
pytestmark = [
    pytest.mark.vendor,
    pytest.mark.skipif(
        importlib.util.find_spec("openvino") is None, reason="the package openvino is missing"
    ),
]


@pytest.fixture(params=["here", "child"], autouse=True)
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(HostPool, "here", True)
    monkeypatch.setattr(HostPool, "host", None)
    monkeypatch.setattr(HostPool, "apart", request.param == "child")
    yield
    if HostPool.host is not None:
        HostPool.host.close()


def _runtime(**options: str) -> Runtime:
    runtime = Runtime()
    backend = runtime.backend_registry.backend("OpenvinoBackend")
    assert isinstance(backend, OpenvinoBackend)
    backend.set_options(options)
    return runtime


def _given(name: str) -> tuple[list[Any], list[Any]]:
    inputs, outputs, *_ = torch.load(FOLDER / f"{name}.pt")
    return inputs, outputs


@pytest.mark.parametrize("name", PAYLOADS)
def test_payload_computes_in_full_precision_what_was_compiled(name: str) -> None:
    method = _runtime(precision="f32").load_program(FOLDER / f"{name}.pte").load_method("forward")
    inputs, outputs = _given(name)
    for _ in range(2):
        results = method.execute(inputs)
        for result, expected in zip(results, outputs, strict=True):
            assert result.dtype == expected.dtype
            bound = 5e-2 if name.endswith("int8") else 2e-5
            torch.testing.assert_close(result, expected, rtol=bound, atol=bound)
    (measured,) = {one.origin for one in method.measurements}
    assert measured is ValueOrigin.MEASURED
    assert all(one.engine.endswith(" on CPU, f32") for one in method.measurements)


def test_precision_is_an_option_of_the_run() -> None:
    inputs, (expected,) = _given("openvino_m1")
    found: list[float] = []
    for precision in ("bf16", "f32"):
        program = _runtime(precision=precision).load_program(FOLDER / "openvino_m1.pte")
        (result,) = program.load_method("forward").execute(inputs)
        found.append(float((result - expected).abs().max()))
    assert found[1] < 1e-6
    assert found[0] == 0 or found[0] > found[1]  # processors without bf16 ignore it


@pytest.mark.parametrize("name", [name for name in PAYLOADS if "int8" not in name])
def test_values_of_all_layers_are_consistent_with_the_results(name: str) -> None:
    method = _runtime(precision="f32").load_program(FOLDER / f"{name}.pte").load_method("forward")
    inputs, _ = _given(name)
    method.set_inputs(inputs)
    stepped = 0
    for _ in method.metadata.backend_names() and range(200):
        if not method.at_delegate:
            try:
                method.step()
            except ExecutionError:  # the end
                break
            continue
        steps = method.step_into()
        steps.run_to(len(steps.nodes))
        values = [steps.value(ident) for node in steps.nodes for ident in node.outputs]
        stepped += len(values)
        steps.finish()
    assert stepped > 5
    for result, expected in zip(method.get_outputs(), _given(name)[1], strict=True):
        torch.testing.assert_close(result, expected, rtol=2e-5, atol=2e-5)


def test_replaced_value_reaches_the_result() -> None:
    inputs, (expected,) = _given("openvino_m1")
    runtime = _runtime(precision="f32")
    method = runtime.load_program(FOLDER / "openvino_m1.pte").load_method("forward")
    method.set_inputs(inputs)
    steps = method.step_into()
    assert steps is not None
    relu = next(node for node in steps.nodes if node.kind == "ReLU")
    with pytest.raises(ExecutionError, match="not computed yet"):
        steps.value(relu.outputs[0])
    steps.run_to(relu.index + 1)
    value = steps.value(relu.outputs[0])
    assert value.shape == (1, 8, 8, 8)
    assert float(value.min()) == 0
    with pytest.raises(ExecutionError, match=r"is torch\.float32, found torch\.int32"):
        steps.replace(relu.outputs[0], value.int())
    constant = next(node for node in steps.nodes if node.kind == "Const")
    with pytest.raises(ExecutionError, match="is a constant"):
        steps.replace(constant.outputs[0], steps.value(constant.outputs[0]))
    steps.replace(relu.outputs[0], torch.zeros_like(value))
    steps.finish()
    bias = next(
        steps.value(node.outputs[0])
        for node in steps.nodes
        if node.outputs and _is_bias(steps, node)
    )
    torch.testing.assert_close(method.get_outputs()[0], torch.sin(bias).reshape(expected.shape))


def _is_bias(steps: Any, node: Any) -> bool:
    return node.kind == "Const" and steps.value(node.outputs[0]).shape == (10,)


def test_layers_are_logged_with_their_kernels_and_values(tmp_path: Path) -> None:
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    program = _runtime().load_program(FOLDER / "openvino_m1.pte", tracer=tracer)
    program.load_method("forward").execute(_given("openvino_m1")[0])
    tracer.write(tmp_path / "run.etdp", tmp_path / "run.debug")
    text = (tmp_path / "run.etdp").read_bytes()
    assert b"aten_addmm_default/aten.addmm.default/Add" in text
    assert b"measured on real kernels: FullyConnected " in text


def test_device_that_is_not_here_is_refused_with_those_that_are() -> None:
    program = _runtime(device="NPU").load_program(FOLDER / "openvino_m1.pte")
    with pytest.raises(ExecutionError, match=r"no device NPU here; available: .*CPU") as refused:
        program.load_method("forward")
    assert refused.value.code == ErrorCode.InvalidArgument


def test_damaged_payload_and_unknown_property_are_refused(tmp_path: Path) -> None:
    program = _runtime(NO_SUCH="1").load_program(FOLDER / "openvino_m1.pte")
    with pytest.raises(ExecutionError, match="Unsupported property NO_SUCH"):
        program.load_method("forward")
    data = bytearray((FOLDER / "openvino_m1.pte").read_bytes())
    at = data.index(b"\x30\x00\x00\x00\x00\x00\x00\x00")
    data[at + 24 : at + 32] = (1 << 40).to_bytes(8, "little")
    (tmp_path / "model.pte").write_bytes(data)
    with pytest.raises(ExecutionError, match="OpenvinoBackend"):
        _runtime().load_program(tmp_path / "model.pte").load_method("forward")


@pytest.mark.parametrize("name", PAYLOADS)
def test_all_runs_of_a_load_give_the_same_bits_traced_or_not(name: str) -> None:
    method = _runtime().load_program(FOLDER / f"{name}.pte").load_method("forward")
    inputs, _ = _given(name)
    first = method.execute(inputs)
    for _ in range(7):  # after some the C interface runs small payloads
        for result, expected in zip(method.execute(inputs), first, strict=True):
            assert torch.equal(result, expected)
    others = [one + 1 if one.is_floating_point() else one for one in inputs]
    moved = method.execute(others)
    if name == "openvino_m2":
        return  # two loads of it by the vendor's own runtime may differ in their indices
    fresh = _runtime().load_program(FOLDER / f"{name}.pte").load_method("forward")
    for result, expected in zip(moved, fresh.execute(others), strict=True):
        torch.testing.assert_close(result, expected, rtol=2e-2, atol=2e-2)
    method.close()


def test_small_network_is_run_by_the_c_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    if HostPool.apart:
        pytest.skip("the process of its own runs it by the package")
    asked: list[str] = []
    used = direct.DirectCall.__init__

    def noting(self: direct.DirectCall, *given: Any) -> None:
        used(self, *given)
        asked.append("made")

    monkeypatch.setattr(direct.DirectCall, "__init__", noting)
    method = _runtime().load_program(FOLDER / "openvino_m1.pte").load_method("forward")
    for _ in range(5):
        method.execute(_given("openvino_m1")[0])
    assert asked == ["made"]
    asked.clear()
    method = _runtime(precision="f32").load_program(FOLDER / "openvino_m1.pte")
    loaded = method.load_method("forward")
    for _ in range(5):
        loaded.execute(_given("openvino_m1")[0])
    assert not asked  # options reach the package alone


@pytest.mark.parametrize("name", PAYLOADS)
def test_layers_of_a_trace_are_the_same_in_each_run(name: str) -> None:
    """Those of less than a microsecond are among them: whether one takes more is chance."""
    found: list[list[Any]] = []
    for _ in range(6):
        tracer = EventTracer()
        program = _runtime().load_program(FOLDER / f"{name}.pte", tracer=tracer)
        program.load_method("forward").execute(_given(name)[0])
        rows: list[Any] = tracer.rows
        found.append([row[0] for row in rows if isinstance(row[0], str)])
    assert len(found[0]) > 1
    assert all(one == found[0] for one in found)
