"""Walks the instructions of a plan and sees whether a value is overwritten before it is read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from schema.dtypes.scalar_type import tensor_nbytes
from schema.program import model as m


class Walk:
    """Memory as the number of the place that was written last, one entry a byte."""

    def __init__(self, plan: m.ExecutionPlan) -> None:
        self.values = [value.val for value in plan.values]
        self.operators = [op.name for op in plan.operators]
        self.calls = [instruction.instr_args for instruction in plan.chains[0].instructions]
        self.memory = np.zeros(max(plan.non_const_buffer_sizes, default=0), np.int64)
        self.handles = list(range(len(self.values)))  # moves let a value be another
        for index in plan.inputs:
            self._write(index)

    def run(self, choices: Iterator[bool]) -> int:
        """Walk to the end and return the number of instructions; jumps follow the choices."""
        at = count = 0
        while at < len(self.calls):
            call = self.calls[at]
            count += 1
            at += 1
            if isinstance(call, m.KernelCall):
                self._kernel(call)
            elif isinstance(call, m.MoveCall):
                self.handles[call.move_to] = self.handles[call.move_from]
            elif isinstance(call, m.JumpFalseCall):
                condition = self.values[call.cond_value_index]
                fixed = isinstance(condition, m.Bool)  # always False: an unconditional jump
                if fixed or not next(choices):
                    at = call.destination_instruction
        return count

    def _kernel(self, call: m.KernelCall) -> None:
        name = self.operators[call.op_index]
        reads, writes = call.args[:-1], call.args[-1:]
        if name == "executorch_prim::et_copy_index":
            reads, writes = call.args[1:], call.args[:1]
        elif name.startswith("executorch_prim") or "sym_size" in name or "scalar_dense" in name:
            reads, writes = call.args, ()
        written = {self._place(i) for i in self._tensors(writes)}
        for index in self._tensors(reads):
            if self._place(index) not in written:
                self._read(index, name)
        for index in self._tensors(writes):
            self._write(index)

    def _tensors(self, indices: tuple[int, ...]) -> list[int]:
        found: list[int] = []
        for index in indices:
            value = self.values[self.handles[index]]
            if isinstance(value, (m.TensorList, m.OptionalTensorList)):
                found += self._tensors(tuple(i for i in value.items if i >= 0))
            elif isinstance(value, m.Tensor) and value.allocation_info is not None:
                found.append(self.handles[index])
        return found

    def _place(self, index: int) -> tuple[int, int]:
        tensor = self.values[index]
        assert isinstance(tensor, m.Tensor)
        assert tensor.allocation_info is not None
        start = tensor.allocation_info.memory_offset_low
        return start, start + tensor_nbytes(tensor.scalar_type, tensor.sizes)

    def _write(self, index: int) -> None:
        start, end = self._place(self.handles[index]) if self._tensors((index,)) else (0, 0)
        self.memory[start:end] = start + 1

    def _read(self, index: int, name: str) -> None:
        start, end = self._place(index)
        assert (self.memory[start:end] == start + 1).all(), f"{name} reads value {index}"
