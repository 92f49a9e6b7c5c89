"""The memory of a loaded method: planned buffers, constants, and temporary results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from runtime.execution.binding import BoundInstruction
from runtime.execution.fused.operators import VIEWS
from runtime.kernels.rule import Style
from runtime.program.values import Boxed, ValueTable
from runtime.tracing.tracer import EventTracer
from schema.program import model as m


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory use of a method, in bytes.

    Attributes:
        planned_bytes: of each planned buffer, from buffer 1 on
        constant_bytes: of its constants, which are views of the program's bytes
        temporary_bytes: largest size of the results of one instruction before they are stored,
            without the workspace of kernels
    """

    planned_bytes: tuple[int, ...]
    constant_bytes: int
    temporary_bytes: int


def memory_use(
    plan: m.ExecutionPlan, table: ValueTable, chains: Sequence[Sequence[BoundInstruction]]
) -> MemoryUse:
    """Return the memory of a method."""
    slots = table.slots.values()
    constant = sum(s.capacity * s.tensor.element_size() for s in slots if s.constant)
    peaks = (_temporary(instruction, table) for chain in chains for instruction in chain)
    return MemoryUse(tuple(plan.non_const_buffer_sizes[1:]), constant, max(peaks, default=0))


def _temporary(instruction: BoundInstruction, table: ValueTable) -> int:
    bound = instruction.bound
    if (
        bound is None
        or bound.kernel.rule.style is not Style.RESULT
        or instruction.operator in VIEWS
    ):
        return 0
    total = 0
    for index in instruction.logged:
        item = table.items[index]
        for one in item.items if isinstance(item, Boxed) else (index,):
            tensor = table.items[one]
            slot = table.slots.get(id(tensor)) if isinstance(tensor, torch.Tensor) else None
            total += 0 if slot is None else slot.capacity * slot.tensor.element_size()
    return total


def log_memory(use: MemoryUse, tracer: EventTracer) -> None:
    """Log the memory of a method as allocation events."""
    for number, size in enumerate(use.planned_bytes, 1):
        tracer.track_allocation(tracer.track_allocator(f"planned buffer {number}"), size)
    tracer.track_allocation(tracer.track_allocator("temporary"), use.temporary_bytes)
