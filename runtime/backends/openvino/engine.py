"""Runs one payload on OpenVINO: results from the payload as it is, values from a probed one.

A value that is an output is not fused over, so that times of a probed payload would be others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from runtime.backends.openvino.detect import Host
from runtime.backends.openvino.direct import DirectRuns
from runtime.backends.openvino.host import Given, OpenvinoError
from runtime.backends.openvino.probes import probed
from runtime.delegates.errors import DelegateError
from runtime.delegates.interface import DelegateTracer
from runtime.errors import ErrorCode
from runtime.memory.slots import TensorShapeDynamism, TensorSlot
from runtime.tracing.tracer import clock
from runtime.untyped import dtype_named, from_buffer
from schema.dtypes.scalar_type import BY_CODE, numel
from schema.errors import FormatError
from schema.graph import Graph
from schema.origins import measured_by
from schema.payloads import Payload
from schema.payloads.openvino.payload import Stream, read_stream

Tensor = torch.Tensor
_DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "boolean": torch.bool,
}
_STATE = ("ReadValue", "Assign")
_REMEDY = "Choose another device or option, or compile again with the release that is installed."


class LayerEngine:
    """A payload that is ready to run.

    Attributes:
        graph: of the payload, None for one that only its device can read
        facts: settings that the plugin chose

    Args:
        payload: decoded
        data: the payload
        host: runs it
        device: name of a device
        options: properties of the plugin
        partition: index among the delegates of the method

    Raises: DelegateError with the reason of the package
    """

    def __init__(
        self,
        payload: Payload,
        data: bytes,
        host: Host,
        device: str,
        options: Mapping[str, str],
        partition: int,
    ) -> None:
        self.graph: Graph | None = payload.graph
        self._constants = {one.name: one.data for one in payload.constants}
        self._data = data
        self._host = host
        self._device = device
        self._options = options
        self.partition = partition
        self._loaded: list[int] = []
        self._number, self.facts = self._load(data)
        self._profiled: int | None = None
        self._probed: Probes | None = None
        self._direct: list[DirectRuns] = []
        self._places: list[Any] = []  # of the memory that the network is bound to
        self._inputs = [_dtype(name) for name, _ in self.facts["inputs"]]
        self._outputs = [_dtype(name) for name, _ in self.facts["outputs"]]

    @property
    def words(self) -> str:
        """Return release, device and precision, as in OpenVINO 2025.4.1 on CPU, bf16."""
        precision = self.facts.get("precision", "")
        return f"OpenVINO {self._host.release} on {self._device}" + (
            f", {precision}" if precision else ""
        )

    @property
    def inputs(self) -> int:
        """Return the number of inputs."""
        return len(self._inputs)

    @property
    def outputs(self) -> int:
        """Return the number of outputs."""
        return len(self._outputs)

    def _load(self, data: bytes, *, profiled: bool = False) -> tuple[int, dict[str, Any]]:
        try:
            number, facts = self._host.load(data, self._device, self._options, profiled=profiled)
        except OpenvinoError as error:
            raise self._error(error, ErrorCode.DelegateInvalidCompatibility) from None
        self._loaded.append(number)
        return number, facts

    def _error(self, error: Exception, code: ErrorCode = ErrorCode.InvalidArgument) -> Exception:
        found = DelegateError(code, str(error), partition=self.partition)
        found.remedy = _REMEDY
        return found

    # ---- running
    def run_into(
        self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]
    ) -> Sequence[Tensor] | None:
        """Run on the memory of tensors; return results that could not be written there, else None.

        Raises: DelegateError with the reason of the package
        """
        places = [(one.data_ptr(), one.shape) for one in inputs]
        places += [(one.data_ptr(), one.shape) for one in outputs]
        try:
            if places != self._places:
                if not self._host.direct or not self._fit(inputs, outputs):
                    return self.run(inputs)
                self._bind(inputs, outputs, places)
            self._host.infer(self._number)
        except OpenvinoError as error:
            raise self._error(error) from None
        return None

    def _bind(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], places: list[Any]) -> None:
        """Let the network read and write tensors from now on."""
        self._check(inputs)
        self._places = []
        given, written = ([_given(one) for one in side] for side in (inputs, outputs))
        self._host.bind(self._number, given, written)
        self._places = places

    def in_place(
        self, inputs: Sequence[TensorSlot], outputs: Sequence[TensorSlot]
    ) -> Callable[[], bool] | None:
        """Return a run on tensors whose sizes never change, None where it is not possible."""
        sides = ((inputs, self._inputs, "inputs"), (outputs, self._outputs, "outputs"))
        writable = not any(slot.read_only for slot in outputs)
        fixed = (
            self._host.direct
            and writable
            and all(
                slot.dynamism == TensorShapeDynamism.STATIC
                and slot.tensor.dtype is dtype
                and slot.tensor.is_contiguous()
                and list(slot.tensor.shape) == shape
                for slots, dtypes, name in sides
                for slot, dtype, (_, shape) in zip(slots, dtypes, self.facts[name], strict=True)
            )
        )
        if not fixed:
            return None
        own = [slot.tensor for slot in inputs], [slot.tensor for slot in outputs]
        addresses = [tensor.data_ptr for side in own for tensor in side]
        infer = self._host.runner(self._number)

        def run_by_package(places: Sequence[int]) -> None:
            if places != self._places:
                self._bind(*own, [*places])
            infer()

        run: Callable[[Sequence[int]], None] = run_by_package
        if not self._options and not self._has_state:
            direct = DirectRuns(self._data, self._device, own, run_by_package)
            self._direct.append(direct)
            run = direct.run

        def run_in_place() -> bool:
            places = [address() for address in addresses]
            try:
                run(places)
            except OpenvinoError as error:
                raise self._error(error) from None
            return True

        return run_in_place

    @property
    def _has_state(self) -> bool:
        """Return whether the network may keep values from one run to the next."""
        return self.graph is None or any(node.target in _STATE for node in self.graph.nodes)

    def _fit(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> bool:
        """Return whether the network can read and write tensors: layout, types, fixed shapes."""
        return all(one.is_contiguous() for one in inputs) and all(
            one.dtype is dtype and list(one.shape) == shape and one.is_contiguous()
            for one, dtype, (_, shape) in zip(
                outputs, self._outputs, self.facts["outputs"], strict=True
            )
        )

    def _check(self, inputs: Sequence[Tensor]) -> None:
        for index, (one, dtype) in enumerate(zip(inputs, self._inputs, strict=True)):
            if one.dtype is not dtype:
                reason = f"input {index} is {one.dtype}, the payload expects {dtype}"
                raise OpenvinoError(reason)

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run and return the results.

        Raises: DelegateError with the reason of the package
        """
        self._places = []
        return self._infer(self._number, inputs)

    def _infer(self, number: int, inputs: Sequence[Tensor]) -> list[Tensor]:
        try:
            self._check(inputs)
            self._host.bind(number, [_given(one) for one in inputs], None)
            self._host.infer(number)
            return _tensors(self._host.results(number), self._outputs)
        except OpenvinoError as error:
            raise self._error(error) from None

    def run_traced(self, inputs: Sequence[Tensor], tracer: DelegateTracer) -> list[Tensor]:
        """Run, log each layer with its kernel, and its value if values are logged."""
        if self._profiled is None:
            self._profiled, _ = self._load(self._data, profiled=True)
        started = clock()
        results = self._infer(self._profiled, inputs)
        for name, kind, kernel, micros in self._host.profile(self._profiled):
            end = started + round(micros * 1000)
            tracer.log(name, started, end, measured_by(f"{kind} {kernel}"))
            started = end
        if tracer.logs_values and self.graph is not None:
            self._log_values(self.probes().run(inputs), tracer)
        return results

    def _log_values(self, values: Mapping[str, Tensor], tracer: DelegateTracer) -> None:
        assert self.graph is not None
        for node in self.graph.nodes:
            own = [values[name] for name in node.outputs if name in values]
            if own:
                tracer.log_value(node.name, own[0] if len(own) == 1 else own)

    def probes(self) -> Probes:
        """Return the payload with all values as outputs.

        Raises: DelegateError for a payload that only its device can read
        """
        if self._probed is None:
            self._probed = self.with_given({})
        return self._probed

    def with_given(self, given: Mapping[str, Tensor]) -> Probes:
        """Return the payload with all values as outputs, some of them replaced.

        Values that the plugin does not accept as outputs are left out: where it fuses layers in
        bfloat16, an output between them makes it refuse its own network.
        """
        assert self.graph is not None
        try:
            stream = read_stream(memoryview(self._data))
            made = probed(stream, tuple(given))
        except FormatError as error:
            raise self._error(error, ErrorCode.NotSupported) from None
        try:
            number, facts = self._load(made.data)
        except DelegateError as refusal:
            values = _accepted(made.values, lambda few: self._loads(stream, tuple(given), few))
            if not values:
                raise refusal from None
            made = probed(stream, tuple(given), values)
            number, facts = self._load(made.data)
        return Probes(self, number, facts, (made.values, tuple(given.values())))

    def _loads(self, stream: Stream, replaced: tuple[str, ...], values: Sequence[str]) -> bool:
        try:
            number, _ = self._load(probed(stream, replaced, values).data)
        except DelegateError:
            return False
        self._host.free([number])
        self._loaded.remove(number)
        return True

    def free(self, probes: Probes) -> None:
        """Release a payload with probes."""
        self._host.free([probes.number])
        self._loaded.remove(probes.number)

    def infer_probes(self, number: int, inputs: Sequence[Tensor]) -> list[Given]:
        """Return all outputs of a payload with probes."""
        try:
            self._host.bind(number, [_given(one) for one in inputs], None)
            self._host.infer(number)
            return self._host.results(number)
        except OpenvinoError as error:
            raise self._error(error) from None

    def constant(self, name: str) -> Tensor:
        """Return a constant of the payload; of a type that torch lacks its bytes."""
        assert self.graph is not None
        value = self.graph.values[name]
        data = self._constants.get(value.constant or "")
        assert value.tensor is not None
        sizes = [size for size in value.tensor.sizes if isinstance(size, int)]
        if data is None or not len(data):
            return torch.empty(0)
        dtype = BY_CODE.get(value.tensor.scalar_type)
        known = dtype_named(dtype.name) if dtype is not None else None
        if known is None or len(data) != known.itemsize * numel(tuple(sizes)):
            return from_buffer(data, torch.uint8, len(data))
        return from_buffer(data, known, numel(tuple(sizes))).reshape(sizes)

    def close(self) -> None:
        """Release the networks."""
        for direct in self._direct:
            direct.close()
        if self._host.alive:
            self._host.free(self._loaded)
        self._loaded.clear()


class Probes:
    """A payload whose inner values are outputs.

    Args:
        engine: of the payload
        number: of the network
        facts: types of its ports
        content: names of the values, and the tensors of the inputs that were added
    """

    def __init__(
        self,
        engine: LayerEngine,
        number: int,
        facts: Mapping[str, Any],
        content: tuple[Sequence[str], Sequence[Tensor]],
    ) -> None:
        self.number = number
        self._engine = engine
        self._values, self._given = content
        self._dtypes = [_dtype(name) for name, _ in facts["outputs"]]
        self.outputs: list[Tensor] = []

    def run(self, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return the values of all computing layers by name; ``outputs`` has the results."""
        found = self._engine.infer_probes(self.number, (*inputs, *self._given))
        tensors = _tensors(found, self._dtypes)
        count = len(tensors) - len(self._values)
        self.outputs = tensors[:count]
        return dict(zip(self._values, tensors[count:], strict=True))


def _accepted(values: Sequence[str], loads: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return values that load together; tries about two sets for each halving of one refused."""
    kept: list[str] = []
    waiting = [list(values)]
    while waiting:
        few = waiting.pop()
        if loads([*kept, *few]):
            kept += few
        elif len(few) > 1:
            waiting += [few[len(few) // 2 :], few[: len(few) // 2]]
    return kept


def _dtype(name: str) -> torch.dtype:
    return _DTYPES.get(name, torch.uint8)


def _given(tensor: Tensor) -> Given:
    dense = tensor.detach().contiguous()
    flat: Any = dense.reshape(-1).view(torch.uint8)
    return flat.numpy(), tuple(tensor.shape)


def _tensors(found: Sequence[Given], dtypes: Sequence[torch.dtype]) -> list[Tensor]:
    return [_tensor(*one, dtype) for one, dtype in zip(found, dtypes, strict=True)]


def _tensor(data: Any, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:  # noqa: ANN401
    if not len(data):
        return torch.empty(shape, dtype=dtype)
    return from_buffer(data, dtype, len(data) // dtype.itemsize).reshape(shape)
