"""A method after planning, as an exported program of out variants."""

from __future__ import annotations

import copy
from typing import Any
from weakref import WeakKeyDictionary

from torch.export import ExportedProgram

from compiler.memory.methods import PlannedMethod
from compiler.memory.out_graph import OutGraph

# The planned method of each returned program, so that it can be emitted again.
_PLANNED: WeakKeyDictionary[Any, PlannedMethod] = WeakKeyDictionary()


def out_program(planned: PlannedMethod) -> ExportedProgram:
    """Return a method as a graph of out variants whose specs have the place of each value."""
    plan = planned.plan
    built = OutGraph(planned.program, planned.steps)
    for block, spec in built.of_block.items():
        if plan.offsets[block] >= 0:
            spec.mem_id, spec.mem_offset = plan.place(block)
    built.module.meta["non_const_buffer_sizes"] = [0, *plan.arena_sizes]
    # A verifier of torch would refuse calls that write, and has no option for it.
    program: Any = copy.copy(planned.program)
    program._graph_module = built.module
    _PLANNED[program] = planned
    return program


def planned_method(program: ExportedProgram) -> PlannedMethod | None:
    """Return the planned method of an `out_program`, None for any other or a changed program.

    Its graph only shows the plan; emission uses the edge graph.
    """
    planned = _PLANNED.get(program)
    if planned is None:
        return None
    shown = OutGraph(planned.program, planned.steps).module.graph
    return planned if str(shown) == str(program.graph) else None
