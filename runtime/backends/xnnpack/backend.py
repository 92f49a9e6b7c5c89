"""The XNNPACK backend: payloads run by torch's kernels, or by the real ones where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from typing_extensions import override

from runtime.backends.xnnpack.engine import Engine, Measured
from runtime.backends.xnnpack.engine_choice import NATIVE, TORCH, engine_of
from runtime.backends.xnnpack.model import Plan, Value
from runtime.backends.xnnpack.plan_reader import Names, read_plan
from runtime.backends.xnnpack.representation import STORED
from runtime.backends.xnnpack.stepping import PartitionSteps
from runtime.delegates.interface import (
    BackendExecutionContext,
    BackendInitContext,
    BackendInterface,
    Measurement,
)
from runtime.errors import invalid_argument

_DTYPES = STORED
_IN_ORDER = tuple(range(16))  # more dimensions than any payload has


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition, ready to run.

    Attributes:
        plan: the checked payload
        engine: what runs it
        note: why it is not the engine that was preferred, empty when it is
    """

    plan: Plan
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
    ) -> Partition:
        """Return a partition whose weights are unpacked.

        Raises: PartitionError naming partition and node
        """
        del compile_specs
        plan = read_plan(processed, Names(context.named_data), context.partition)
        engine, note = engine_of(plan, context.engine)
        return Partition(plan, engine, note)

    @override
    def execute(
        self, context: BackendExecutionContext, handle: Partition, args: Sequence[Any]
    ) -> None:
        """Run a partition on its arguments."""
        inputs = [_given(value, args, context) for value in handle.plan.inputs]
        results = handle.engine.run(inputs, context.tracer)
        _store_all(handle.plan, args, context, results)

    @override
    def steps(
        self, context: BackendExecutionContext, handle: Partition, args: Sequence[Any]
    ) -> PartitionSteps:
        """Return a call of a partition to be run node by node."""
        inputs = [_given(value, args, context) for value in handle.plan.inputs]
        store = partial(_store_all, handle.plan, args, context)
        return PartitionSteps(handle.engine, inputs, store)

    @override
    def measurement(self, name: str, handle: Partition) -> Measurement:
        """Return what runs a partition."""
        engine = handle.engine
        word = TORCH if engine.measured is Measured.HOST else NATIVE
        return Measurement(name, word, engine.measured.value, handle.note)

    @override
    def destroy(self, handle: Partition) -> None:
        """Let go of a partition."""
        handle.engine.close()


def _store_all(
    plan: Plan, args: Sequence[Any], context: BackendExecutionContext, results: list[torch.Tensor]
) -> None:
    for value, result in zip(plan.outputs, results, strict=True):
        _store(value, result, args, context)


def _argument(value: Value, args: Sequence[Any]) -> torch.Tensor:
    place = value.argument
    if place is None or place >= len(args) or not isinstance(args[place], torch.Tensor):
        raise invalid_argument(f"argument {place} of the delegate call is no tensor")
    return args[place]


def _given(value: Value, args: Sequence[Any], context: BackendExecutionContext) -> torch.Tensor:
    argument = _argument(value, args)
    wanted = _DTYPES[value.datatype]
    if argument.dtype is not wanted:
        raise invalid_argument(
            f"argument {value.argument} of the delegate call is {argument.dtype}, the payload "
            f"was made for {wanted}"
        )
    order = context.dim_order(argument)
    return argument if order == _IN_ORDER[: len(order)] else argument.permute(order)


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
    if order != _IN_ORDER[: len(order)]:
        result = result.permute(sorted(range(len(order)), key=order.__getitem__))
    context.store(argument, result)
