"""A method after planning, as an exported program of out variants."""

from __future__ import annotations

import copy
from typing import Any

from torch.export import ExportedProgram

from compiler.memory.blocks import MemoryPlan
from compiler.memory.lifetimes import Schedule
from compiler.memory.out_graph import OutGraph


def out_program(program: ExportedProgram, steps: Schedule, plan: MemoryPlan) -> ExportedProgram:
    """Return a method as a graph of out variants whose specs say where each value is.

    Args:
        program: the edge program it was planned from; not changed
        steps: its schedule
        plan: the places
    """
    made = OutGraph(program, steps)
    for block, spec in made.of_block.items():
        if plan.offsets[block] >= 0:
            spec.mem_id, spec.mem_offset = plan.place(block)
    made.module.meta["non_const_buffer_sizes"] = [0, *plan.arena_sizes]
    # A verifier of torch would refuse calls that write, and cannot be told not to.
    planned: Any = copy.copy(program)
    planned._graph_module = made.module
    return planned
