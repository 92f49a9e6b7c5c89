"""Runs without a trace of plans that jump: what an instruction calls once it has run carefully.

Nothing is known there about what runs before and after an instruction, so each result lies in its
slot. A kernel may still write there itself, and products may have their weights laid out ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from runtime.execution.binding import Call, Parts, Step
from runtime.execution.fused import calls
from runtime.execution.fused.dataflow import Flow
from runtime.execution.fused.matmul import PackedBudget, Products
from runtime.execution.fused.operators import DIRECT
from runtime.execution.fused.planner import bound_direct, is_plain
from runtime.kernels import built_in
from runtime.kernels.rule import Style
from runtime.memory.slots import Slot
from runtime.program.values import ValueTable
from schema.program import model as m


class Settling:
    """A call that runs carefully and then lets a faster one have its place.

    The first run of an instruction checks shapes; of a branch that may be the run of a later day.
    """

    __slots__ = ("_careful", "_index", "_later", "_list")

    def __init__(self, careful: Call, later: Call, listed: list[Call], index: int) -> None:
        self._careful = careful
        self._later = later
        self._list = listed
        self._index = index

    def __call__(self) -> int | None:
        """Run the instruction."""
        target = self._careful()
        self._list[self._index] = self._later
        return target


def settled_calls(
    plan: m.ExecutionPlan, chains: Sequence[Sequence[Step]], table: ValueTable
) -> list[list[Call]]:
    """Return the calls of each chain for runs without a trace, whatever jumps there are."""
    budget = PackedBudget()
    made: list[list[Call]] = []
    for steps in chains:
        flow = Flow(plan, table, steps)
        products = Products(flow, table, budget)
        listed: list[Call] = [step.call for step in steps]
        for index, step in enumerate(steps):
            later = _later(step.parts, flow, products)
            if later is not None:
                listed[index] = Settling(step.call, later, listed, index)
        made.append(listed)
    return made


def _later(parts: Parts | None, flow: Flow, products: Products) -> Call | None:
    if parts is None or parts.make is None or not parts.make.fixed or parts.kernel.outs != 1:
        return None
    kernel = parts.kernel
    if kernel is not built_in(kernel.name) or kernel.rule.style is not Style.RESULT:
        return None
    count = len(kernel.inputs)
    outs = flow.tensors_of(parts.args[count : count + 1])
    ins = flow.tensors_of(parts.args[:count])
    if len(outs) != 1 or not all(flow.static(index) for index in (*outs, *ins)):
        return None
    out = flow.tensors[outs[0]].slot
    if out.viewed is not None or out.base is None:
        return None
    product = products.at(parts, ())
    if product is not None:
        return calls.copied(product, out.tensor)
    apart = all(_apart(flow.tensors[index].slot, out) for index in ins)
    if kernel.name not in DIRECT or not apart or not is_plain(parts):
        return None
    return partial(_told_nothing, bound_direct(parts, out.tensor))


def _told_nothing(run: Callable[[], object]) -> None:
    run()  # what it returns is no place to jump to


def _apart(slot: Slot, out: Slot) -> bool:
    """Return whether two tensors can share no byte in any run."""
    if slot.base is None or out.base is None or slot.viewed is not None:
        return False
    if slot.constant:
        return True
    if not (slot.planned and out.planned):
        return False  # memory of the caller, which may be anywhere
    start, begin = slot.base.data_ptr(), out.base.data_ptr()
    return start + slot.base.nbytes <= begin or begin + out.base.nbytes <= start
