"""Turns the instructions of a plan into bound calls over the tensors of a value table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from runtime.delegates.stepping import DelegateSteps
from runtime.errors import ErrorCode, ExecutionError, invalid_program
from runtime.execution.arguments import Arguments
from runtime.kernels import torch_operators
from runtime.kernels.registry import KernelRegistry
from runtime.kernels.rule import Kernel, Operand, Style
from runtime.kernels.size_guard import GROWING, GrowthGuard
from runtime.memory.slots import TensorSlot
from runtime.program.values import Boxed, ValueTable, check_indices
from schema.program import model as m

Call = Callable[[], int | None]
"""Runs one instruction; returns the index of the jump target, None to continue with the next."""


@dataclass(frozen=True, slots=True)
class BoundKernel:
    """A kernel and the values that one instruction calls it with.

    Attributes:
        kernel: the kernel
        args: value indices, results and trailing return value included
        arguments: its inputs, None for kernels on scalars and slots
        function: the kernel with its arguments, None where the kernel itself fills its slots
    """

    kernel: Kernel
    args: tuple[int, ...]
    arguments: Arguments | None = None
    function: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True)
class BoundInstruction:
    """One bound instruction.

    Attributes:
        event: its name in a trace
        call: runs it
        kernel_event: name of the event of its kernel, empty if it has none
        logged: values whose contents are logged after it
        operator: full name of its operator or backend, empty for other kinds
        bound: kernel and values of a kernel call, None for other kinds
        enter: begins a delegate call that is run node by node, None for other kinds
        written: values that a delegate call writes and does not read, None if it may do both
        untraced: runs it without a tracer, None if `call` does
    """

    event: str
    call: Call
    kernel_event: str = ""
    logged: tuple[int, ...] = ()
    operator: str = ""
    bound: BoundKernel | None = None
    enter: Callable[[], DelegateSteps | None] | None = None
    written: tuple[int, ...] | None = None
    untraced: Call | None = None


class Binder:
    """Binds the instructions of one plan.

    Args:
        delegate: returns the instruction of a delegate call, given it and the values that change
    """

    def __init__(
        self,
        plan: m.ExecutionPlan,
        table: ValueTable,
        registry: KernelRegistry,
        delegate: Callable[[m.DelegateCall, Collection[int]], BoundInstruction],
    ) -> None:
        self._plan = plan
        self._table = table
        self._registry = registry
        self._kernels = _kernels_of(plan, registry)
        self._delegate = delegate
        self._dynamic = _dynamic_values(plan, self._kernels)

    def bind(self, chain: m.Chain) -> list[BoundInstruction]:
        """Return the instructions of a chain, bound.

        Raises: ExecutionError naming the instruction that cannot be bound
        """
        length = len(chain.instructions)
        bound_chain: list[BoundInstruction] = []
        for index, instruction in enumerate(chain.instructions):
            try:
                bound_chain.append(self._bind_one(instruction, length))
            except ExecutionError as error:
                raise error.located(instruction=index) from None
        return bound_chain

    def _bind_one(self, instruction: m.Instruction, length: int) -> BoundInstruction:
        args = instruction.instr_args
        count = len(self._table.items)
        if isinstance(args, m.KernelCall):
            check_indices(args.args, count, "an argument")
            return self._kernel_call(args)
        if isinstance(args, m.DelegateCall):
            check_indices(args.args, count, "an argument")
            if not 0 <= args.delegate_index < len(self._plan.delegates):
                raise invalid_program(
                    f"delegate {args.delegate_index} is called, but the plan has "
                    f"{len(self._plan.delegates)}"
                )
            return self._delegate(args, self._dynamic)
        if isinstance(args, m.MoveCall):
            check_indices((args.move_from, args.move_to), count, "a move")
            return BoundInstruction("MOVE_CALL", partial(_move, self._table.items, args))
        if isinstance(args, m.FreeCall):
            check_indices((args.value_index,), count, "a free")
            return BoundInstruction("FREE_CALL", partial(_free, self._table, args.value_index))
        if isinstance(args, m.JumpFalseCall):
            return self._jump(args, length)
        raise invalid_program("the instruction is of an unknown kind")

    def _jump(self, args: m.JumpFalseCall, length: int) -> BoundInstruction:
        check_indices((args.cond_value_index,), len(self._table.items), "a jump")
        if not 0 <= args.destination_instruction <= length:
            raise invalid_program(
                f"a jump goes to instruction {args.destination_instruction} of {length}"
            )
        return BoundInstruction("JF_CALL", partial(_jump_false, self._table.items, args))

    def _kernel_call(self, call: m.KernelCall) -> BoundInstruction:
        if not 0 <= call.op_index < len(self._plan.operators):
            raise invalid_program(
                f"operator {call.op_index} is called, but the plan has {len(self._plan.operators)}"
            )
        kernel = self._kernels[call.op_index]
        try:
            return self._bound(self._kernel_for(kernel, call.args), call.args)
        except ExecutionError as error:
            raise error.located(operator=kernel.name) from None

    def _kernel_for(self, kernel: Kernel, args: Sequence[int]) -> Kernel:
        """Return the kernel of an operator for the tensors of a call."""
        known = self._registry.kernel_keys(kernel.name)
        if not known:
            return kernel
        tensors = [
            self._table.slot(index)
            for index in args
            if isinstance(self._table.items[index], torch.Tensor)
        ]
        kinds = [f"{slot.code};{','.join(map(str, slot.dim_order))}" for slot in tensors]
        # The result is passed twice: keys of kernel yaml name it once, those of programs twice.
        keys = [f"v1/{'|'.join(kinds[:count])}" for count in (len(kinds) - 1, len(kinds))]
        found = self._registry.find_for(kernel.name, keys)
        if found is None:
            raise ExecutionError(
                ErrorCode.OperatorMissing,
                f"no kernel for tensors {keys[0]}; registered keys: {', '.join(known)}",
                remedy="Register one for this key, or one for all tensors (without a key).",
            )
        return found

    def _bound(self, kernel: Kernel, args: Sequence[int]) -> BoundInstruction:
        inputs = len(kernel.inputs)
        if kernel.rule.style is Style.SCALAR:
            _check_count(kernel, args, inputs + 1)
            return self._scalar(kernel, args)
        if kernel.rule.style is Style.SLOTS:
            _check_count(kernel, args, inputs)
            return self._slots(kernel, args)
        _check_count(kernel, args, inputs + kernel.outs + (not kernel.silent))
        for place in kernel.writes:
            self._check_written(args[place])
        outs = tuple(args[inputs : inputs + kernel.outs])
        arguments = self._arguments(kernel, args)
        function = None if kernel.rule.style is Style.OUT else arguments.bound(kernel.rule.run)
        call = self._run(kernel, arguments, function, args)
        logged = outs or tuple(args[place] for place in kernel.writes) or (args[0],)
        bound = BoundKernel(kernel, tuple(args), arguments, function)
        return BoundInstruction(
            "OPERATOR_CALL", call, kernel.event_name, logged, kernel.name, bound
        )

    def _run(
        self,
        kernel: Kernel,
        arguments: Arguments,
        function: Callable[[], Any] | None,
        args: Sequence[int],
    ) -> Call:
        run = kernel.rule.run
        outs = tuple(args[len(kernel.inputs) : -1])
        if function is None:
            return self._filled(arguments, run, outs, [self._writable(out) for out in outs])
        if kernel.rule.style is Style.IN_PLACE:
            self._writable(args[0])
            return partial(_call_in_place, function, self._table, args[0])
        if kernel.silent:
            return partial(_run_only, function)
        if kernel.out_is_list:
            return self._list_result(function, outs[0])
        slots = [self._writable(out) for out in outs]
        if kernel.name in GROWING:
            function = GrowthGuard(kernel.name, run, arguments.current, arguments.fixed, slots[0])
        if any(out in self._dynamic for out in outs):
            return partial(_store_dynamic, function, self._table, outs)
        if len(slots) == 1:
            return partial(_store_one, function, slots[0].store)
        return partial(store_many, function, slots)

    def _check_written(self, index: int) -> None:
        if self._table.items[index] is not None:  # an optional argument
            self._writable(index)

    def _writable(self, index: int) -> TensorSlot:
        slot = self._table.slot(index)
        if slot.read_only:
            raise invalid_program(f"value {index} is a constant and is written to")
        return slot

    def _list_result(self, function: Callable[[], Any], index: int) -> Call:
        value = self._table.items[index]
        if not isinstance(value, Boxed):
            raise invalid_program(f"value {index} is written as a list of tensors but is not one")
        slots = [self._writable(item) for item in value.items]
        if self._dynamic.isdisjoint(value.items):
            return partial(store_many, function, slots)
        return partial(_store_dynamic, function, self._table, value.items)

    def _filled(
        self,
        arguments: Arguments,
        run: Callable[..., Any],
        outs: tuple[int, ...],
        slots: list[TensorSlot],
    ) -> Call:
        if any(out in self._dynamic for out in outs):
            return partial(_fill_dynamic, arguments, run, self._table, outs)
        return partial(_run_only, arguments.bound(run, slots))

    def _scalar(self, kernel: Kernel, args: Sequence[int]) -> BoundInstruction:
        items, target = self._table.items, args[-1]
        if isinstance(items[target], torch.Tensor | Boxed):
            raise invalid_program(
                f"value {target} is written as a scalar but is a tensor or a list"
            )
        sources = tuple(args[:-1])
        call = partial(_compute, kernel.rule.run, items, sources, target)
        bound = BoundKernel(kernel, tuple(args))
        return BoundInstruction("OPERATOR_CALL", call, operator=kernel.name, bound=bound)

    def _slots(self, kernel: Kernel, args: Sequence[int]) -> BoundInstruction:
        operands = kernel.rule.operands
        for index, operand in zip(args, operands, strict=True):
            if operand is Operand.WRITTEN:
                self._writable(index)
        if any(index in self._dynamic for index in args):
            call = partial(_call_slots, kernel.rule.run, self._table, tuple(args), operands)
        else:
            call = partial(_call_known_slots, kernel.rule.run, self._known(args, operands))
        bound = BoundKernel(kernel, tuple(args))
        return BoundInstruction("OPERATOR_CALL", call, operator=kernel.name, bound=bound)

    def _known(
        self, args: Sequence[int], operands: Sequence[Operand]
    ) -> Callable[[], Sequence[Any]]:
        """Return a function for the operands of a prim whose table entries never change."""
        table = self._table
        known = [
            None if operand is Operand.VALUE else table.slot(index)
            for index, operand in zip(args, operands, strict=True)
        ]
        values = [table.items[index] for index in args]

        def operands_now() -> list[Any]:
            return [
                table.resolve(value) if slot is None else slot
                for slot, value in zip(known, values, strict=True)
            ]

        return operands_now

    def _arguments(self, kernel: Kernel, args: Sequence[int]) -> Arguments:
        sources = tuple(args[: len(kernel.inputs)])
        changing = [place for place, index in enumerate(sources) if self._is_dynamic(index)]
        return Arguments(kernel, sources, self._table, changing)

    def _is_dynamic(self, index: int) -> bool:
        value = self._table.items[index]
        if isinstance(value, Boxed):
            return any(item in self._dynamic for item in value.items)
        return index in self._dynamic


def _check_count(kernel: Kernel, args: Sequence[int], requested: int) -> None:
    if len(args) != requested:
        raise invalid_program(f"expected {requested} values, found {len(args)}")


def _kernels_of(plan: m.ExecutionPlan, registry: KernelRegistry) -> list[Kernel]:
    names = [operator.full_name for operator in plan.operators]
    missing = registry.missing(names)
    if missing:
        raise ExecutionError(
            ErrorCode.OperatorMissing,
            f"no kernel for {', '.join(missing)}",
            remedy=_remedy_of_missing(missing),
        )
    return [kernel for kernel in map(registry.any_of, names) if kernel is not None]


def _remedy_of_missing(missing: Sequence[str]) -> str:
    call = f"operator_registry.adopt_torch({sorted({name.partition('.')[0] for name in missing})})"
    if torch_operators.operator_names().issuperset(missing):
        return f"torch has them registered: call {call} of the runtime before loading the method."
    return (
        "Import the library that registers them with torch and call "
        f"{call} of the runtime, or register a kernel for each "
        "(operator_registry.register), or lower the program so that it does not use them."
    )


def _dynamic_values(plan: m.ExecutionPlan, kernels: Sequence[Kernel]) -> frozenset[int]:
    """Return the values whose table entry changes while the method runs."""
    dynamic: set[int] = set()
    for chain in plan.chains:
        for instruction in chain.instructions:
            args = instruction.instr_args
            if isinstance(args, m.MoveCall):
                dynamic.add(args.move_to)
            elif isinstance(args, m.DelegateCall):  # which may return sizes
                dynamic.update(index for index in args.args if _is_number(plan, index))
            elif isinstance(args, m.KernelCall) and _gives_scalar(args, kernels):
                dynamic.add(args.args[-1])
    return frozenset(dynamic)


def _is_number(plan: m.ExecutionPlan, index: int) -> bool:
    known = 0 <= index < len(plan.values)
    return known and isinstance(plan.values[index].val, (m.Int, m.Double, m.Bool))


def _gives_scalar(call: m.KernelCall, kernels: Sequence[Kernel]) -> bool:
    known = 0 <= call.op_index < len(kernels) and bool(call.args)
    return known and kernels[call.op_index].rule.style is Style.SCALAR


def _store_one(function: Callable[[], Any], store: Callable[[torch.Tensor], None]) -> None:
    store(function())


def store_many(function: Callable[[], Any], slots: Sequence[TensorSlot | None]) -> None:
    """Store the results of a kernel; those without a slot are dropped."""
    _store_all(function(), slots)


def _store_dynamic(function: Callable[[], Any], table: ValueTable, outs: tuple[int, ...]) -> None:
    _store_all(function(), [_current_slot(table, out) for out in outs])


def _store_all(results: Any, slots: Sequence[TensorSlot | None]) -> None:  # noqa: ANN401 - one or several
    found: list[torch.Tensor | None]
    found = [results] if isinstance(results, torch.Tensor) else list(results)
    if len(found) != len(slots):
        raise ExecutionError(
            ErrorCode.InvalidArgument, f"{len(found)} results for {len(slots)} out arguments"
        )
    for slot, value in zip(slots, found, strict=True):
        if value is not None and slot is not None:  # an output mask excludes results
            slot.store(value)


def _current_slot(table: ValueTable, index: int) -> TensorSlot:
    slot = table.slot(index)
    if slot.read_only:
        raise invalid_program(f"value {index} is a constant and is written to")
    return slot


def _fill_dynamic(
    arguments: Arguments, run: Callable[..., Any], table: ValueTable, outs: tuple[int, ...]
) -> None:
    arguments.call(run, [_current_slot(table, out) for out in outs])


def _run_only(function: Callable[[], Any]) -> None:
    function()


def _call_in_place(function: Callable[[], Any], table: ValueTable, target: int) -> None:
    _current_slot(table, target)
    function()


def _compute(
    run: Callable[..., Any], items: list[Any], sources: tuple[int, ...], target: int
) -> None:
    items[target] = run(*[items[index] for index in sources])


def _call_known_slots(run: Callable[..., Any], operands: Callable[[], Sequence[Any]]) -> None:
    run(*operands())


def _call_slots(
    run: Callable[..., Any], table: ValueTable, args: tuple[int, ...], operands: Sequence[Operand]
) -> None:
    arguments: list[Any] = []
    for index, operand in zip(args, operands, strict=True):
        if operand is Operand.VALUE:
            arguments.append(table.resolve(table.items[index]))
        elif operand is Operand.WRITTEN:
            arguments.append(_current_slot(table, index))
        else:
            arguments.append(table.slot(index))
    run(*arguments)


def _move(items: list[Any], args: m.MoveCall) -> None:
    items[args.move_to] = items[args.move_from]


def _free(table: ValueTable, index: int) -> None:
    if isinstance(table.items[index], torch.Tensor):
        table.slot(index).free()


def _jump_false(items: list[Any], args: m.JumpFalseCall) -> int | None:
    condition = items[args.cond_value_index]
    if isinstance(condition, torch.Tensor) and condition.dtype is torch.bool:
        condition = bool(condition.all())
    if not isinstance(condition, bool):
        raise ExecutionError(
            ErrorCode.InvalidType, f"a jump depends on a {type(condition).__name__}, not on a bool"
        )
    return None if condition else args.destination_instruction
