"""The XNNPACK backend: runs payloads with torch's kernels, or with the native ones if available."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from typing_extensions import override

from runtime.backends.xnnpack.engine import Engine, TimeSource
from runtime.backends.xnnpack.engine_choice import NATIVE, TORCH, engine_of
from runtime.backends.xnnpack.model import PartitionPlan, Value
from runtime.backends.xnnpack.native.detect import availability
from runtime.backends.xnnpack.plan_reader import NamedBlobs, read_plan
from runtime.backends.xnnpack.representation import STORED
from runtime.backends.xnnpack.stepping import PartitionSteps
from runtime.backends.xnnpack.trial_load import try_native, try_torch
from runtime.delegates.errors import LOADING, DelegateError, LoadFailure
from runtime.delegates.interface import (
    BackendExecutionContext,
    BackendInitContext,
    BackendInterface,
    BoundCall,
    PartitionEngine,
)
from runtime.errors import ErrorCode, ExecutionError, invalid_argument
from runtime.memory.slots import TensorSlot
from runtime.program.named_data import NamedDataMap
from schema.errors import FormatError
from schema.origins import ValueOrigin

_DTYPES = STORED
_CONTIGUOUS = tuple(range(16))  # more dimensions than any payload has


@dataclass(frozen=True, slots=True)
class XnnpackPartition:
    """A loaded partition.

    Attributes:
        plan: the checked payload
        engine: runs it
        note: why it is not the preferred engine, empty when it is
    """

    plan: PartitionPlan
    engine: Engine
    note: str = ""


class XnnpackBackend(BackendInterface):
    """Runs XNNPACK payloads."""

    @override
    def init(
        self,
        context: BackendInitContext,
        processed: memoryview,
        compile_specs: Mapping[str, bytes],
    ) -> XnnpackPartition:
        """Return a partition whose weights are unpacked.

        Raises: DelegateError naming partition and node
        """
        del compile_specs
        plan = read_plan(processed, NamedBlobs(context.named_data), context.partition)
        engine, note = engine_of(plan, context.engine, isolate=context.isolate)
        return XnnpackPartition(plan, engine, note)

    @override
    def execute(
        self, context: BackendExecutionContext, handle: XnnpackPartition, args: Sequence[Any]
    ) -> None:
        """Run a partition on its arguments."""
        inputs = [_input(value, args, context) for value in handle.plan.inputs]
        results = handle.engine.run(inputs, context.tracer)
        _store_all(handle.plan, args, context, results)

    @override
    def bound(
        self, handle: XnnpackPartition, args: Sequence[TensorSlot | None]
    ) -> BoundCall | None:
        """Return a call of a partition on tensors that never change, None where it has none."""
        ends: list[list[tuple[Value, TensorSlot]]] = []
        for values in (handle.plan.inputs, handle.plan.outputs):
            places = [value.argument for value in values]
            slots = [args[at] if at is not None and at < len(args) else None for at in places]
            ends.append([(v, slot) for v, slot in zip(values, slots, strict=True) if slot])
            if len(ends[-1]) != len(values):
                return None
        return handle.engine.bound(*ends)

    @override
    def written(self, handle: XnnpackPartition) -> frozenset[int]:
        """Return the indices of the results."""
        places = [value.argument for value in handle.plan.outputs]
        return frozenset(place for place in places if place is not None)

    @override
    def steps(
        self, context: BackendExecutionContext, handle: XnnpackPartition, args: Sequence[Any]
    ) -> PartitionSteps:
        """Return a call of a partition to be run node by node."""
        inputs = [_input(value, args, context) for value in handle.plan.inputs]
        store = partial(_store_all, handle.plan, args, context)
        return PartitionSteps(handle.engine, inputs, store)

    @override
    def measurement(self, name: str, handle: XnnpackPartition) -> PartitionEngine:
        """Return the engine of a partition."""
        engine = handle.engine
        is_torch = engine.time_source is TimeSource.HOST
        kind, origin = (
            (TORCH, ValueOrigin.INTERPRETED) if is_torch else (NATIVE, ValueOrigin.MEASURED)
        )
        return PartitionEngine(name, kind, engine.time_source.value, handle.note, origin)

    @override
    def destroy(self, handle: XnnpackPartition) -> None:
        """Free a partition."""
        handle.engine.close()

    @override
    def trial_engine(self) -> str:
        """Return name and release of the native kernels, empty if they are not available."""
        release = availability().release
        return f"the real kernels of {release}" if release else ""

    @override
    def try_load(
        self, processed: memoryview, named_data: NamedDataMap, partition: int
    ) -> LoadFailure | None:
        """Load a partition on the real kernels, or on torch's where those are not available."""
        try:
            plan = read_plan(processed, NamedBlobs(named_data), partition)
        except ExecutionError as error:
            return LoadFailure(LOADING, (error,))
        except FormatError as error:
            code = ErrorCode.DelegateInvalidCompatibility
            unreadable = DelegateError(code, str(error), partition=partition)
            return LoadFailure(LOADING, (unreadable,))
        return try_torch(plan) if availability().folder is None else try_native(plan)


def _store_all(
    plan: PartitionPlan,
    args: Sequence[Any],
    context: BackendExecutionContext,
    results: list[torch.Tensor],
) -> None:
    for value, result in zip(plan.outputs, results, strict=True):
        _store(value, result, args, context)


def _argument(value: Value, args: Sequence[Any]) -> torch.Tensor:
    place = value.argument
    if place is None or place >= len(args) or not isinstance(args[place], torch.Tensor):
        raise invalid_argument(f"argument {place} of the delegate call is not a tensor")
    return args[place]


def _input(value: Value, args: Sequence[Any], context: BackendExecutionContext) -> torch.Tensor:
    argument = _argument(value, args)
    requested = _DTYPES[value.datatype]
    if argument.dtype is not requested:
        raise invalid_argument(
            f"argument {value.argument} of the delegate call is {argument.dtype}, the payload "
            f"expects {requested}"
        )
    order = context.dim_order(argument)
    return argument if order == _CONTIGUOUS[: len(order)] else argument.permute(order)


def _store(
    value: Value, result: torch.Tensor, args: Sequence[Any], context: BackendExecutionContext
) -> None:
    argument = _argument(value, args)
    order = context.dim_order(argument)
    if len(order) != result.dim():
        raise invalid_argument(
            f"argument {value.argument} of the delegate call has {len(order)} dimensions, the "
            f"result has {result.dim()}"
        )
    if order != _CONTIGUOUS[: len(order)]:
        result = result.permute(sorted(range(len(order)), key=order.__getitem__))
    context.store(argument, result)
