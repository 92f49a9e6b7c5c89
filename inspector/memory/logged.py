"""How many bytes the values of a run take when they are logged."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.files.payloads import delegate_payload
from inspector.join.operands import plan_operands
from schema.dtypes.scalar_type import known_nbytes
from schema.program import ProgramFile
from schema.program import model as m

_ALIGNMENT = 64  # bytes, of each tensor in a debug buffer
OUTPUTS, INTERMEDIATE = "outputs", "intermediate"


def logged_bytes(program: ProgramFile, method: str, level: str) -> tuple[int, bool]:
    """Return the bytes of the tensors that one run logs, and whether that is all of them.

    Loops are counted once, and delegates whose payload cannot be read with their results only: then
    it is not all. Sizes that change count with their upper bounds.

    Args:
        program: with the method
        method: its name
        level: whose values: ``OUTPUTS`` or ``INTERMEDIATE``
    """
    plan = program.plan(method)
    results = sum(_value_bytes(plan, index) for index in plan.outputs)
    if level == OUTPUTS:
        return results, True
    written = sum(
        _value_bytes(plan, index) for touched in plan_operands(plan) for index in touched.writes
    )
    inside = list(_inside(program, plan))
    jumps = any(
        isinstance(one.instr_args, m.JumpFalseCall)
        for chain in plan.chains
        for one in chain.instructions
    )
    whole = not jumps and all(size is not None for size in inside)
    return results + written + sum(size or 0 for size in inside), whole


def _value_bytes(plan: m.ExecutionPlan, index: int) -> int:
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    if not isinstance(value, m.Tensor):
        return 0
    return _padded(known_nbytes(value.scalar_type, value.sizes) or 0)


def _inside(program: ProgramFile, plan: m.ExecutionPlan) -> Iterator[int | None]:
    """Yield the bytes that each delegate call computes inside, None where that is unknown."""
    for chain in plan.chains:
        for one in chain.instructions:
            call = one.instr_args
            if not isinstance(call, m.DelegateCall) or call.delegate_index >= len(plan.delegates):
                continue
            graph = delegate_payload(program, plan, call.delegate_index).graph
            if graph is None:
                yield None
                continue
            names = {*graph.inputs, *(name for node in graph.nodes for name in node.outputs)}
            values = (graph.values[name] for name in names if name in graph.values)
            sizes = [one.tensor.nbytes for one in values if one.tensor is not None]
            yield None if None in sizes else sum(_padded(size or 0) for size in sizes)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
