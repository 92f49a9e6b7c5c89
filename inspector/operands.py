"""What each instruction of a plan reads and writes, and how long each value lives.

A program file names no operator schemas, so the rules of the emitter are used: the last argument
of a kernel call is its result (a list when there are several), except for the few kernels in
``_FIRST_IS_OUTPUT``, and for operators that return nothing and end in an underscore, as torch calls
those that write to their first argument. Source: wire format of KernelCall, DelegateCall and the
control-flow shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schema.identity_cache import identity_cache
from schema.program import Program, instructions, operator_name
from schema.program import model as m

# Kernels that write their first argument and repeat no result.
_FIRST_IS_OUTPUT = frozenset({"executorch_prim::et_copy_index.tensor"})
_STATE_WRITERS = frozenset({"aten::copy_"})


@dataclass(frozen=True, slots=True)
class Operands:
    """Value indices one instruction touches.

    Attributes:
        reads: in argument order, members of lists included
        writes: in argument order, members of lists included
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """First and last instruction that needs each value, both inclusive.

    Shapes: first int64[values], last int64[values]; -1 for values no instruction touches
    Units:  instruction index over all chains in order

    Attributes:
        state: values that keep their content from one execution to the next
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    state: frozenset[int]


def members(plan: m.ExecutionPlan, index: int) -> tuple[int, ...]:
    """Return the value and, for a list, the values it names; indices out of range are dropped."""
    if not 0 <= index < len(plan.values):
        return ()
    value = plan.values[index].val
    if isinstance(value, (m.TensorList, m.OptionalTensorList, m.IntList)):
        inside = tuple(item for item in value.items if 0 <= item < len(plan.values))
        return (index, *inside)
    return (index,)


def _spread(plan: m.ExecutionPlan, args: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(item for arg in args for item in members(plan, arg)))


@identity_cache
def plan_operands(
    plan: m.ExecutionPlan, delegate_outputs: tuple[int | None, ...] = ()
) -> tuple[Operands, ...]:
    """Return the operands of every instruction, over all chains in order.

    Args:
        plan: the method
        delegate_outputs: number of outputs of each delegate where it is known; without it an
            argument nobody touched before, which is no input or constant, counts as an output
    """
    touched = set(plan.inputs) | _constants(plan)
    found: list[Operands] = []
    for _, _, instruction in instructions(plan):
        operands = _operands(plan, instruction.instr_args, touched, delegate_outputs)
        touched.update(operands.reads)
        touched.update(operands.writes)
        found.append(operands)
    return tuple(found)


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
        return Operands(_spread(plan, (args.move_from,)), _spread(plan, (args.move_to,)))
    if isinstance(args, m.JumpFalseCall):
        return Operands(_spread(plan, (args.cond_value_index,)), ())
    if isinstance(args, m.FreeCall):
        return Operands((), _spread(plan, (args.value_index,)))
    return Operands((), ())


def _kernel_operands(plan: m.ExecutionPlan, call: m.KernelCall) -> Operands:
    if not call.args:
        return Operands((), ())
    if operator_name(plan, call) in _FIRST_IS_OUTPUT:
        return Operands(_spread(plan, call.args[1:]), _spread(plan, call.args[:1]))
    if writes_in_place(plan, call):
        return Operands(_spread(plan, call.args), _spread(plan, call.args[:1]))
    writes = _spread(plan, call.args[-1:])
    # The out arguments stand before the result too; they are not read.
    rest = tuple(arg for arg in call.args[:-1] if arg not in writes)
    reads = _spread(plan, rest)
    if operator_name(plan, call) in _STATE_WRITERS:
        reads = _spread(plan, call.args[1:-1])
    return Operands(tuple(item for item in reads if item not in writes), writes)


def writes_in_place(plan: m.ExecutionPlan, call: m.KernelCall) -> bool:
    """Return whether a call is of an operator that writes to its first argument alone.

    A call with a result names it twice, as an out argument and as what is returned.
    """
    base = operator_name(plan, call).partition(".")[0]
    return base.endswith("_") and len(set(call.args)) == len(call.args) > 0


def _delegate_operands(
    plan: m.ExecutionPlan, call: m.DelegateCall, touched: set[int], outputs: int | None
) -> Operands:
    if outputs is not None and 0 <= outputs <= len(call.args):
        split = len(call.args) - outputs
        return Operands(_spread(plan, call.args[:split]), _spread(plan, call.args[split:]))
    reads = tuple(arg for arg in call.args if arg in touched)
    writes = tuple(arg for arg in call.args if arg not in touched)
    return Operands(_spread(plan, reads), _spread(plan, writes))


def delegate_output_counts(program: Program, plan: m.ExecutionPlan) -> tuple[int | None, ...]:
    """Return how many outputs each delegate's payload declares, None where it does not say."""
    from inspector.payloads import delegate_payload

    counts: list[int | None] = []
    for index in range(len(plan.delegates)):
        payload = delegate_payload(program, plan, index)
        graph = payload.graph
        counts.append(len(graph.outputs) if graph is not None and graph.outputs else None)
    return tuple(counts)


@identity_cache
def lifetimes(plan: m.ExecutionPlan) -> Lifetimes:
    """Return when each value is needed, loops and state between executions included."""
    operands = plan_operands(plan)
    count, steps = len(plan.values), len(operands)
    first = np.full(count, -1, dtype=np.int64)
    last = np.full(count, -1, dtype=np.int64)
    read_first: set[int] = set()
    for step, touched in enumerate(operands):
        for value in touched.reads:
            if first[value] < 0:
                read_first.add(value)
        for value in (*touched.reads, *touched.writes):
            if first[value] < 0:
                first[value] = step
            last[value] = step
    _pin_boundaries(plan, first, last, steps)
    state = _state_values(plan, operands, read_first)
    for value in state:
        first[value], last[value] = 0, max(steps - 1, 0)
    _extend_over_loops(plan, operands, first, last)
    first.setflags(write=False)
    last.setflags(write=False)
    return Lifetimes(first, last, state)


def _pin_boundaries(
    plan: m.ExecutionPlan, first: NDArray[np.int64], last: NDArray[np.int64], steps: int
) -> None:
    for value in _spread(plan, plan.inputs):
        first[value] = 0
        last[value] = max(int(last[value]), 0)
    for value in _spread(plan, plan.outputs):
        first[value] = max(int(first[value]), 0)
        last[value] = max(steps - 1, 0)  # a method without instructions is one moment


def _state_values(
    plan: m.ExecutionPlan, operands: tuple[Operands, ...], read_first: set[int]
) -> frozenset[int]:
    inputs = set(_spread(plan, plan.inputs))
    outputs = set(_spread(plan, plan.outputs))
    written = {value for each in operands for value in each.writes}
    touched = written.union(*(each.reads for each in operands))
    found: set[int] = set()
    for index, entry in enumerate(plan.values):
        tensor = entry.val
        if not isinstance(tensor, m.Tensor) or tensor.allocation_info is None or index in inputs:
            continue
        # What has a place but no use here is state of another method: it has to outlive this one.
        idle = index not in touched and index not in outputs
        if tensor.data_buffer_idx > 0 or idle or (index in read_first and index in written):
            found.add(index)
    return frozenset(found)


def _extend_over_loops(
    plan: m.ExecutionPlan,
    operands: tuple[Operands, ...],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
) -> None:
    # A value made before a loop and needed inside it is needed until the loop's last pass; a value
    # that a pass reads before it writes is carried from pass to pass.
    for start, end in _loops(plan):
        fresh: set[int] = set()
        for step in range(start, end + 1):
            for value in operands[step].reads:
                if first[value] < start or value not in fresh:
                    first[value] = min(int(first[value]), start)
                    last[value] = max(int(last[value]), end)
            fresh.update(operands[step].writes)


def _loops(plan: m.ExecutionPlan) -> list[tuple[int, int]]:
    """Return (first, last) instruction of every backward jump, inner loops first."""
    found: list[tuple[int, int]] = []
    base = 0
    for chain in plan.chains:
        for index, instruction in enumerate(chain.instructions):
            args = instruction.instr_args
            if isinstance(args, m.JumpFalseCall) and 0 <= args.destination_instruction <= index:
                found.append((base + args.destination_instruction, base + index))
        base += len(chain.instructions)
    return sorted(found, key=lambda loop: loop[1] - loop[0])
