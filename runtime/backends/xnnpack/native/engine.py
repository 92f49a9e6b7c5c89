"""The engine of the real kernels: a partition as one runtime, as in the stock runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import torch

from runtime.backends.xnnpack.engine import Engine, TimeSource
from runtime.backends.xnnpack.model import PartitionPlan, Value
from runtime.backends.xnnpack.native.constants import ConstantStore
from runtime.backends.xnnpack.native.in_place import InPlaceCall, in_place_call
from runtime.backends.xnnpack.native.local import LocalKernels
from runtime.backends.xnnpack.native.process import SPARE, Kernels, LibraryRefusedError
from runtime.backends.xnnpack.native.shared_values import INPUT, OUTPUT, KernelRuntime, SharedValues
from runtime.backends.xnnpack.native.stepwise import StepEngine, blamed
from runtime.backends.xnnpack.representation import STORED
from runtime.delegates.errors import DelegateError
from runtime.delegates.interface import BoundCall, DelegateTracer
from runtime.memory.huge_pages import new_memory_in_huge_pages
from runtime.memory.release import can_be_read
from runtime.memory.slots import TensorSlot, fill

Tensor = torch.Tensor


class NativeEngine(Engine):
    """Runs a partition on the real kernels; node by node where values are logged.

    Args:
        plan: the checked payload
        process: the kernels

    Raises: DelegateError for a payload that the library refuses
    """

    time_source = TimeSource.KERNELS

    def __init__(self, plan: PartitionPlan, process: Kernels) -> None:
        self.plan = plan
        self._process = process
        self._store = ConstantStore(process, plan)
        self._shared = SharedValues(process)
        self._steps: StepEngine | None = None
        self._seen: list[tuple[int, int, bool]] = []
        self._direct: dict[int, int] = {}
        self._named: list[str] = []  # operators; the library is queried once
        ends = {
            value.ident: (value.argument or 0, INPUT if value.is_input else OUTPUT)
            for value in (*plan.inputs, *plan.outputs)
        }
        nbytes = self._store.region.size if isinstance(process, LocalKernels) else 0
        try:
            with new_memory_in_huge_pages(nbytes):  # packed weights
                self._runtime = KernelRuntime(process, plan, plan.nodes, ends, self._store)
        except LibraryRefusedError as error:
            raise self._found(error) from None

    def _found(self, error: LibraryRefusedError) -> DelegateError:
        """Return an error with the node that the library refuses alone."""
        if error.node is None:
            try:
                StepEngine(self.plan, self._process, self._store).close()
            except DelegateError as found:
                return found
        return blamed(error, self.plan, error.node)

    def take_shapes(self) -> None:
        """Reshape to the sizes in the payload, as the first run would.

        Raises: DelegateError naming the node whose kernel refuses them
        """
        try:
            self._runtime.prepare(self._shared, [value.dims for value in self.plan.inputs])
        except LibraryRefusedError as error:
            zeros = [torch.zeros(v.dims, dtype=STORED[v.datatype]) for v in self.plan.inputs]
            raise self._refused_at(zeros, error) from None

    def run(self, inputs: Sequence[Tensor], tracer: DelegateTracer) -> list[Tensor]:
        """Run the partition in one call, or node by node where values are logged."""
        if tracer.logs_values:
            return self.steps.run(inputs, tracer)
        held, elsewhere = self._shared.held, self._readable(inputs)
        try:
            shapes = [tuple(given.shape) for given in inputs]
            self._runtime.prepare(self._shared, shapes, elsewhere)
            for value, given in zip(self.plan.inputs, inputs, strict=True):
                if value.ident not in elsewhere:
                    fill(held[value.ident].tensor, given)
            answer = self._runtime.invoke(profile=tracer.records)
        except LibraryRefusedError as error:
            raise self._refused_at(inputs, error) from None
        if tracer.records:
            self._log(int(answer["start"]), answer["times"], tracer)
        return [held[value.ident].tensor for value in self.plan.outputs]

    def bound(
        self,
        inputs: Sequence[tuple[Value, TensorSlot]],
        outputs: Sequence[tuple[Value, TensorSlot]],
    ) -> BoundCall | None:
        """Return a call on tensors of a method, None where the kernels are in another process."""
        if not isinstance(self._process, LocalKernels):
            return None
        read = {ident for node in self.plan.nodes for ident in node.read}
        call = in_place_call(self._process, self._runtime, inputs, outputs, read, self._refused_at)
        return None if call is None else BoundCall(partial(self._run_in_place, call), call.run)

    def _run_in_place(self, call: InPlaceCall, tracer: DelegateTracer) -> bool:
        if tracer.logs_values:
            return False
        if not tracer.records:
            return call.run()
        timed = call.run_timed()
        if timed is None:
            return False
        self._log(*timed, tracer)
        return True

    def _readable(self, inputs: Sequence[Tensor]) -> dict[int, int]:
        """Return value -> address of the inputs that the kernels can read in place."""
        if not self._process.direct:
            return {}
        places = [(given.data_ptr(), given.nbytes, given.is_contiguous()) for given in inputs]
        if places != self._seen:
            self._seen = places
            self._direct = {
                value.ident: address
                for value, (address, nbytes, dense) in zip(self.plan.inputs, places, strict=True)
                if dense and nbytes and can_be_read(address, nbytes, SPARE)
            }
        return self._direct

    def _refused_at(self, inputs: Sequence[Tensor], error: LibraryRefusedError) -> DelegateError:
        """Return an error with the node whose kernel refuses the shapes."""
        try:
            self.steps.run(inputs, DelegateTracer(None, (0, 0)))
        except DelegateError as found:
            return found
        return blamed(error, self.plan, None)

    def _log(self, start: int, times: Sequence[int], tracer: DelegateTracer) -> None:
        """Log the library's own durations as consecutive scopes, named as in the stock runtime."""
        if len(self._named) != len(times):
            self._named = _numbered(self._runtime.names()[: len(times)])
        tracer.log_row(self._named, start, times, self.time_source.value.encode())

    @property
    def steps(self) -> StepEngine:
        """Return the engine that runs the same partition node by node."""
        if self._steps is None:
            self._steps = StepEngine(self.plan, self._process, self._store)
        return self._steps

    def begin(self, inputs: Sequence[Tensor]) -> None:
        """Set the inputs."""
        self.steps.begin(inputs)

    def run_node(self, index: int) -> None:
        """Run one node."""
        self.steps.run_node(index)

    def value(self, ident: int) -> Tensor:
        """Return a value."""
        return self.steps.value(ident)

    def replace(self, ident: int, tensor: Tensor) -> None:
        """Replace a value."""
        self.steps.replace(ident, tensor)

    def close(self) -> None:
        """Free the runtimes and the memory."""
        if self._steps is not None:
            self._steps.close()
        self._runtime.close()
        self._shared.close()
        self._store.close()


def _numbered(names: Sequence[str]) -> list[str]:
    """Return names numbered by occurrence, as in traces of the stock runtime."""
    counts: Counter[str] = Counter()
    numbered: list[str] = []
    for name in names:
        counts[name] += 1
        numbered.append(f"{name} #{counts[name]}")
    return numbered
