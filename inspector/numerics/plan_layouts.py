"""In which order of dimensions instructions hold the values of a recorded graph.

Passes of vendors move images to channels last: they permute what an operator for that order reads,
and permute its results back later, behind plain operators that then compute in the other order.
Shapes tell of that only where channels, height and width differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from inspector.join.channels_last import LAST, is_last
from inspector.numerics.flat_graph import FlatNode, one_spelling
from inspector.numerics.moved import moved_dims, recorded_dims
from inspector.numerics.traced import InstructionOutput
from schema.program import instructions, operator_name
from schema.program import model as m

Order = tuple[int, ...]
"""Dimensions of the recorded value, as the instruction has them; empty for the recorded order."""

PERMUTATIONS = ("aten::permute_copy", "aten::transpose_copy")
UNKNOWN: Order = (-1,)


class PlanLayouts:
    """The order of the dimensions of each instruction's outputs, where it is another one."""

    def __init__(
        self,
        plan: m.ExecutionPlan,
        outputs: Mapping[int, Sequence[InstructionOutput]],
        reads: Callable[[int], Sequence[int]],
        node: Callable[[int], FlatNode | None],
    ) -> None:
        """Walk the instructions once.

        Args:
            plan: of the method
            outputs: tensors that each instruction makes; none if no image was moved
            reads: returns the indices of the tensors that a kernel call reads
            node: returns the recorded permutation that an instruction is, None for others
        """
        self._plan, self._reads, self._node = plan, reads, node
        self._by_value: dict[int, Order] = {}
        self._found: dict[tuple[int, int], Order] = {}
        self._moves: dict[int, int] = {}
        for step, (_, _, instruction) in enumerate(instructions(plan) if outputs else ()):
            if isinstance(call := instruction.instr_args, m.KernelCall):
                for output in outputs.get(step, ()):
                    self._put(output, self._of_call(step, call, output))

    def of(self, output: InstructionOutput) -> Order:
        """Return the order of an output: empty as recorded, ``UNKNOWN`` if it is not known."""
        return self._found.get((output.instruction, output.slot), ())

    def moved(self, step: int) -> int | None:
        """Return what an instruction permutes where the recorded graph does not."""
        return self._moves.get(step)

    def _put(self, output: InstructionOutput, order: Order) -> None:
        if order == tuple(range(len(order))):
            order = ()
        self._by_value[output.value] = order
        if order:
            self._found[output.instruction, output.slot] = order

    def _of_call(self, step: int, call: m.KernelCall, output: InstructionOutput) -> Order:
        name, rank = operator_name(self._plan, call), len(output.sizes)
        if is_last(name) or "_nchw" in name:
            return LAST if is_last(name) and rank == len(LAST) else ()
        reads = [index for index in self._reads(step) if index in self._by_value]
        orders = {self._by_value[index] for index in reads}
        node = self._node(step)
        if one_spelling(name) in PERMUTATIONS:
            dims = moved_dims(self._plan, call, rank)
            before = next(iter(orders), ()) or tuple(range(rank))
            if len(dims) != rank or len(before) != rank:
                return UNKNOWN
            if node is None:
                self._moves[step] = self._reads(step)[0]
            return _beside(node, tuple(before[dim] for dim in dims))
        if not any(orders):
            return ()
        if len(orders) > 1 or len(next(iter(orders))) != rank:
            return UNKNOWN
        return _beside(node, orders.pop())


def _beside(node: FlatNode | None, order: Order) -> Order:
    """Return the order beside the value of a recorded permutation of what has an order."""
    if node is None:
        return order
    dims = recorded_dims(node, len(order))
    return tuple(dims.index(dim) for dim in order) if dims else UNKNOWN
