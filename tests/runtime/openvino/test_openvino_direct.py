"""Runs of a network by OpenVINO's C interface, which a toy stands in for."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from runtime.backends.openvino import direct
from runtime.backends.openvino.direct import DirectRuns
from runtime.backends.openvino.host import OpenvinoError

SIZES = (2, 3)


class ToyLibrary:
    """Networks that double float tensors: a core, ports, tensors and requests by number."""

    core = c.c_void_p(1)

    def __init__(
        self, *, factor: float = 2, sizes: Sequence[int] = SIZES, refuses: str = ""
    ) -> None:
        self.factor = factor
        self.sizes = tuple(sizes)
        self.refuses = refuses
        self.functions: Any = self
        self.status = 0
        self.bound: dict[str, int] = {}
        self.binds = self.ran = self.freed = 0
        self._tensors: list[int] = []

    def call(self, name: str, *args: Any) -> None:
        if name == self.refuses:
            raise OpenvinoError(f"{name} refuses")
        getattr(self, name.replace("_output_", "_input_"))(name, *args)

    def error(self) -> OpenvinoError:
        return OpenvinoError("the network fails")

    def __getitem__(self, name: str) -> Any:
        assert name == "ov_infer_request_infer"
        return self._infer

    def _infer(self, _request: Any) -> int:
        self.ran += 1
        if not self.status:
            given, written = (
                (c.c_float * 6).from_address(self.bound[side]) for side in ("input", "output")
            )
            written[:] = [self.factor * one for one in given]
        return self.status

    def ov_core_import_model(self, _name: str, *args: Any) -> None:
        args[-1]._obj.value = 7

    def ov_compiled_model_create_infer_request(self, _name: str, _network: Any, made: Any) -> None:
        made._obj.value = 8

    def ov_infer_request_get_input_tensor_by_index(self, _name: str, *args: Any) -> None:
        args[-1]._obj.value = 9

    def ov_tensor_get_element_type(self, _name: str, _tensor: Any, kind: Any) -> None:
        kind._obj.value = 4

    def ov_tensor_get_shape(self, _name: str, _tensor: Any, shape: Any) -> None:
        shape._obj.rank = len(self.sizes)
        shape._obj.dims = (c.c_int64 * len(self.sizes))(*self.sizes)

    def ov_tensor_get_byte_size(self, _name: str, _tensor: Any, size: Any) -> None:
        size._obj.value = 4 * torch.Size(self.sizes).numel()

    def ov_tensor_create_from_host_ptr(self, _name: str, *args: Any) -> None:
        kind, shape, address, made = args
        assert (kind.value, shape.rank) == (4, len(self.sizes))
        self._tensors.append(address.value)
        made._obj.value = len(self._tensors)

    def ov_infer_request_set_input_tensor_by_index(self, name: str, *args: Any) -> None:
        side = "output" if "_output_" in name else "input"
        self.bound[side] = self._tensors[args[-1].value - 1]
        self.binds += 1

    def ov_tensor_free(self, _tensor: Any) -> None:
        """Do nothing."""

    def ov_infer_request_free(self, _request: Any) -> None:
        self.freed += 1

    ov_compiled_model_free = ov_infer_request_free


class ToyRuns:
    """A network that the package runs, in memory of tensors."""

    def __init__(self, payload: bytes = b"payload") -> None:
        self.given = torch.zeros(SIZES)
        self.result = torch.zeros(SIZES)
        self.by_package = 0
        self.runs = DirectRuns(payload, "CPU", ([self.given], [self.result]), self._package)

    def _package(self, _addresses: Sequence[int]) -> None:
        self.by_package += 1
        torch.mul(self.given, 2, out=self.result)

    def run(self, number: float) -> None:
        self.given.fill_(number)
        self.runs.run([self.given.data_ptr(), self.result.data_ptr()])
        assert self.result.unique().tolist() == [2 * number]


def _use(monkeypatch: pytest.MonkeyPatch, library: ToyLibrary | None) -> None:
    monkeypatch.setattr(direct, "_library", lambda: library)


def test_later_runs_are_by_the_c_interface_and_follow_memory_that_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = ToyLibrary()
    _use(monkeypatch, library)
    case = ToyRuns()
    for number in range(1, 8):
        case.run(number)
    assert (case.by_package, library.ran) == (3, 1 + 4)
    assert library.binds == 2  # once each
    case.given.data = torch.zeros(SIZES)
    case.run(8)
    assert (case.by_package, library.binds) == (3, 4)
    library.status = -1
    with pytest.raises(OpenvinoError, match="the network fails"):
        case.run(9)
    library.status = 0
    case.run(10)
    case.runs.close()
    assert library.freed == 2


@pytest.mark.parametrize(
    "library",
    [
        pytest.param(None, id="missing"),
        pytest.param(ToyLibrary(factor=3), id="values"),
        pytest.param(ToyLibrary(factor=2.0000002), id="last-bit"),
        pytest.param(ToyLibrary(sizes=(3, 2)), id="sizes"),
        pytest.param(ToyLibrary(sizes=(2, 3, 1)), id="rank"),
        *(
            pytest.param(ToyLibrary(refuses=name), id=name)
            for name in (
                "ov_core_import_model",
                "ov_compiled_model_create_infer_request",
                "ov_infer_request_get_output_tensor_by_index",
                "ov_tensor_create_from_host_ptr",
                "ov_infer_request_set_output_tensor_by_index",
            )
        ),
    ],
)
def test_package_goes_on_where_the_c_interface_is_not_the_same(
    library: ToyLibrary | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(monkeypatch, library)
    case = ToyRuns()
    for number in range(1, 8):
        case.run(number)
    assert case.by_package == 7
    assert library is None or library.ran <= 1


def test_inference_that_fails_in_the_first_try_is_left_to_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = ToyLibrary()
    library.status = -1
    _use(monkeypatch, library)
    case = ToyRuns()
    for number in range(1, 6):
        case.run(number)
    assert (case.by_package, library.ran) == (5, 1)


def test_large_payloads_are_not_in_memory_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ToyLibrary()
    _use(monkeypatch, library)
    case = ToyRuns(bytes((1 << 20) + 1))
    for number in range(1, 8):
        case.run(number)
    assert (case.by_package, library.ran) == (7, 0)
