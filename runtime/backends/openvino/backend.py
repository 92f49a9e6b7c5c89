"""The backend of OpenVINO: imports the payload and runs it, as the stock delegate does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from typing_extensions import override

from runtime.backends.openvino.detect import Host, HostPool, host
from runtime.backends.openvino.engine import LayerEngine
from runtime.backends.openvino.host import OpenvinoError
from runtime.backends.openvino.stepping import LayerSteps
from runtime.delegates.errors import DelegateError
from runtime.delegates.interface import (
    BackendExecutionContext,
    BackendInitContext,
    BackendInterface,
    BoundCall,
    DelegateTracer,
    PartitionEngine,
)
from runtime.errors import ErrorCode, invalid_argument
from runtime.memory.slots import TensorSlot
from schema import payloads
from schema.objects.plural import plural
from schema.origins import ValueOrigin

_OPTIONS = {"precision": "INFERENCE_PRECISION_HINT", "threads": "INFERENCE_NUM_THREADS"}
_DEVICE = "device"


class OpenvinoBackend(BackendInterface):
    """Runs payloads on OpenVINO; a record may stand in where it is not installed."""

    payload_is_all = False

    def __init__(self) -> None:
        self._options: Mapping[str, str] = {}

    @override
    def set_options(self, options: Mapping[str, str]) -> None:
        """Set device, precision and threads of the payloads that are loaded from now on.

        Any other name is a property of the plugin. The package is imported into this process, for
        what is not loaded yet.
        """
        self._options = dict(options)
        if not HostPool.here:
            HostPool.here, HostPool.host = True, None

    @override
    def init(
        self,
        context: BackendInitContext,
        processed: memoryview,
        compile_specs: Mapping[str, bytes],
    ) -> LayerEngine:
        """Return an imported payload.

        Raises: DelegateError where the package is missing, or with its reason; InvalidArgument if
            it is the options that it refuses
        """
        specs = tuple(compile_specs.items())
        payload = payloads.decode("OpenvinoBackend", processed, {}, specs)
        named = compile_specs.get(_DEVICE, b"CPU").decode("utf-8", "replace")
        device = self._options.get(_DEVICE) or named or "CPU"
        given = {
            _OPTIONS.get(name, name): value
            for name, value in self._options.items()
            if name != _DEVICE
        }
        try:
            own = host()
        except OpenvinoError as error:
            code = ErrorCode.DelegateInvalidCompatibility
            found = DelegateError(code, str(error), partition=context.partition)
            found.remedy = "Install the package, or give the ETRecord, whose graph then stands in."
            raise found from None
        blob = bytes(processed)
        try:
            return LayerEngine(payload, blob, own, device, given, context.partition)
        except DelegateError as error:
            if self._options and _loads(own, blob, named or "CPU"):
                raise self._unusable(error, context.partition) from None
            raise

    def _unusable(self, error: DelegateError, partition: int) -> DelegateError:
        """Return that options are at fault: a record must not stand in for a requested setting."""
        asked = ", ".join(f"{name}={value}" for name, value in self._options.items())
        reason = f"{error.why.rstrip('.')}; without the options {asked} it loads"
        remedy = "Give options that this machine has."
        return DelegateError(ErrorCode.InvalidArgument, reason, partition=partition, remedy=remedy)

    @override
    def execute(
        self, context: BackendExecutionContext, handle: LayerEngine, args: Sequence[Any]
    ) -> None:
        """Run a payload on its arguments."""
        inputs, outputs = _sides(handle, args)
        if context.tracer.records:
            _store(handle, context, outputs, handle.run_traced(inputs, context.tracer))
            return
        results = handle.run_into(inputs, outputs)
        if results is not None:
            _store(handle, context, outputs, results)

    @override
    def bound(self, handle: LayerEngine, args: Sequence[TensorSlot | None]) -> BoundCall | None:
        """Return a call of a payload on tensors that never change, None where it has none."""
        slots = [slot for slot in args if slot is not None]
        if len(args) != handle.inputs + handle.outputs or len(slots) != len(args):
            return None
        run = handle.in_place(slots[: handle.inputs], slots[handle.inputs :])
        return None if run is None else BoundCall(_not_run, run)

    @override
    def steps(
        self, context: BackendExecutionContext, handle: LayerEngine, args: Sequence[Any]
    ) -> LayerSteps | None:
        """Return a call to be run layer by layer, None for a payload that cannot be read."""
        if handle.graph is None:
            return None
        inputs, outputs = _sides(handle, args)
        return LayerSteps(handle, handle.graph, inputs, partial(_store, handle, context, outputs))

    @override
    def measurement(self, name: str, handle: LayerEngine) -> PartitionEngine:
        """Return that the payload is measured, with release, device and precision."""
        return PartitionEngine(
            name,
            handle.words,
            ValueOrigin.MEASURED.words,
            origin=ValueOrigin.MEASURED,
        )

    @override
    def destroy(self, handle: LayerEngine) -> None:
        """Free a payload."""
        handle.close()


def _loads(own: Host, blob: bytes, device: str) -> bool:
    """Return whether a payload loads without any options."""
    try:
        number, _ = own.load(blob, device, {})
    except OpenvinoError:
        return False
    own.free([number])
    return True


def _not_run(_tracer: DelegateTracer) -> bool:
    """Return that a call with a tracer has not run: it is a network of its own, with counters."""
    return False


def _sides(
    engine: LayerEngine, args: Sequence[Any]
) -> tuple[Sequence[torch.Tensor], Sequence[torch.Tensor]]:
    tensors = args
    if len(args) != engine.inputs + engine.outputs:  # sizes that the program knows are no inputs
        tensors = [one for one in args if isinstance(one, torch.Tensor)]
    if len(tensors) != engine.inputs + engine.outputs:
        raise invalid_argument(
            f"the delegate call has {plural(len(tensors), 'tensor')}; the payload has"
            f" {engine.inputs} inputs and {engine.outputs} outputs"
        )
    return tensors[: engine.inputs], tensors[engine.inputs :]


def _store(
    engine: LayerEngine,
    context: BackendExecutionContext,
    outputs: Sequence[torch.Tensor],
    results: Sequence[torch.Tensor],
) -> None:
    for index, (argument, result) in enumerate(zip(outputs, results, strict=True)):
        if result.dtype is not argument.dtype:
            raise _other_type(engine.partition, index, result.dtype, argument.dtype)
        same = result.dim() == argument.dim() or result.numel() != argument.numel()
        context.store(argument, result if same else result.reshape(argument.shape))


def _other_type(
    partition: int, index: int, found: torch.dtype, expected: torch.dtype
) -> DelegateError:
    """Return that a result has another type than the program, which the stock runtime refuses."""
    reason = (
        f"the network returns result {index} as {found}, the program has {expected} there; the"
        " stock runtime refuses the call as well (0x1)"
    )
    return DelegateError(ErrorCode.Internal, reason, partition=partition)
