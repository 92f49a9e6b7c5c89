"""The engine that runs payloads with torch's kernels; it is always available."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.backends.xnnpack import representation
from runtime.backends.xnnpack.binders import BINDERS
from runtime.backends.xnnpack.engine import Engine, TimeSource, at_node
from runtime.backends.xnnpack.layouts import DimLayouts
from runtime.backends.xnnpack.model import WEIGHT_ONLY, PartitionPlan, PayloadNode, Value
from runtime.backends.xnnpack.node_calls import NodeCall
from runtime.delegates.interface import DelegateTracer
from schema.payloads.identity import node_identity

Tensor = torch.Tensor


class TorchEngine(Engine):
    """Runs a partition node by node over registers, one for each value.

    Args:
        plan: the checked payload

    Raises: DelegateError for a node that cannot be bound
    """

    time_source = TimeSource.HOST

    def __init__(self, plan: PartitionPlan) -> None:
        self.plan = plan
        self._layouts = DimLayouts(plan)
        self._places = {ident: place for place, ident in enumerate(plan.values)}
        self._fixed: list[Any] = [_fixed(value) for value in plan.values.values()]
        self._held: list[Any] = list(self._fixed)
        bound = [self._bind(node) for node in plan.nodes]
        self._calls = [
            _call(self._held, one, node, self._places)
            for one, node in zip(bound, plan.nodes, strict=True)
        ]
        self._dropped = self._last_uses(bound)
        self._steps = list(zip(self._calls, self._dropped, strict=True))

    def _bind(self, node: PayloadNode) -> NodeCall:
        try:
            return BINDERS[node.kind](node, self.plan.values)
        except Exception as error:
            raise at_node(error, node, self.plan.partition, loading=True) from error

    def _last_uses(self, bound: Sequence[NodeCall]) -> list[tuple[int, ...]]:
        """Return the registers without a later use, for each node."""
        last: dict[int, int] = {}
        for index, (node, one) in enumerate(zip(self.plan.nodes, bound, strict=True)):
            for ident in (*one.reads, *node.outputs):
                last[ident] = index
        dropped: list[list[int]] = [[] for _ in bound]
        for ident, index in last.items():
            value = self.plan.values[ident]
            if value.data is None and not value.is_output:
                dropped[index].append(self._places[ident])
        return [tuple(places) for places in dropped]

    def run(self, inputs: Sequence[Tensor], tracer: DelegateTracer) -> list[Tensor]:
        """Run all nodes and return the results."""
        self.begin(inputs)
        if tracer.records:
            self._run_traced(tracer)
        else:
            self._run_plain()
        return self._results()

    def _run_plain(self) -> None:
        held, index = self._held, 0
        try:
            for call, dropped in self._steps:
                call()
                for place in dropped:
                    held[place] = None
                index += 1
        except Exception as error:
            raise at_node(error, self.plan.nodes[index], self.plan.partition) from error

    def _run_traced(self, tracer: DelegateTracer) -> None:
        note = self.time_source.value.encode()
        for node in self.plan.nodes:
            started = tracer.start()
            self.run_node(node.index)
            tracer.end(node_identity(node.index), started, note)
            if tracer.logs_values:
                for ident in node.outputs:
                    value = self._layouts.logical(ident, self.value(ident))
                    tracer.log_value(node_identity(node.index), value)
            for place in self._dropped[node.index]:
                self._held[place] = None

    def begin(self, inputs: Sequence[Tensor]) -> None:
        """Set the inputs."""
        self._held[:] = self._fixed
        for value, given in zip(self.plan.inputs, inputs, strict=True):
            self._held[self._places[value.ident]] = representation.held(value, given)

    def run_node(self, index: int) -> None:
        """Run one node."""
        try:
            self._calls[index]()
        except Exception as error:
            raise at_node(error, self.plan.nodes[index], self.plan.partition) from error

    def value(self, ident: int) -> Tensor:
        """Return a value in its stored dtype and memory order."""
        value = self.plan.values[ident]
        carried = self._held[self._places[ident]]
        if carried is not None:
            return representation.to_stored(value, carried)
        if value.data is None:
            raise self._missing(value)
        return representation.stored_constant(value)

    def replace(self, ident: int, tensor: Tensor) -> None:
        """Replace the content of a value."""
        value = self.plan.values[ident]
        self._held[self._places[ident]] = representation.held(value, tensor.clone())

    def _results(self) -> list[Tensor]:
        return [
            representation.to_stored(value, self._held[self._places[value.ident]])
            for value in self.plan.outputs
        ]


def _fixed(value: Value) -> Tensor | None:
    """Return a constant in the held representation; packed weights are in the calls instead."""
    return (
        None
        if value.data is None or value.datatype in WEIGHT_ONLY
        else representation.constant(value)
    )


def _call(
    held: list[Any], bound: NodeCall, node: PayloadNode, places: dict[int, int]
) -> Callable[[], None]:
    run = bound.run
    reads = [places[ident] for ident in bound.reads]
    targets = [places[ident] for ident in node.outputs]
    if len(targets) > 1:

        def several() -> None:
            built = run(*[held[place] for place in reads])
            for place, one in zip(targets, built, strict=True):
                held[place] = one

        return several
    target = targets[0]
    if len(reads) == 1:
        source = reads[0]

        def one() -> None:
            held[target] = run(held[source])

        return one

    def many() -> None:
        held[target] = run(*[held[place] for place in reads])

    return many
