"""The text form of a program file: methods, values, instructions."""

from __future__ import annotations

from collections.abc import Iterator

from schema.dtypes.scalar_type import scalar_type
from schema.program import model as m
from schema.program.program import ProgramFile, operator_name


def program_text(program: ProgramFile, *, verbose: bool = False) -> str:
    """Return the methods of a program, a line per instruction; verbose adds a line per value."""
    return "\n".join(line for plan in program.table.execution_plan for line in _plan(plan, verbose))


def _plan(plan: m.ExecutionPlan, verbose: bool) -> Iterator[str]:
    arenas = ", ".join(str(size) for size in plan.non_const_buffer_sizes[1:]) or "none"
    yield f"method {plan.name}: {len(plan.values)} values, planned buffers of {arenas} bytes"
    yield f"  inputs {_values(plan.inputs)}, outputs {_values(plan.outputs)}"
    for index, value in enumerate(plan.values if verbose else ()):
        yield f"  %{index} = {_value(value.val)}"
    for chain in plan.chains:
        for index, instruction in enumerate(chain.instructions):
            yield f"  [{index}] {_instruction(plan, instruction)}"


def _values(indices: tuple[int, ...]) -> str:
    return "(" + ", ".join(f"%{index}" for index in indices) + ")"


def _value(value: m.KernelType) -> str:
    if not isinstance(value, m.Tensor):
        return str(value)
    place = value.allocation_info
    where = f"constant {value.data_buffer_idx}" if value.data_buffer_idx else "the caller's memory"
    if place is not None:
        offset = place.memory_offset_low | place.memory_offset_high << 32
        where = f"planned buffer {place.memory_id} at {offset}"
    if value.extra_tensor_info is not None:
        where += f", {value.extra_tensor_info.fully_qualified_name}"
    return f"{scalar_type(value.scalar_type).name}{list(value.sizes)} in {where}"


def _instruction(plan: m.ExecutionPlan, instruction: m.Instruction) -> str:
    call = instruction.instr_args
    if isinstance(call, m.KernelCall):
        return f"{operator_name(plan, call)}{_values(call.args)}"
    if isinstance(call, m.DelegateCall):
        return f"delegate {plan.delegates[call.delegate_index].id}{_values(call.args)}"
    if isinstance(call, m.MoveCall):
        return f"move %{call.move_from} to %{call.move_to}"
    if isinstance(call, m.JumpFalseCall):
        return f"if not %{call.cond_value_index} go to [{call.destination_instruction}]"
    return str(call)
