"""The backend of payloads that are graphs: one loop for all, a table of operators for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from typing_extensions import override

from runtime.backends.graph.engine import GraphEngine
from runtime.backends.graph.operation import OperatorTable
from runtime.backends.graph.stepping import GraphSteps
from runtime.delegates.interface import (
    BackendExecutionContext,
    BackendInitContext,
    BackendInterface,
    PartitionEngine,
)
from runtime.errors import invalid_argument
from schema import payloads
from schema.origins import ValueOrigin
from schema.payloads import Payload


class GraphBackend(BackendInterface):
    """Runs payloads node by node with torch; a record may stand in for those it refuses.

    Attributes:
        id: of the payloads
        table: their operators
    """

    payload_is_all = False
    id: ClassVar[str]
    table: ClassVar[OperatorTable]

    @override
    def init(
        self,
        context: BackendInitContext,
        processed: memoryview,
        compile_specs: Mapping[str, bytes],
    ) -> GraphEngine:
        """Return a payload whose operators are bound.

        Raises: DelegateError naming the operators that are not known
        """
        data = context.named_data
        named = {key: data.data(key) for key in data.keys()}  # noqa: SIM118 - no mapping
        specs = tuple(compile_specs.items())
        payload = payloads.decode(self.id, processed, named, specs)
        return self.engine(payload, context.partition)

    def engine(self, payload: Payload, partition: int) -> GraphEngine:
        """Return the engine of a payload.

        Raises: DelegateError naming the operators that are not known
        """
        return GraphEngine(payload, self.table, partition)

    @override
    def execute(
        self, context: BackendExecutionContext, handle: GraphEngine, args: Sequence[Any]
    ) -> None:
        """Run a payload on its arguments."""
        inputs = _inputs(handle, args)
        _store_all(handle, args, context, handle.run(inputs, context.tracer))

    @override
    def steps(
        self, context: BackendExecutionContext, handle: GraphEngine, args: Sequence[Any]
    ) -> GraphSteps:
        """Return a call to be run node by node."""
        store = partial(_store_all, handle, args, context)
        return GraphSteps(handle, _inputs(handle, args), store)

    @override
    def measurement(self, name: str, handle: GraphEngine) -> PartitionEngine:
        """Return that torch interprets the payload."""
        del handle
        return PartitionEngine(
            name, source=ValueOrigin.INTERPRETED.words, origin=ValueOrigin.INTERPRETED
        )


def _inputs(engine: GraphEngine, args: Sequence[Any]) -> Sequence[Any]:
    inputs, outputs = len(engine.graph.inputs), len(engine.graph.outputs)
    if len(args) != inputs + outputs:
        raise invalid_argument(
            f"the delegate call has {len(args)} arguments; the payload has {inputs} inputs and "
            f"{outputs} outputs"
        )
    return args[:inputs]


def _store_all(
    engine: GraphEngine,
    args: Sequence[Any],
    context: BackendExecutionContext,
    results: Sequence[Any],
) -> None:
    for argument, result in zip(args[len(engine.graph.inputs) :], results, strict=True):
        if not isinstance(argument, torch.Tensor):
            continue  # a size that the program knows without the delegate
        tensor = torch.as_tensor(result).to(argument.dtype)
        same = tensor.dim() == argument.dim() or tensor.numel() != argument.numel()
        context.store(argument, tensor if same else tensor.reshape(argument.shape))
