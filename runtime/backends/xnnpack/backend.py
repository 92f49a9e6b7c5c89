"""The XNNPACK backend: payloads run by torch's kernels, or by the real ones where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from typing_extensions import override

from runtime.backends.xnnpack.carriers import STORED
from runtime.backends.xnnpack.engine import Engine
from runtime.backends.xnnpack.engines import engine_of
from runtime.backends.xnnpack.model import Plan, Value
from runtime.backends.xnnpack.reading import Names, read_plan
from runtime.delegates import BackendExecutionContext, BackendInitContext, BackendInterface
from runtime.errors import invalid_argument

_DTYPES = STORED


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition, ready to run.

    Attributes:
        plan: the checked payload
        engine: what runs it
    """

    plan: Plan
    engine: Engine


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
        return Partition(plan, engine_of(plan, context.engine))

    @override
    def execute(
        self, context: BackendExecutionContext, handle: Partition, args: Sequence[Any]
    ) -> None:
        """Run a partition on its arguments."""
        plan = handle.plan
        inputs = [_given(value, args, context) for value in plan.inputs]
        results = handle.engine.run(inputs, context.tracer)
        for value, result in zip(plan.outputs, results, strict=True):
            _store(value, result, args, context)

    @override
    def destroy(self, handle: Partition) -> None:
        """Let go of a partition."""
        handle.engine.close()


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
    return argument.permute(context.dim_order(argument))


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
    places = sorted(range(len(order)), key=order.__getitem__)
    context.store(argument, result.permute(places))
