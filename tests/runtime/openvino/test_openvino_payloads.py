"""OpenVINO payloads without the package, and the process that runs it, with a toy package."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from runtime import ErrorCode, EventTracer, ExecutionError, Runtime
from runtime.backends.openvino import detect
from runtime.backends.openvino.detect import HostPool
from runtime.backends.openvino.engine import LayerEngine
from runtime.backends.openvino.host import OpenvinoError, sentence
from runtime.backends.openvino.probes import probed
from runtime.backends.openvino.process import ProcessHost
from runtime.delegates.errors import DelegateError
from schema import etrecord, payloads, program
from schema.origins import ValueOrigin, kernel_of_mark, measured_by, origin_of_mark
from schema.payloads import Payload
from schema.payloads.openvino.payload import read_stream
from tests.conftest import DATA

FOLDER = DATA / "backends" / "openvino"
PAYLOADS = sorted(path.stem for path in FOLDER.glob("*.pte"))
TOY = """
import os
__version__ = "2025.9.9-toy"
Shape = list
class Tensor:
    def __init__(self, data, shape, kind):
        if len(data) != 4 * shape[0]:
            raise RuntimeError("Exception from toy.cpp:12:\\nCheck 'x' at a.cpp:3:\\nwrong size")
        self.data, self.shape = data, shape
class Type:
    def get_type_name(self): return "f32"
class Name:
    def get_friendly_name(self): return "x"
class Partial:
    is_static = True
class Port:
    def get_element_type(self): return Type()
    def get_partial_shape(self): return Partial()
    def get_shape(self): return [2]
    def get_node(self): return Name()
class Row:
    class Status: EXECUTED, NOT_RUN = 1, 0
    status, node_type, node_name, exec_type = 1, "Toy", "double", "jit_toy"
    class real_time:
        total_seconds = staticmethod(lambda: 3e-6)
class Quick(Row):  # below a microsecond
    status, node_name, exec_type = 0, "quick", "ref_any_f32"
    class real_time: total_seconds = staticmethod(lambda: 0.0)
class Fused(Quick): node_name, exec_type = "fused", "undef"
class Moved(Quick): node_name, exec_type = "moved", "unknown_f32"
class Left(Quick): status, node_name = 2, "left out"
class Given(Row): node_type, node_name = "Parameter", "x"
class Request:
    def set_input_tensor(self, index, tensor): self.given = tensor
    def infer(self, share_outputs=False):
        import numpy as np
        if self.given.data.view(np.float32)[0] == 13: os.abort()
        print("noise on standard output")
        self.made = (self.given.data.view(np.float32) * 2)
    def get_output_tensor(self, index):
        tensor = Tensor(self.made.view("u1"), [2], None)
        tensor.data = self.made
        return tensor
    def get_profiling_info(self): return [Row(), Quick(), Fused(), Moved(), Left(), Given()]
class Compiled:
    inputs = outputs = [Port()]
    def create_infer_request(self): return Request()
    def get_property(self, key):
        if "PRECISION" in key: return Type()
        raise RuntimeError("no such property")
class Core:
    available_devices = ["CPU"]
    def import_model(self, blob, device, options):
        if options.get("X"): raise RuntimeError("Exception from src/x.cpp:1:\\nunknown property X")
        return Compiled()
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProcessHost:
    """Return a process whose package doubles, and aborts for 13."""
    (tmp_path / "openvino").mkdir()
    (tmp_path / "openvino" / "__init__.py").write_text(TOY)
    python = tmp_path / "python"
    # as an environment of its own would have it
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} -W ignore "$@"\n')
    python.chmod(0o755)
    return ProcessHost(str(python))


def _payload(name: str) -> tuple[memoryview, Payload]:
    file = program.decode(memoryview((FOLDER / f"{name}.pte").read_bytes()))
    entry = file.plans[0].delegates[0]
    data = file.delegate_data(entry)
    return data, payloads.decode(entry.id, data, {}, ())


@pytest.mark.skipif(sys.platform == "win32", reason="the toy is a shell script")
def test_process_answers_refuses_and_ends_with_the_package(toy: ProcessHost) -> None:
    number, facts = toy.load(b"blob", "CPU", {}, profiled=True)
    assert (toy.release, facts["precision"], facts["inputs"]) == ("2025.9.9", "f32", [["f32", [2]]])
    given = np.array([1.5, 4.0], np.float32)
    toy.bind(number, [(given.view(np.uint8), (2,))], None)
    toy.infer(number)
    ((data, shape),) = toy.results(number)
    assert (data.view(np.float32).tolist(), shape) == ([3.0, 8.0], (2,))
    assert toy.profile(number) == [
        ("double", "Toy", "jit_toy", 3.0),
        ("quick", "Toy", "ref_any_f32", 0.0),
        ("moved", "Toy", "unknown_f32", 0.0),
    ]
    with pytest.raises(OpenvinoError, match=r"^OpenVINO 2025\.9\.9 refuses .*unknown property X$"):
        toy.load(b"blob", "CPU", {"X": "1"})
    with pytest.raises(OpenvinoError, match="has no device GPU here; available: CPU"):
        toy.load(b"blob", "GPU", {"X": "1"})
    toy.bind(number, [(given.view(np.uint8), (3,))], None)
    with pytest.raises(OpenvinoError, match=r"^input 0: wrong size$"):
        toy.infer(number)
    toy.bind(number, [(np.array([13, 0], np.float32).view(np.uint8), (2,))], None)
    with pytest.raises(OpenvinoError, match=r"ended with signal 6 at 'infer'"):
        toy.infer(number)
    assert not toy.alive


def test_interpreter_that_does_not_start_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OpenvinoError, match="cannot be started: No such file"):
        ProcessHost(str(tmp_path / "python"))


@pytest.mark.parametrize("name", ["openvino_m1", "openvino_m2"])
def test_record_stands_in_where_the_package_is_missing_and_how_to_install_it_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostPool, "host", None)
    monkeypatch.setattr(detect, "is_installed", lambda: False)
    monkeypatch.setattr(detect, "python_with", lambda _module: "")
    found = Runtime().load_program(FOLDER / f"{name}.pte")
    with pytest.raises(ExecutionError, match="etscope backends install openvino"):
        found.load_method("forward")
    record = etrecord.decode((FOLDER / f"{name}.etrecord").read_bytes())
    method = found.load_method("forward", emulate=record)
    (measured,) = method.measurements
    assert measured.origin is ValueOrigin.EMULATED
    assert "etscope backends install openvino" in measured.note
    inputs, outputs, *_ = torch.load(FOLDER / f"{name}.pt")
    torch.testing.assert_close(method.execute(inputs)[0], outputs[0])


class _Picky:
    """Refuses options and devices, or everything."""

    direct = alive = True
    release = "2025.9.9"

    def __init__(self, *, broken: bool) -> None:
        self.broken = broken
        self.loaded: list[int] = []

    def load(
        self, _blob: bytes, device: str, options: dict[str, str], *, profiled: bool = False
    ) -> tuple[int, dict[str, str]]:
        if self.broken or options or profiled or device != "CPU":
            raise OpenvinoError("no such thing.")
        self.loaded.append(7)
        return 7, {}

    def free(self, numbers: list[int]) -> None:
        for number in numbers:
            self.loaded.remove(number)


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("options", [{"precision": "f64"}, {"device": "XYZ"}, {"NO_SUCH": "1"}])
def test_record_stands_in_for_a_refused_payload_but_never_for_refused_options(
    options: dict[str, str], broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    picky = _Picky(broken=broken)
    monkeypatch.setattr(HostPool, "here", True)
    monkeypatch.setattr(HostPool, "host", picky)
    runtime = Runtime()
    runtime.backend_registry.backend("OpenvinoBackend").set_options(options)
    found = runtime.load_program(FOLDER / "openvino_m1.pte")
    record = etrecord.decode((FOLDER / "openvino_m1.etrecord").read_bytes())
    if broken:
        (measured,) = found.load_method("forward", emulate=record).measurements
        assert measured.origin is ValueOrigin.EMULATED
        assert "no such thing" in measured.note
        return
    ((name, value),) = options.items()
    with pytest.raises(
        ExecutionError, match=f"no such thing; without the options {name}={value} it loads"
    ) as refused:
        found.load_method("forward", emulate=record)
    assert refused.value.code == ErrorCode.InvalidArgument
    assert not picky.loaded


@pytest.mark.parametrize("name", PAYLOADS)
def test_probes_add_an_output_for_each_value_and_an_input_for_a_replaced_one(name: str) -> None:
    data, plain = _payload(name)
    assert plain.graph is not None
    made = probed(read_stream(data))
    again = payloads.decode("OpenvinoBackend", memoryview(made.data), {}, ()).graph
    assert again is not None
    assert again.outputs == (*plain.graph.outputs, *made.values)
    assert again.inputs == plain.graph.inputs
    assert set(made.values) == {
        value for node in plain.graph.nodes if node.outputs and node.target not in
        ("Const", "Parameter") for value in node.outputs
    }  # fmt: skip
    value = made.values[len(made.values) // 2]
    cut = probed(read_stream(data), [value])
    after = payloads.decode("OpenvinoBackend", memoryview(cut.data), {}, ()).graph
    assert after is not None
    readers = [node.name for node in plain.graph.nodes if value in node.inputs]
    assert after.inputs[:-1] == plain.graph.inputs
    for node in after.nodes:
        if node.name in readers:
            assert after.inputs[-1] in node.inputs
            assert value not in node.inputs


def test_layers_are_those_of_the_nodes_that_the_payload_names() -> None:
    _, one = _payload("openvino_m1")
    fused = "aten_addmm_default/aten.addmm.default/Add"
    assert one.origins[fused] == ("aten_permute_copy_default", "aten_addmm_default")
    assert one.node_values[fused] == ("aten_addmm_default",)
    bare = "aten_convolution_default/aten.convolution.default/Convolution"  # without its bias
    assert one.origins[bare] == ("aten_convolution_default",)
    assert bare not in one.node_values
    _, two = _payload("openvino_m2")
    (erf,) = [name for name, nodes in two.origins.items() if nodes == ("aten_erf_default",)]
    assert erf not in two.node_values  # a reshape after it has its value in the node's shape
    moved = "aten_view_copy_default_1/aten.view_copy.default/Reshape"
    assert set(two.node_values[moved]) == {"aten_erf_default", "aten_view_copy_default_1"}


def test_reasons_of_the_package_lose_the_places_in_its_sources() -> None:
    text = "Exception from src/inference/src/cpp/core.cpp:1:\nCheck 'x' failed at a.cpp:3:\nwhy"
    assert sentence(RuntimeError(text)) == "why"
    assert sentence(RuntimeError()) == "RuntimeError"
    assert len(sentence(RuntimeError("x" * 1000))) == 300


def test_kernel_of_an_event_is_in_its_mark() -> None:
    mark = measured_by("FullyConnected brgemm_avx512_bf16")
    assert origin_of_mark(mark) is ValueOrigin.MEASURED
    assert kernel_of_mark(mark) == "FullyConnected brgemm_avx512_bf16"
    assert kernel_of_mark(b"interpreted") == kernel_of_mark(b"measured on real kernels") == ""


class DoublingHost:
    """Stands in for the package in this process: writes the sum of the input, counting calls."""

    direct = alive = True
    release = "9.9"

    def __init__(self) -> None:
        self.bound: list[int] = []
        self.ran = self.results_asked = 0
        self._memory: dict[int, tuple[list[Any], list[Any]]] = {}

    def load(self, *_given: Any, profiled: bool = False) -> tuple[int, dict[str, Any]]:
        shapes = {"inputs": [("f32", [1, 3, 8, 8])], "outputs": [("f32", [1, 10])]}
        return int(profiled), {**shapes, "precision": "f32"}

    def bind(self, number: int, inputs: Any, outputs: Any) -> None:
        self.bound.append(number)
        own = [np.zeros(40, np.uint8)] if outputs is None else [one for one, _ in outputs]
        self._memory[number] = [one for one, _ in inputs], own

    def runner(self, number: int) -> Callable[[], None]:
        return lambda: self.infer(number)

    def infer(self, number: int) -> None:
        self.ran += 1
        (given,), (written,) = self._memory[number]
        written.view(np.float32)[:] = given.view(np.float32).sum()

    def results(self, number: int) -> list[Any]:
        self.results_asked += 1
        return [(self._memory[number][1][0], (1, 10))]

    def profile(self, _number: int) -> list[tuple[str, str, str, float]]:
        return [("layer", "Sum", "ref", 1.0)]

    def free(self, _numbers: Any) -> None:
        """Do nothing."""


def test_runs_in_place_bind_once_and_traced_ones_use_a_network_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = DoublingHost()
    monkeypatch.setattr(HostPool, "host", own)
    tracer = EventTracer()
    method = Runtime().load_program(FOLDER / "openvino_m1.pte").load_method("forward")
    for number in range(4):
        (result,) = method.execute([torch.full((1, 3, 8, 8), float(number))])
        assert result.unique().tolist() == [192.0 * number]
    assert own.ran == 4
    assert own.results_asked == 0  # results were written where the program wants them
    assert len(own.bound) <= 2
    method.tracer = tracer
    (result,) = method.execute([torch.ones(1, 3, 8, 8)])
    assert result.unique().tolist() == [192.0]
    assert own.bound[-1] == 1  # the network with counters
    method.tracer = None
    (result,) = method.execute([torch.full((1, 3, 8, 8), 2.0)])
    assert result.unique().tolist() == [384.0]


class WholeHost(DoublingHost):
    """Returns integers where the program has reals."""

    def load(self, *given: Any, profiled: bool = False) -> tuple[int, dict[str, Any]]:
        number, facts = super().load(*given, profiled=profiled)
        return number, {**facts, "outputs": [("i32", [1, 10])]}


@pytest.mark.parametrize("traced", [False, True])
def test_a_result_of_another_type_is_refused_as_on_the_stock_runtime(
    monkeypatch: pytest.MonkeyPatch, traced: bool
) -> None:
    monkeypatch.setattr(HostPool, "host", WholeHost())
    method = Runtime().load_program(FOLDER / "openvino_m1.pte").load_method("forward")
    method.tracer = EventTracer() if traced else None
    with pytest.raises(ExecutionError, match=r"result 0 as torch\.int32.*torch\.float32") as told:
        method.execute([torch.ones(1, 3, 8, 8)])
    assert told.value.code is ErrorCode.Internal


def test_inputs_of_another_layout_are_read_anew_in_each_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = DoublingHost()
    monkeypatch.setattr(HostPool, "host", own)
    _, payload = _payload("openvino_m1")
    engine = LayerEngine(payload, b"", own, "CPU", {}, 0)  # pyright: ignore[reportArgumentType]
    given = torch.zeros(1, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    out = torch.zeros(1, 10)
    for number in range(3):
        given.fill_(number)
        found = engine.run_into([given], [out])
        result = out if found is None else found[0]
        assert result.unique().tolist() == [192.0 * number]


class FusingHost(DoublingHost):
    """Refuses some values as outputs of a network, as the plugin does between layers it fuses."""

    def __init__(self, refused: set[str], own: int) -> None:
        super().__init__()
        self.refused, self.own = refused, own
        self.shown: list[set[str]] = []

    def load(self, *given: Any, profiled: bool = False) -> tuple[int, dict[str, Any]]:
        graph = payloads.decode("OpenvinoBackend", memoryview(given[0]), {}, ()).graph
        assert graph is not None
        self.shown.append(set(graph.outputs))
        if self.refused.intersection(graph.outputs[self.own :]):
            raise OpenvinoError("incompatible element types: f32 and bf16")
        return super().load(*given, profiled=profiled)


@pytest.mark.parametrize("count", [0, 1, 2, None])
def test_values_that_the_plugin_refuses_as_outputs_are_left_out(count: int | None) -> None:
    data, payload = _payload("openvino_m2")
    values = probed(read_stream(data)).values
    refused = set(values[len(values) // 2 :][:count])
    refused = set(values) if count is None else refused
    assert payload.graph is not None
    host = FusingHost(refused, len(payload.graph.outputs))
    engine = LayerEngine(payload, bytes(data), host, "CPU", {}, 0)  # pyright: ignore[reportArgumentType]
    if count is None:
        with pytest.raises(DelegateError, match="element types"):
            engine.probes()
        return
    engine.probes()
    assert host.shown[-1] == {*payload.graph.outputs, *values} - refused
