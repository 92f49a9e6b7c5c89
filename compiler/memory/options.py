"""How memory is planned: which values, by which planners, on which boundary."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.memory.planners import DEFAULT_PLANNERS, Planner


@dataclass(frozen=True)
class MemoryPlanningPass:
    """Options of the memory plan of a method.

    Attributes:
        memory_planning_algo: the planner; None tries all and keeps the smallest plan
        alloc_graph_input: whether inputs get a place, or the caller's memory is used
        alloc_graph_output: whether outputs get a place, or the caller's memory is used
        alloc_mutable_buffers: whether buffers that are written get a place
        alignment: bytes; where a value may start
    """

    memory_planning_algo: Planner | None = None
    alloc_graph_input: bool = True
    alloc_graph_output: bool = True
    alloc_mutable_buffers: bool = True
    alignment: int = 16

    @property
    def planners(self) -> tuple[Planner, ...]:
        """Return the planners to try."""
        if self.memory_planning_algo is not None:
            return (self.memory_planning_algo,)
        return DEFAULT_PLANNERS
