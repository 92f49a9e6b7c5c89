"""The real kernels node by node: a runtime for each node, all over the same values."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from runtime.backends.xnnpack import representation
from runtime.backends.xnnpack.engine import Engine, Measured, at_node
from runtime.backends.xnnpack.errors import PartitionError
from runtime.backends.xnnpack.layouts import Orders
from runtime.backends.xnnpack.model import Datatype, Node, Plan, Value
from runtime.backends.xnnpack.native.constants import ConstantStore
from runtime.backends.xnnpack.native.process import Kernels, RefusedError
from runtime.backends.xnnpack.native.shared_values import INPUT, OUTPUT, KernelRuntime, SharedValues
from runtime.delegates.interface import DelegateTracer
from runtime.errors import ErrorCode, ExecutionError
from runtime.memory.slots import fill
from schema.payloads.xnnpack.identity import node_identity

Tensor = torch.Tensor


class StepEngine(Engine):
    """Runs the nodes of a partition one by one on the real kernels.

    Rows that are quantised as they arrive exist only inside of the kernel that multiplies them:
    their conversion is run, and its time counted, together with that node.

    Args:
        plan: the checked payload
        process: where the kernels run
        store: the constants of the partition
        refused: takes the refusals of all nodes, which are left out then, instead of the first
            being raised

    Raises: PartitionError naming the first node that the library refuses, or ends with
    """

    measured = Measured.STEPS

    def __init__(
        self,
        plan: Plan,
        process: Kernels,
        store: ConstantStore,
        refused: list[PartitionError] | None = None,
    ) -> None:
        self.plan = plan
        self._orders = Orders(plan)
        self._process = process
        self._shared = SharedValues(process)
        self._made: set[int] = set()
        self._makers = {ident: node for node in plan.nodes for ident in node.outputs}
        self._runtimes: dict[int, KernelRuntime] = {}
        for node in plan.nodes:
            if self._is_hidden(node.outputs[0]):
                continue
            try:
                self._runtimes[node.index] = self._runtime(node, store)
            except PartitionError as error:
                if refused is None or not process.alive:
                    raise
                refused.append(error)

    def _is_hidden(self, ident: int) -> bool:
        return self.plan.values[ident].datatype == Datatype.QDINT8

    def _runtime(self, node: Node, store: ConstantStore) -> KernelRuntime:
        before = [self._makers[ident] for ident in node.read if self._is_hidden(ident)]
        nodes = [*before, node]
        values = self.plan.values
        reads = dict.fromkeys(
            ident
            for one in nodes
            for ident in one.read
            if values[ident].data is None and not self._is_hidden(ident)
        )
        sides = {**dict.fromkeys(reads, INPUT), **dict.fromkeys(node.outputs, OUTPUT)}
        ends = {ident: (number, side) for number, (ident, side) in enumerate(sides.items())}
        try:
            return KernelRuntime(self._process, self.plan, nodes, ends, store)
        except ExecutionError as error:
            raise at_node(error, node, self.plan.partition) from None

    def run(self, inputs: Sequence[Tensor], tracer: DelegateTracer) -> list[Tensor]:
        """Run all nodes and return the results."""
        note = self.measured.value.encode()
        self.begin(inputs)
        for node in self.plan.nodes:
            span = self._run(node)
            if span is not None:
                tracer.log(node_identity(node.index), *span, note)
            if tracer.logs_values:
                for ident in node.outputs:
                    value = self._orders.logical(ident, self.value(ident))
                    tracer.log_value(node_identity(node.index), value)
        return [self._shared.held[value.ident].tensor for value in self.plan.outputs]

    def begin(self, inputs: Sequence[Tensor]) -> None:
        """Set the inputs."""
        shapes = [tuple(given.shape) for given in inputs]
        self._shared.reserve(zip(self.plan.inputs, shapes, strict=True))
        self._made = {value.ident for value in self.plan.inputs}
        for value, given in zip(self.plan.inputs, inputs, strict=True):
            fill(self._shared.held[value.ident].tensor, given)

    def run_node(self, index: int) -> None:
        """Run one node."""
        self._run(self.plan.nodes[index])

    def _run(self, node: Node) -> tuple[int, int] | None:
        """Run a node; return start and end, None where it runs inside of a later one."""
        runtime = self._runtimes.get(node.index)
        self._made.update(node.outputs)
        if runtime is None:
            return None
        try:
            runtime.prepare_held(self._shared)
            answer = runtime.invoke()
        except RefusedError as error:
            raise at_node(error, node, self.plan.partition) from None
        return int(answer["start"]), int(answer["end"])

    def value(self, ident: int) -> Tensor:
        """Return what a value holds; hidden rows are quantised anew."""
        value = self.plan.values[ident]
        if value.data is not None:
            return representation.stored_constant(value)
        if ident not in self._made:
            raise self._missing(value)
        if self._is_hidden(ident):
            return self._rows(value)
        return self._shared.held[ident].tensor.clone()

    def _rows(self, value: Value) -> Tensor:
        source = self.plan.values[self._makers[value.ident].inputs[0]]
        settled = representation.settle(value)
        assert settled is not None
        return settled(
            representation.real(source, representation.held(source, self.value(source.ident)))
        )

    def replace(self, ident: int, tensor: Tensor) -> None:
        """Let a value hold something else.

        Raises: PartitionError for rows that exist only inside of a kernel
        """
        if self._is_hidden(ident):
            raise PartitionError(
                ErrorCode.NotSupported,
                f"value {ident} exists only inside of the kernel that reads it; replace value "
                f"{self._makers[ident].inputs[0]}, of which it is made",
                partition=self.plan.partition,
            )
        self._shared.reserve([(self.plan.values[ident], tuple(tensor.shape))])
        fill(self._shared.held[ident].tensor, tensor)
        self._made.add(ident)

    def close(self) -> None:
        """Let go of the runtimes and of the values."""
        for runtime in self._runtimes.values():
            runtime.close()
        self._shared.close()


def blamed(error: RefusedError, plan: Plan, index: int | None) -> PartitionError:
    """Return a refusal with its place, as far as it is known."""
    for node in plan.nodes:
        if node.index == index:
            return at_node(error, node, plan.partition)
    return PartitionError(error.code, error.reason, partition=plan.partition)
