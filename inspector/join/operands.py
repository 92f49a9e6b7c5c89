"""Operands of instructions: the values each one reads and writes.

A program file names no operator schemas, so the rules of the emitter are used: the last argument
of a kernel call is its result (a list when there are several), except for the few kernels in
``PART_WRITERS``, and for operators that return nothing and end in an underscore, as torch calls
those that write to their first argument. Source: wire format of KernelCall, DelegateCall and the
control-flow shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile, instructions, operator_name
from schema.program import model as m

# Kernels that write a part of their first argument and repeat no result.
PART_WRITERS = frozenset({"executorch_prim::et_copy_index.tensor"})
STATE_WRITERS = frozenset({"aten::copy_"})
LISTS = (m.TensorList, m.OptionalTensorList, m.IntList)  # of values that refer to other ones


@dataclass(frozen=True, slots=True)
class Operands:
    """Value indices one instruction touches.

    Attributes:
        reads: in argument order, members of lists included
        writes: in argument order, members of lists included
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]


def members(plan: m.ExecutionPlan, index: int) -> tuple[int, ...]:
    """Return the value and, for a list, the values it names; indices out of range are dropped."""
    if not 0 <= index < len(plan.values):
        return ()
    value = plan.values[index].val
    if isinstance(value, LISTS):
        inside = tuple(item for item in value.items if 0 <= item < len(plan.values))
        return (index, *inside)
    return (index,)


def spread(plan: m.ExecutionPlan, args: tuple[int, ...]) -> tuple[int, ...]:
    """Return the values of some arguments, members of lists included, each once."""
    if len(args) == 1:  # a list may name a value twice
        return tuple(dict.fromkeys(members(plan, args[0])))
    return tuple(dict.fromkeys([item for arg in args for item in members(plan, arg)]))


def plan_operands(
    plan: m.ExecutionPlan, delegate_outputs: tuple[int | None, ...] = ()
) -> tuple[Operands, ...]:
    """Return the operands of every instruction, over all chains in order.

    Args:
        plan: the method
        delegate_outputs: number of outputs of each delegate if known; otherwise an
            argument not used before, neither input nor constant, counts as an output
    """
    return _plan_operands(plan, delegate_outputs)  # one entry with and without the default


@identity_cache
def _plan_operands(
    plan: m.ExecutionPlan, delegate_outputs: tuple[int | None, ...]
) -> tuple[Operands, ...]:
    touched = set(plan.inputs) | _constants(plan)
    plain = _plain_kernels(plan), _plain_values(plan)
    found: list[Operands] = []
    alike: dict[tuple[int, ...], tuple[int, ...]] = {}  # most reads are what one call before wrote
    for _, _, instruction in instructions(plan):
        args = instruction.instr_args
        one = _plain_operands(args, *plain) if isinstance(args, m.KernelCall) else None
        one = one or _operands(plan, args, touched, delegate_outputs)
        touched.update(one.reads)
        touched.update(one.writes)
        reads, writes = (alike.setdefault(each, each) for each in (one.reads, one.writes))
        found.append(Operands(reads, writes))
    return tuple(found)


def _plain_kernels(plan: m.ExecutionPlan) -> frozenset[int]:
    """Return the operators that write to their last argument alone, whatever the call is."""
    special = PART_WRITERS | STATE_WRITERS
    return frozenset(
        number
        for number, operator in enumerate(plan.operators)
        if operator.full_name not in special and not _is_in_place(operator.full_name)
    )


def _plain_values(plan: m.ExecutionPlan) -> frozenset[int]:
    """Return the values that refer to no others."""
    return frozenset(
        index for index, value in enumerate(plan.values) if not isinstance(value.val, LISTS)
    )


def _plain_operands(
    call: m.KernelCall, kernels: frozenset[int], values: frozenset[int]
) -> Operands | None:
    """Return the operands of most calls, as `_kernel_operands` does; None for any other.

    Of 50,000 calls it takes a third of the time.
    """
    args = call.args
    if not args or call.op_index not in kernels or not values.issuperset(args):
        return None
    result = args[-1]
    return Operands(tuple(dict.fromkeys([arg for arg in args if arg != result])), (result,))


def _constants(plan: m.ExecutionPlan) -> set[int]:
    return {
        index
        for index, value in enumerate(plan.values)
        if isinstance(value.val, m.Tensor) and value.val.data_buffer_idx > 0
    }


def _operands(
    plan: m.ExecutionPlan,
    args: m.InstructionArgs,
    touched: set[int],
    delegate_outputs: tuple[int | None, ...],
) -> Operands:
    if isinstance(args, m.KernelCall):
        return _kernel_operands(plan, args)
    if isinstance(args, m.DelegateCall):
        known = None
        if 0 <= args.delegate_index < len(delegate_outputs):
            known = delegate_outputs[args.delegate_index]
        return _delegate_operands(plan, args, touched, known)
    if isinstance(args, m.MoveCall):
        return Operands(spread(plan, (args.move_from,)), spread(plan, (args.move_to,)))
    if isinstance(args, m.JumpFalseCall):
        return Operands(spread(plan, (args.cond_value_index,)), ())
    if isinstance(args, m.FreeCall):
        return Operands((), spread(plan, (args.value_index,)))
    return Operands((), ())


def _kernel_operands(plan: m.ExecutionPlan, call: m.KernelCall) -> Operands:
    if not call.args:
        return Operands((), ())
    name = operator_name(plan, call)
    if name in PART_WRITERS:
        return Operands(spread(plan, call.args[1:]), spread(plan, call.args[:1]))
    if _in_place(name, call):
        return Operands(spread(plan, call.args), spread(plan, call.args[:1]))
    writes = spread(plan, call.args[-1:])
    # The out arguments precede the result too; they are not read.
    rest = tuple([arg for arg in call.args[:-1] if arg not in writes])
    reads = spread(plan, call.args[1:-1] if name in STATE_WRITERS else rest)
    return Operands(tuple([item for item in reads if item not in writes]), writes)


def writes_in_place(plan: m.ExecutionPlan, call: m.KernelCall) -> bool:
    """Return whether a call is of an operator that writes to its first argument alone.

    A call with a result lists it twice, as out argument and as return value.
    """
    return _in_place(operator_name(plan, call), call)


def _in_place(name: str, call: m.KernelCall) -> bool:
    return _is_in_place(name) and len(set(call.args)) == len(call.args) > 0


def _is_in_place(name: str) -> bool:
    return name.partition(".")[0].endswith("_")


def _delegate_operands(
    plan: m.ExecutionPlan, call: m.DelegateCall, touched: set[int], outputs: int | None
) -> Operands:
    if outputs is not None and 0 <= outputs <= len(call.args):
        split = len(call.args) - outputs
        return Operands(spread(plan, call.args[:split]), spread(plan, call.args[split:]))
    reads = tuple(arg for arg in call.args if arg in touched)
    writes = tuple(arg for arg in call.args if arg not in touched)
    return Operands(spread(plan, reads), spread(plan, writes))


def delegate_output_counts(program: ProgramFile, plan: m.ExecutionPlan) -> tuple[int | None, ...]:
    """Return how many outputs each delegate's payload declares, None if it does not."""
    from inspector.files.payloads import delegate_payload

    counts: list[int | None] = []
    for index in range(len(plan.delegates)):
        payload = delegate_payload(program, plan, index)
        graph = payload.graph
        counts.append(len(graph.outputs) if graph is not None and graph.outputs else None)
    return tuple(counts)
