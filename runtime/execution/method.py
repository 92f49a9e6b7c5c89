"""A loaded method: its values, its bound instructions, and one run at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import torch

from runtime.delegates.interface import Measurement
from runtime.delegates.stepping import DelegateSteps, EnteredSteps
from runtime.errors import OF_RUN, ErrorCode, ExecutionError, invalid_argument, invalid_input
from runtime.execution.binding import Binder, Step
from runtime.execution.memory_use import MemoryUse, memory_use
from runtime.execution.partitions import Partition, Place, delegate_step
from runtime.execution.runner import Runner
from runtime.kernels.registry import KernelRegistry
from runtime.memory.slots import Slot, fill, strides_of
from runtime.program.meta import MethodMeta
from runtime.program.values import ValueTable, check_indices
from runtime.tracing.tracer import EventTracer
from schema.program import model as m

Value = torch.Tensor | int | float | bool | str | None


class Method:
    """One method of a program, loaded; `execute` runs it.

    It may be used from any thread, by one thread at a time.
    """

    def __init__(
        self,
        plan: m.ExecutionPlan,
        table: ValueTable,
        registry: KernelRegistry,
        partitions: list[Partition],
        tracer: EventTracer | None,
    ) -> None:
        self._plan = plan
        self._table = table
        self._meta = MethodMeta(plan)
        self._partitions = partitions
        self._place = Place()
        self.tracer = tracer
        check_indices(plan.inputs, len(table.items), "an input")
        check_indices(plan.outputs, len(table.items), "an output")
        binder = Binder(plan, table, registry, self._delegate_step)
        chains = [binder.steps(chain) for chain in plan.chains]
        self._steps = chains
        self._runner = Runner(plan, chains, self._place, table)

    def _delegate_step(self, call: m.DelegateCall) -> Step:
        partition = self._partitions[call.delegate_index]
        place = (self._plan.name, self._place)
        return delegate_step(call, partition, self._table, lambda: self.tracer, place)

    @property
    def name(self) -> str:
        """Return the name of the method."""
        return self._plan.name

    @property
    def metadata(self) -> MethodMeta:
        """Return what the program says about the method."""
        return self._meta

    @property
    def memory(self) -> MemoryUse:
        """Return the memory that it takes besides the program itself."""
        return memory_use(self._plan, self._table, self._steps)

    def method_meta(self) -> MethodMeta:
        """Return what the program says about the method."""
        return self._meta

    def execute(self, inputs: Sequence[Any] | None = None) -> list[Any]:
        """Run the method and return its outputs, which are the caller's own.

        Args:
            inputs: flat sequence of tensors and numbers; those that are set where None are given

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
        wanted = len(self._plan.inputs)
        if len(inputs) != wanted:
            raise invalid_input(
                f"The length of given input array ({len(inputs)}) must be same as the number of "
                f"inputs in method ({wanted})."
            ).located(method=self.name)
        for index, value in enumerate(inputs):
            self.set_input(value, index)

    def set_input(self, value: Any, index: int) -> None:  # noqa: ANN401 - tensor or number
        """Set one input: a tensor is copied into its planned memory, or shared where it has none.

        Raises: ExecutionError InvalidState while the method runs; InvalidArgument for another
            kind, element type or number; NotSupported for sizes the plan does not allow
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
        elif isinstance(value, torch.Tensor) or not _same_number(held, value):
            raise invalid_input(
                f"the program was made for the value {held!r}, it is given {_said(value)}; inputs "
                "that are no tensors are fixed when a program is exported"
            )

    def _set_tensor(self, slot: Slot, value: Any) -> None:  # noqa: ANN401 - checked here
        if not isinstance(value, torch.Tensor):
            value = getattr(value, "tensor", value)  # wrappers such as a TensorPtr
        if not isinstance(value, torch.Tensor):
            raise invalid_input(f"a tensor is wanted, found {_said(value)}")
        if slot.read_only and slot.viewed is None:
            raise ExecutionError(ErrorCode.InvalidProgram, "the input is a constant")
        if value.device.type == "meta":
            raise invalid_argument(
                "the tensor is on device meta, which has no values; only CPU and CUDA tensors can "
                "be inputs",
                remedy='Make it on a device with memory, as in torch.zeros(sizes, device="cpu").',
            )
        if value.dtype is not slot.tensor.dtype:
            raise invalid_input(f"{slot.tensor.dtype} is wanted, found {value.dtype}")
        value = value.detach()
        slot.resize(value.shape)
        wanted = strides_of(value.shape, slot.dim_order)
        if slot.planned or value.device.type != "cpu" or value.stride() != wanted:
            fill(slot.tensor, value)
        else:
            slot.share(value)

    def run(self) -> None:
        """Run all instructions on the inputs that are set.

        Raises: ExecutionError naming the instruction that failed
        """
        self._runner.run(self.tracer, self._outputs)

    def step(self) -> None:
        """Run one instruction.

        Raises: ExecutionError EndOfMethod when there is none left
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
        """Begin the next instruction, a delegate call, to be run node by node.

        When it is finished the method goes on behind it, with `step` or `step_into`.

        Raises: ExecutionError EndOfMethod, InvalidState where there is nothing to step into
        """
        inside = self._runner.enter()
        return EnteredSteps(inside, self._runner.leave)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Return what runs each partition, and where its times come from."""
        return tuple(
            entry.backend.measurement(entry.name, entry.handle) for entry in self._partitions
        )

    def reset_execution(self) -> None:
        """Go back to the first instruction after the last one was stepped over.

        Raises: ExecutionError InvalidState in the middle of a run
        """
        self._runner.reset()

    @property
    def in_progress(self) -> bool:
        """Return whether a run was begun and has not ended."""
        return self._runner.in_progress

    @property
    def instruction_budget(self) -> int:
        """Return how many instructions one run may take."""
        return self._runner.budget

    @instruction_budget.setter
    def instruction_budget(self, instructions: int) -> None:
        self._runner.budget = instructions

    def _outputs(self) -> list[Any]:
        table = self._table
        return [table.resolve(table.items[index]) for index in self._plan.outputs]

    def get_outputs(self, clone_outputs: bool = True) -> list[Any]:
        """Return the outputs of the last run.

        Args:
            clone_outputs: give copies away; without, tensors are the method's own memory, which
                the next run overwrites
        """
        return [_cloned(value) for value in self._outputs()] if clone_outputs else self._outputs()

    def get_output(self, index: int) -> Any:  # noqa: ANN401 - tensor or number
        """Return one output of the last run, the method's own memory."""
        return self._outputs()[index]

    def set_output(self, tensor: torch.Tensor, index: int) -> None:
        """Let an output that has no planned memory be written into a tensor of the caller.

        Raises: ExecutionError InvalidState for outputs that are planned or constant,
            InvalidArgument for a tensor of another element type or that is too small
        """
        if not 0 <= index < len(self._plan.outputs):
            raise invalid_argument(
                f"there is no output {index}; the method has {len(self._plan.outputs)}"
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

    def get_attribute(self, name: str) -> torch.Tensor:
        """Return the tensor with this qualified name, the method's own memory.

        Raises: ExecutionError NotFound
        """
        for index, value in enumerate(self._plan.values):
            extra = value.val.extra_tensor_info if isinstance(value.val, m.Tensor) else None
            if extra is not None and extra.fully_qualified_name == name:
                return self._table.items[index]
        raise ExecutionError(ErrorCode.NotFound, f"there is no tensor named {name!r}", remedy="")

    def close(self) -> None:
        """Let backends go of their partitions; the method cannot run afterwards."""
        partitions, self._partitions[:] = list(self._partitions), []
        for partition in partitions:
            partition.backend.destroy(partition.handle)


def _cloned(value: Any) -> Any:  # noqa: ANN401 - any value
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, list):
        return [_cloned(item) for item in cast("list[Any]", value)]
    return value


def _same_number(held: Any, value: Any) -> bool:  # noqa: ANN401 - any values
    if isinstance(held, bool) or isinstance(value, bool) or held is None or value is None:
        return held is value
    if isinstance(held, float) and isinstance(value, float):
        return held == value or math.isclose(held, value, rel_tol=1e-6) or held != held
    return type(held) is type(value) and held == value


def _said(value: object) -> str:
    return f"a {type(value).__name__}" if isinstance(value, torch.Tensor) else repr(value)
