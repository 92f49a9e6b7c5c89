"""The schedule of an edge program: its instructions, and the memory blocks they need."""

from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram

from compiler.memory.lifetimes import Schedule, Scheduling
from compiler.memory.loops import FLOWS
from compiler.memory.specs import hinted_ranges
from schema.objects.cyclic_gc import gc_suspended


@gc_suspended()
def schedule(
    program: ExportedProgram,
    options: Any,  # noqa: ANN401 - a MemoryPlanningPass, or a pass with some of its attributes
    *,
    elide_views: bool = True,
    not_viewed: frozenset[str] = frozenset(),
    state: frozenset[str] = frozenset(),
    hints: bool = False,
) -> Schedule:
    """Return the instructions and blocks of an edge program.

    Args:
        program: the edge program
        options: which values are planned
        elide_views: let static views share memory instead of copying it
        not_viewed: placeholders whose memory views must not share
        state: buffers that are state though this method only reads them
        hints: use the sizes of the example inputs as upper bounds

    Raises: CompileError naming the node whose shape cannot be planned
    """
    scheduling = Scheduling(program, options, FLOWS)
    scheduling.elide_views = elide_views
    scheduling.not_viewed = not_viewed
    scheduling.state = state
    if hints:
        scheduling.ranges |= hinted_ranges(program)
    return scheduling.run()
