"""OpenVINO's runtime behind plain buffers; its child process imports this file alone.

Only numpy and the package are needed, so that it works in an environment that has no torch.
"""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np

Array: TypeAlias = Any  # of bytes, flat
Given: TypeAlias = "tuple[Array, tuple[int, ...]]"
_PASSIVE = ("Parameter", "Result", "Input", "Output", "Constant", "Const")
_PART_OF_ANOTHER = ("", "undef")
_FACTS = {
    "precision": "INFERENCE_PRECISION_HINT",
    "threads": "INFERENCE_NUM_THREADS",
    "devices": "EXECUTION_DEVICES",
}
_PROFILED = {"PERF_COUNT": "YES"}
_CLEAN = re.compile(r"(Exception from |Check ').*?:\d+:?\s*", re.DOTALL)


class OpenvinoError(Exception):
    """The package refuses; one sentence."""


class LocalHost:
    """Networks in this process.

    Raises: OpenvinoError if the package cannot be imported
    """

    direct = alive = True

    def __init__(self) -> None:
        try:
            self._package: Any = importlib.import_module("openvino")
        except Exception as error:
            raise OpenvinoError(f"openvino cannot be imported: {sentence(error)}") from error
        self._core: Any = self._package.Core()
        self._networks: dict[int, _Network] = {}
        self._count = 0
        self.release = str(self._package.__version__).partition("-")[0]

    def devices(self) -> list[str]:
        """Return the devices of this machine."""
        return [str(one) for one in self._core.available_devices]

    def load(
        self, blob: bytes, device: str, options: Mapping[str, str], *, profiled: bool = False
    ) -> tuple[int, dict[str, Any]]:
        """Import an exported network; return its number and its facts.

        Raises: OpenvinoError with the package's reason
        """
        asked = {**options, **(_PROFILED if profiled else {})}
        try:
            compiled = self._core.import_model(io.BytesIO(blob), device, asked)
        except Exception as error:
            raise OpenvinoError(self._why(device, error)) from error
        self._count += 1
        self._networks[self._count] = _Network(self._package, compiled)
        return self._count, self._networks[self._count].facts()

    def _why(self, device: str, error: Exception) -> str:
        there = self.devices()
        kind = device.split(":")[0].split(".")[0].upper()
        if kind not in ("AUTO", "MULTI", "HETERO", "BATCH") and not any(
            one.split(".")[0].upper() == kind for one in there
        ):
            return f"OpenVINO has no device {device} here; available: {', '.join(there) or 'none'}"
        return f"OpenVINO {self.release} refuses the payload: {sentence(error)}"

    def bind(self, number: int, inputs: Sequence[Given], outputs: Sequence[Given] | None) -> None:
        """Set the memory that the network reads, and that it writes; None leaves that to it.

        Raises: OpenvinoError naming the argument
        """
        self._networks[number].bind(inputs, outputs)

    def infer(self, number: int) -> None:
        """Run a network on the bound tensors.

        Raises: OpenvinoError with the package's reason
        """
        self._networks[number].infer()

    def runner(self, number: int) -> Callable[[], None]:
        """Return a function that runs a network on the bound tensors; see ``infer``."""
        return self._networks[number].infer

    def results(self, number: int) -> list[Given]:
        """Return the outputs of the last inference."""
        return self._networks[number].results()

    def profile(self, number: int) -> list[tuple[str, str, str, float]]:
        """Return name, kind, kernel and microseconds of each layer that ran, in order."""
        return self._networks[number].profile()

    def free(self, numbers: Sequence[int]) -> None:
        """Release networks."""
        for number in numbers:
            self._networks.pop(number, None)

    def close(self) -> None:
        """Release everything."""
        self._networks.clear()


class _Network:
    def __init__(self, package: Any, compiled: Any) -> None:  # noqa: ANN401
        self._package = package
        self._compiled = compiled
        self._request: Any = compiled.create_infer_request()
        self._run = _plain_infer(self._request)
        self._types = [port.get_element_type() for port in compiled.inputs]
        self._results = [port.get_element_type() for port in compiled.outputs]
        self._bound: list[Any] = []  # keeps the memory alive

    def facts(self) -> dict[str, Any]:
        """Return types and shapes of the ports, and the settings that the plugin chose."""
        found: dict[str, Any] = {
            "inputs": [_port(port) for port in self._compiled.inputs],
            "outputs": [_port(port) for port in self._compiled.outputs],
            "names": [_name(port) for port in self._compiled.inputs],
        }
        for name, key in _FACTS.items():
            try:
                value = self._compiled.get_property(key)
            except Exception:  # noqa: BLE001 - not every plugin has every property
                continue
            found[name] = _word(value)
        return found

    def bind(self, inputs: Sequence[Given], outputs: Sequence[Given] | None) -> None:
        """Set the memory."""
        tensors: list[Any] = []
        sides = [(inputs, self._types, self._request.set_input_tensor)]
        if outputs is not None:
            sides.append((outputs, self._results, self._request.set_output_tensor))
        for given, types, put in sides:
            for index, ((data, shape), kind) in enumerate(zip(given, types)):  # noqa: B905 - 3.9
                try:
                    tensor = self._tensor(data, shape, kind)
                    put(index, tensor)
                except Exception as error:
                    side = "input" if given is inputs else "output"
                    raise OpenvinoError(f"{side} {index}: {sentence(error)}") from error
                tensors.append(tensor)
        self._bound = tensors

    def _tensor(self, data: Array, shape: tuple[int, ...], kind: Any) -> Any:  # noqa: ANN401
        return self._package.Tensor(data, self._package.Shape(list(shape)), kind)

    def infer(self) -> None:
        """Run."""
        try:
            self._run()
        except Exception as error:
            raise OpenvinoError(sentence(error)) from error

    def results(self) -> list[Given]:
        """Return copies of the outputs."""
        found: list[Given] = []
        for index in range(len(self._results)):
            tensor = self._request.get_output_tensor(index)
            data: Any = np.array(tensor.data, order="C", copy=True)
            found.append((data.reshape(-1).view(np.uint8), tuple(tensor.shape)))
        return found

    def profile(self) -> list[tuple[str, str, str, float]]:
        """Return the layers that ran."""
        return [
            (
                str(one.node_name),
                str(one.node_type),
                str(one.exec_type),
                one.real_time.total_seconds() * 1e6,
            )
            for one in self._request.get_profiling_info()
            if one.node_type not in _PASSIVE and _has_run(one)
        ]


def _has_run(one: Any) -> bool:  # noqa: ANN401
    """Return whether a layer has run: the CPU plugin denies it of one below a microsecond.

    One that is part of another has no kernel.
    """
    if one.status == one.Status.EXECUTED:
        return True
    return one.status == one.Status.NOT_RUN and one.exec_type not in _PART_OF_ANOTHER


def _plain_infer(request: Any) -> Callable[[], Any]:  # noqa: ANN401
    """Return the inference without the package's conversion of arguments and results."""
    bases: Sequence[Any] = type(request).__mro__[1:]
    for base in bases:
        infer: Any = getattr(base, "infer", None)
        if infer is not None and base.__module__.endswith("._pyopenvino"):
            return partial(infer, request, {}, True, False)  # shared, strings not decoded
    return partial(request.infer, share_outputs=True)


def _port(port: Any) -> tuple[str, list[int] | None]:  # noqa: ANN401
    shape = port.get_partial_shape()
    return (
        port.get_element_type().get_type_name(),
        [int(size) for size in port.get_shape()] if shape.is_static else None,
    )


def _name(port: Any) -> str:  # noqa: ANN401
    return str(port.get_node().get_friendly_name())


def _word(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, cast("list[object]", value)))
    name = getattr(value, "get_type_name", None)
    return str(value) if name is None else str(name())


def sentence(error: BaseException) -> str:
    """Return the cause of an error of the package, without the places in its sources."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept = [text for text in (_CLEAN.sub("", line).strip() for line in lines) if text]
    return (kept[-1] if kept else type(error).__name__)[:300]
