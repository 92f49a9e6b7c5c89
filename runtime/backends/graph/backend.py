"""The backend of payloads that are graphs: one loop for all, a table of operators for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations, islice
from math import comb
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
from schema.graph import GraphValue
from schema.origins import ValueOrigin
from schema.payloads import Payload

_MOST_WAYS = 1000  # of choosing arguments; compilers drop one or two
_MORE = (
    "its compiler returns a value that the call does not declare there, such as the new content of"
    " a state"
)


class GraphBackend(BackendInterface):
    """Runs payloads node by node with torch; a record may stand in for those it refuses.

    Attributes:
        id: of the payloads
        table: their operators
        in_memory_order: whether inputs and results have the sizes of memory, outermost first
        state_option: how to compile so that payloads keep the state that they write
    """

    payload_is_all = False
    id: ClassVar[str]
    table: ClassVar[OperatorTable]
    in_memory_order: ClassVar[bool] = False
    state_option: ClassVar[str] = ""

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
        inputs, results = self._divided(handle, args, context)
        first = len(args) - len(results)
        self._store_all(results, context, first, handle.run(inputs, context.tracer))

    @override
    def steps(
        self, context: BackendExecutionContext, handle: GraphEngine, args: Sequence[Any]
    ) -> GraphSteps:
        """Return a call to be run node by node."""
        inputs, results = self._divided(handle, args, context)
        first = len(args) - len(results)
        return GraphSteps(handle, inputs, partial(self._store_all, results, context, first))

    @override
    def reset_state(self, handle: GraphEngine) -> None:
        """Put the state of a payload back to that of its load."""
        handle.reset_state()

    def measurement(self, name: str, handle: GraphEngine) -> PartitionEngine:
        """Return that torch interprets the payload."""
        del handle
        return PartitionEngine(
            name, source=ValueOrigin.INTERPRETED.words, origin=ValueOrigin.INTERPRETED
        )

    def _divided(
        self, engine: GraphEngine, args: Sequence[Any], context: BackendExecutionContext
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the arguments that the payload reads, and those it writes.

        A compiler may drop inputs whose elements no node reads, as of `zeros_like`.

        Raises: InvalidArgumentError where it is not clear which arguments are read
        """
        graph = engine.graph
        count = len(args) - len(graph.outputs)
        given, results = args[: max(count, 0)], args[max(count, 0) :]
        if self.in_memory_order:
            given = [
                _permuted(one, context.dim_order(one)) if isinstance(one, torch.Tensor) else one
                for one in given
            ]
        if count == len(graph.inputs):
            return given, results
        ways = _ways([graph.values[name] for name in graph.inputs], given)
        if len(ways) != 1:
            more = count < len(graph.inputs)
            raise invalid_argument(
                f"the delegate call has {len(args)} arguments; the payload has "
                f"{len(graph.inputs)} inputs and {len(graph.outputs)} outputs"
                + (f": {_MORE}{self.state_option}" if more else "")
            )
        return [given[place] for place in ways[0]], results

    def _store_all(
        self,
        arguments: Sequence[Any],
        context: BackendExecutionContext,
        first: int,
        results: Sequence[Any],
    ) -> None:
        for place, (argument, result) in enumerate(zip(arguments, results, strict=True), first):
            if not isinstance(argument, torch.Tensor):
                if isinstance(result, int | float):  # a size
                    context.store_number(place, result)
                continue
            tensor = torch.as_tensor(result).to(argument.dtype)
            if self.in_memory_order:
                order = context.dim_order(argument)
                tensor = _permuted(tensor, sorted(range(len(order)), key=order.__getitem__))
            same = tensor.dim() == argument.dim()
            if not same and tensor.numel() != argument.numel():
                raise _other_results(arguments, results, self.state_option)
            context.store(argument, tensor if same else tensor.reshape(argument.shape))


def _other_results(arguments: Sequence[Any], results: Sequence[Any], option: str) -> Exception:
    """Return the error of a payload whose results are not those of its call."""
    theirs, ours = (
        ", ".join(str(list(getattr(one, "shape", ()))) for one in side)
        for side in (results, arguments)
    )
    return invalid_argument(
        f"the results of the payload are {theirs}, those of its call {ours}: {_MORE}{option}"
    )


def _permuted(value: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """Return a tensor of as many dimensions in another order of them, others as they are."""
    if list(order) == list(range(len(order))) or value.dim() != len(order):
        return value
    return value.permute(tuple(order))


def _ways(inputs: Sequence[GraphValue], given: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the choices of arguments that have the sizes of the inputs; at most two."""
    if len(inputs) > len(given) or comb(len(given), len(inputs)) > _MOST_WAYS:
        return []
    found = (
        places
        for places in combinations(range(len(given)), len(inputs))
        if all(_fits(one, given[place]) for one, place in zip(inputs, places, strict=True))
    )
    return list(islice(found, 2))


def _fits(value: GraphValue, given: Any) -> bool:  # noqa: ANN401 - an argument
    if value.tensor is None or not isinstance(given, torch.Tensor):
        return value.tensor is None and not isinstance(given, torch.Tensor)
    return tuple(value.tensor.sizes) == tuple(given.shape)
