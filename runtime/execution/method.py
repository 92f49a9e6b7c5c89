"""A loaded method: its values and its bound instructions."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, cast

import torch

from runtime.delegates.interface import PartitionEngine
from runtime.delegates.stepping import DelegateSteps, EnteredSteps
from runtime.errors import OF_RUN, ErrorCode, ExecutionError, invalid_argument, invalid_input
from runtime.execution.binding import Binder, BoundInstruction
from runtime.execution.chains import Chains
from runtime.execution.memory_use import MemoryUse, memory_use
from runtime.execution.partitions import LoadedPartition, RunPosition, delegate_call
from runtime.execution.runner import MethodRunner
from runtime.kernels.registry import KernelRegistry
from runtime.memory.slots import TensorSlot, fill, strides_of
from runtime.program.meta import MethodMeta
from runtime.program.values import ValueTable, check_indices
from runtime.tracing.tracer import EventTracer
from schema.program import model as m

Value = torch.Tensor | int | float | bool | str | None


class Method:
    """One method of a program, loaded; `execute` runs it.

    It may be used from any thread, but by one thread at a time.
    """

    def __init__(
        self,
        plan: m.ExecutionPlan,
        table: ValueTable,
        registry: KernelRegistry,
        partitions: list[LoadedPartition],
        tracer: EventTracer | None,
    ) -> None:
        self._plan = plan
        self._table = table
        self._meta = MethodMeta(plan)
        self._partitions = partitions
        self._position = RunPosition()
        self.tracer = tracer
        check_indices(plan.inputs, len(table.items), "an input")
        check_indices(plan.outputs, len(table.items), "an output")
        binder = Binder(plan, table, registry, self._delegate_call)
        instructions = [binder.bind(chain) for chain in plan.chains]
        self._chains = Chains(plan, instructions, table, self._position)
        self._runner = MethodRunner(self._chains)

    def _delegate_call(self, call: m.DelegateCall, exchanged: Collection[int]) -> BoundInstruction:
        partition = self._partitions[call.delegate_index]
        place = (self._plan.name, self._position)
        return delegate_call(call, partition, self._table, lambda: self.tracer, place, exchanged)

    @property
    def name(self) -> str:
        """Return the name of the method."""
        return self._plan.name

    @property
    def metadata(self) -> MethodMeta:
        """Return the metadata of the method."""
        return self._meta

    @property
    def memory(self) -> MemoryUse:
        """Return the memory it uses in addition to the program."""
        return memory_use(self._plan, self._table, self._chains.instructions)

    def method_meta(self) -> MethodMeta:
        """Return the metadata of the method."""
        return self._meta

    def execute(self, inputs: Sequence[Any] | None = None) -> list[Any]:
        """Run the method and return copies of its outputs.

        Args:
            inputs: flat sequence of tensors and scalars; None to use the inputs set in advance

        Raises: ExecutionError with the documented code
        """
        if inputs is not None:
            self.set_inputs(inputs)
        self.run()
        return self.get_outputs()

    def __call__(
        self, inputs: Sequence[Any] | torch.Tensor = (), clone_outputs: bool = True
    ) -> list[Any]:
        """Run the method on a flat sequence of inputs, or on one tensor, and return its outputs."""
        self.set_inputs((inputs,) if isinstance(inputs, torch.Tensor) else inputs)
        self.run()
        return self.get_outputs(clone_outputs)

    call = __call__

    def set_inputs(self, inputs: Sequence[Any]) -> None:
        """Set all inputs.

        Raises: ExecutionError InvalidArgument if there are too many or too few
        """
        requested = len(self._plan.inputs)
        if len(inputs) != requested:
            raise invalid_input(
                f"The length of given input array ({len(inputs)}) must be same as the number of "
                f"inputs in method ({requested})."
            ).located(method=self.name)
        for index, value in enumerate(inputs):
            self.set_input(value, index)

    def set_input(self, value: Any, index: int) -> None:  # noqa: ANN401 - tensor or scalar
        """Set one input: a tensor is copied into its planned memory, or shared if it has none.

        Raises: ExecutionError InvalidState while the method runs; InvalidArgument for a different
            type, dtype or scalar; NotSupported for sizes that the plan does not allow
        """
        if self._runner.in_progress:
            raise ExecutionError(
                ErrorCode.InvalidState, "Inputs can not be set mid execution.", remedy=OF_RUN
            ).located(method=self.name)
        if not 0 <= index < len(self._plan.inputs):
            raise invalid_input(
                f"Given input index must be less than the number of inputs in method, "
                f"but got {index} and {len(self._plan.inputs)}"
            ).located(method=self.name)
        target = self._plan.inputs[index]
        try:
            self._set(self._table.items[target], value, target)
        except ExecutionError as error:
            error.reason = f"Error setting input {index}: 0x{error.code:x}; {error.reason}"
            raise error.located(method=self.name) from None

    def _set(self, held: Any, value: Any, target: int) -> None:  # noqa: ANN401 - any values
        if isinstance(held, torch.Tensor):
            self._set_tensor(self._table.slot(target), value)
        elif isinstance(value, torch.Tensor) or not _same_scalar(held, value):
            raise invalid_input(
                f"the program was exported for the value {held!r}, found {_described(value)}; "
                "inputs other than tensors are fixed at export"
            )

    def _set_tensor(self, slot: TensorSlot, value: Any) -> None:  # noqa: ANN401 - checked here
        if not isinstance(value, torch.Tensor):
            value = getattr(value, "tensor", value)  # wrappers such as a TensorPtr
        if not isinstance(value, torch.Tensor):
            raise invalid_input(f"expected a tensor, found {_described(value)}")
        if slot.read_only and slot.viewed is None:
            raise ExecutionError(ErrorCode.InvalidProgram, "the input is a constant")
        on_cpu = value.is_cpu
        if not on_cpu and value.is_meta:
            raise invalid_argument(
                "the tensor is on device meta, which has no values; only CPU and CUDA tensors can "
                "be inputs",
                remedy='Create it on a device with memory, as in torch.zeros(sizes, device="cpu").',
            )
        if value.dtype is not slot.tensor.dtype:
            raise invalid_input(f"expected {slot.tensor.dtype}, found {value.dtype}")
        if value.requires_grad:
            value = value.detach()
        slot.resize(value.shape)
        is_shared = on_cpu and not slot.planned
        if not is_shared or value.stride() != strides_of(value.shape, slot.dim_order):
            fill(slot.tensor, value)
        else:
            slot.share(value)

    def run(self) -> None:
        """Run all instructions on the current inputs.

        Raises: ExecutionError naming the instruction that failed
        """
        self._runner.run(self.tracer, self._outputs)

    def step(self) -> None:
        """Run one instruction.

        Raises: ExecutionError EndOfMethod after the last instruction
        """
        self._runner.step(self.tracer)

    @property
    def at_delegate(self) -> bool:
        """Return whether the next instruction is a delegate call."""
        return self._runner.at_delegate

    @property
    def next_instruction(self) -> int:
        """Return the index over all chains of the instruction that runs next."""
        return self._runner.instruction

    def step_into(self) -> DelegateSteps:
        """Begin the next instruction, a delegate call, to run it node by node.

        When it is finished the method continues after it, with `step` or `step_into`.

        Raises: ExecutionError EndOfMethod, InvalidState where there is nothing to step into
        """
        inside = self._runner.enter()
        return EnteredSteps(inside, self._runner.leave)

    @property
    def measurements(self) -> tuple[PartitionEngine, ...]:
        """Return the engine of each partition, and the source of its times."""
        return tuple(
            entry.backend.measurement(entry.name, entry.handle) for entry in self._partitions
        )

    def reset_execution(self) -> None:
        """Reset to the first instruction after a complete run.

        Raises: ExecutionError InvalidState during a run
        """
        self._runner.reset()

    def reset_delegates(self) -> None:
        """Put the state that is inside of delegates back to what it was after loading."""
        for entry in self._partitions:
            entry.backend.reset_state(entry.handle)

    @property
    def in_progress(self) -> bool:
        """Return whether a run was begun and has not ended."""
        return self._runner.in_progress

    @property
    def instruction_budget(self) -> int:
        """Return the largest number of instructions in one run."""
        return self._chains.budget

    @instruction_budget.setter
    def instruction_budget(self, instructions: int) -> None:
        self._chains.budget = instructions

    def _outputs(self) -> list[Any]:
        table = self._table
        return [table.resolve(table.items[index]) for index in self._plan.outputs]

    def get_outputs(self, clone_outputs: bool = True) -> list[Any]:
        """Return the outputs of the last run.

        Args:
            clone_outputs: return copies; otherwise tensors are the method's own memory, which
                the next run overwrites
        """
        return [_cloned(value) for value in self._outputs()] if clone_outputs else self._outputs()

    def get_output(self, index: int) -> Any:  # noqa: ANN401 - tensor or scalar
        """Return one output of the last run as a view of the method's memory."""
        return self._outputs()[index]

    def set_output(self, tensor: torch.Tensor, index: int) -> None:
        """Write an output without planned memory into a tensor of the caller.

        Raises: ExecutionError InvalidState for outputs that are planned or constant,
            InvalidArgument for a tensor of a different dtype or one that is too small
        """
        if not 0 <= index < len(self._plan.outputs):
            raise invalid_argument(
                f"output {index} not found; the method has {len(self._plan.outputs)}"
            )
        slot = self._table.slot(self._plan.outputs[index])
        if slot.planned or slot.constant:
            kind = "planned memory" if slot.planned else "a constant"
            raise ExecutionError(
                ErrorCode.InvalidState,
                f"output {index} is {kind} and cannot be replaced",
                remedy="",
            )
        if tensor.dtype is not slot.tensor.dtype or tensor.numel() < slot.capacity:
            raise invalid_argument(
                f"output {index} needs {slot.capacity} elements of {slot.tensor.dtype}, found "
                f"{tensor.numel()} of {tensor.dtype}"
            )
        slot.place(tensor.detach().reshape(-1))

    def value(self, index: int) -> Any:  # noqa: ANN401 - any value
        """Return a value of the program; a tensor is the method's own memory."""
        return self._table.items[index]

    def get_attribute(self, name: str) -> torch.Tensor:
        """Return the tensor with this qualified name, a view of the method's memory.

        Raises: ExecutionError NotFound
        """
        for index, value in enumerate(self._plan.values):
            extra = value.val.extra_tensor_info if isinstance(value.val, m.Tensor) else None
            if extra is not None and extra.fully_qualified_name == name:
                return self._table.items[index]
        raise ExecutionError(ErrorCode.NotFound, f"tensor {name!r} not found", remedy="")

    def close(self) -> None:
        """Free the partitions; the method cannot run afterwards."""
        partitions, self._partitions[:] = list(self._partitions), []
        for partition in partitions:
            partition.backend.destroy(partition.handle)


def _cloned(value: Any) -> Any:  # noqa: ANN401 - any value
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, list):
        return [_cloned(item) for item in cast("list[Any]", value)]
    return value


def _same_scalar(held: Any, value: Any) -> bool:  # noqa: ANN401 - any values
    if isinstance(held, bool) or isinstance(value, bool) or held is None or value is None:
        return held is value
    if isinstance(held, float) and isinstance(value, float):
        return held == value or math.isclose(held, value, rel_tol=1e-6) or held != held
    return type(held) is type(value) and held == value


def _described(value: object) -> str:
    return f"a {type(value).__name__}" if isinstance(value, torch.Tensor) else repr(value)
