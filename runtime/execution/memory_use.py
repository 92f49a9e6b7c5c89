"""The memory of a loaded method: planned buffers, constants, and what kernels take on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from runtime.execution.binding import Step
from runtime.execution.fused.operators import VIEWS
from runtime.kernels.rule import Style
from runtime.program.values import Boxed, ValueTable
from runtime.tracing.tracer import EventTracer
from schema.program import model as m


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of a method.

    Attributes:
        planned_bytes: of each planned buffer, from buffer 1 on
        constant_bytes: of the constants it reads, which lie in the program and are not copied
        temporary_bytes: most that the results of one instruction take before they are stored;
            what libraries take inside of a kernel is theirs
    """

    planned_bytes: tuple[int, ...]
    constant_bytes: int
    temporary_bytes: int


def memory_use(
    plan: m.ExecutionPlan, table: ValueTable, chains: Sequence[Sequence[Step]]
) -> MemoryUse:
    """Return the memory of a method."""
    slots = table.slots.values()
    constant = sum(s.capacity * s.tensor.element_size() for s in slots if s.constant)
    peaks = (_temporary(step, table) for chain in chains for step in chain)
    return MemoryUse(tuple(plan.non_const_buffer_sizes[1:]), constant, max(peaks, default=0))


def _temporary(step: Step, table: ValueTable) -> int:
    parts = step.parts
    if parts is None or parts.kernel.rule.style is not Style.RESULT or step.operator in VIEWS:
        return 0
    total = 0
    for index in step.logged:
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
