"""The real kernels node by node: a runtime for each node over the same values."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from runtime.backends.xnnpack import representation
from runtime.backends.xnnpack.engine import Engine, TimeSource, at_node
from runtime.backends.xnnpack.layouts import DimLayouts
from runtime.backends.xnnpack.model import Datatype, PartitionPlan, PayloadNode, Value
from runtime.backends.xnnpack.native.constants import ConstantStore
from runtime.backends.xnnpack.native.process import Kernels, LibraryRefusedError
from runtime.backends.xnnpack.native.shared_values import INPUT, OUTPUT, KernelRuntime, SharedValues
from runtime.delegates.errors import DelegateError
from runtime.delegates.interface import DelegateTracer
from runtime.errors import ErrorCode, ExecutionError
from runtime.memory.slots import fill
from schema.payloads.identity import node_identity

Tensor = torch.Tensor


class StepEngine(Engine):
    """Runs the nodes of a partition one by one on the real kernels.

    Dynamically quantized rows exist only inside of the kernel that multiplies them: their
    conversion is run, and timed, together with that node.

    Args:
        plan: the checked payload
        process: the kernels
        store: the constants of the partition
        refused: collects the errors of all refused nodes, which are then skipped; None raises the
            first error instead

    Raises: DelegateError naming the first node that the library refuses, or that crashes it
    """

    time_source = TimeSource.STEPS

    def __init__(
        self,
        plan: PartitionPlan,
        process: Kernels,
        store: ConstantStore,
        refused: list[DelegateError] | None = None,
    ) -> None:
        self.plan = plan
        self._layouts = DimLayouts(plan)
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
            except DelegateError as error:
                if refused is None or not process.alive:
                    raise
                refused.append(error)

    def _is_hidden(self, ident: int) -> bool:
        return self.plan.values[ident].datatype == Datatype.QDINT8

    def _runtime(self, node: PayloadNode, store: ConstantStore) -> KernelRuntime:
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
        note = self.time_source.value.encode()
        self.begin(inputs)
        for node in self.plan.nodes:
            span = self._run(node)
            if span is not None:
                tracer.log(node_identity(node.index), *span, note)
            if tracer.logs_values:
                for ident in node.outputs:
                    value = self._layouts.logical(ident, self.value(ident))
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

    def _run(self, node: PayloadNode) -> tuple[int, int] | None:
        """Run a node; return start and end, None if it runs as part of a later one."""
        runtime = self._runtimes.get(node.index)
        self._made.update(node.outputs)
        if runtime is None:
            return None
        try:
            runtime.prepare_held(self._shared)
            answer = runtime.invoke()
        except LibraryRefusedError as error:
            raise at_node(error, node, self.plan.partition) from None
        return int(answer["start"]), int(answer["end"])

    def value(self, ident: int) -> Tensor:
        """Return a value; rows inside of a kernel are quantized again."""
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
        settled = representation.from_real(value)
        assert settled is not None
        return settled(
            representation.real(source, representation.held(source, self.value(source.ident)))
        )

    def replace(self, ident: int, tensor: Tensor) -> None:
        """Replace a value.

        Raises: DelegateError for rows that exist only inside of a kernel
        """
        if self._is_hidden(ident):
            raise DelegateError(
                ErrorCode.NotSupported,
                f"value {ident} exists only inside of the kernel that reads it; replace value "
                f"{self._makers[ident].inputs[0]}, from which it is computed",
                partition=self.plan.partition,
            )
        self._shared.reserve([(self.plan.values[ident], tuple(tensor.shape))])
        fill(self._shared.held[ident].tensor, tensor)
        self._made.add(ident)

    def close(self) -> None:
        """Free the runtimes and the values."""
        for runtime in self._runtimes.values():
            runtime.close()
        self._shared.close()


def blamed(error: LibraryRefusedError, plan: PartitionPlan, index: int | None) -> DelegateError:
    """Return a library error together with its node, if that is known."""
    for node in plan.nodes:
        if node.index == index:
            return at_node(error, node, plan.partition)
    return DelegateError(error.code, error.reason, partition=plan.partition)
