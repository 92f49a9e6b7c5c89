"""Untraced runs of plans with jumps: calls with shapes checked once, in straight pieces.

With jumps the instructions before and behind a piece are unknown, so each result goes to its slot.
A kernel may still write into the slot itself, and the weights of a matmul may be packed in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from runtime.execution.binding import BoundInstruction, BoundKernel, Call
from runtime.execution.fused import calls
from runtime.execution.fused.blocks import blocks_of
from runtime.execution.fused.dataflow import Dataflow
from runtime.execution.fused.matmul import PackedBudget, PackedMatmuls
from runtime.execution.fused.operators import DIRECT
from runtime.execution.fused.planner import bound_direct, is_plain
from runtime.execution.fused.symbolic import scope_of
from runtime.execution.partitions import RunPosition
from runtime.kernels import built_in
from runtime.kernels.rule import Style
from runtime.memory.slots import do_not_overlap
from runtime.program.values import ValueTable
from schema.program import model as m


class ResolvingCall:
    """A call that checks shapes when it first runs, and is a faster one from then on.

    An instruction in a branch may first run long after the method does.

    Attributes:
        is_waiting: whether it has not run yet
    """

    __slots__ = ("_call", "_resolved", "is_waiting")

    def __init__(self, checked: Call, resolved: Call) -> None:
        self.is_waiting = True
        self._call = checked
        self._resolved = resolved

    def __call__(self) -> int | None:
        """Run the instruction."""
        target = self._call()
        if self.is_waiting:
            self._call, self.is_waiting = self._resolved, False
        return target


def resolved_calls(
    plan: m.ExecutionPlan,
    chains: Sequence[Sequence[BoundInstruction]],
    table: ValueTable,
    position: RunPosition,
) -> list[list[Call]]:
    """Return the calls of each chain for runs without a tracer, with or without jumps.

    The call of a `BasicBlock` is that of its first instruction, and returns the one behind it.
    """
    budget = PackedBudget()
    resolved_chains: list[list[Call]] = []
    for chain, instructions in zip(plan.chains, chains, strict=True):
        flow = Dataflow(plan, table, instructions)
        matmuls = PackedMatmuls(flow, table, budget)
        calls_of_chain: list[Call] = [
            instruction.untraced or instruction.call for instruction in instructions
        ]
        for index, instruction in enumerate(instructions):
            resolved = _resolved(instruction.bound, flow, matmuls)
            if resolved is not None:
                calls_of_chain[index] = ResolvingCall(instruction.call, resolved)
        scope = scope_of(flow)
        resolved_chains.append(blocks_of(instructions, chain, calls_of_chain, scope, position))
    return resolved_chains


def _resolved(bound: BoundKernel | None, flow: Dataflow, matmuls: PackedMatmuls) -> Call | None:
    if (
        bound is None
        or bound.arguments is None
        or not bound.arguments.fixed
        or bound.kernel.outs != 1
    ):
        return None
    kernel = bound.kernel
    if kernel is not built_in(kernel.name) or kernel.rule.style is not Style.RESULT:
        return None
    count = len(kernel.inputs)
    outs = flow.tensors_of(bound.args[count : count + 1])
    ins = flow.tensors_of(bound.args[:count])
    if len(outs) != 1 or flow.is_moved(bound.args):
        return None
    if not all(flow.static(index) for index in (*outs, *ins)):
        return None
    out = flow.tensors[outs[0]].slot
    if out.viewed is not None or out.base is None:
        return None
    matmul = matmuls.at(bound, ())
    if matmul is not None:
        return calls.copied(matmul, out.tensor)
    disjoint = all(do_not_overlap(flow.tensors[index].slot, out) for index in ins)
    if kernel.name not in DIRECT or not disjoint or not is_plain(bound):
        return None
    return partial(_discard_result, bound_direct(bound, out.tensor))


def _discard_result(run: Callable[[], object]) -> None:
    run()  # its result must not be mistaken for a jump target
