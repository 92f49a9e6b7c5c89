"""Runs without a trace: results are kept where they were made, and neighbours run as one call."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.errors import ExecutionError
from runtime.execution.binding import Step
from runtime.execution.fused.dataflow import Flow
from runtime.execution.fused.planner import LeanRun, Planner
from runtime.execution.fused.resolved import settled_calls
from runtime.program.values import ValueTable
from schema.program import model as m

__all__ = ["LeanRun", "lean_run", "settled_calls"]


def lean_run(
    plan: m.ExecutionPlan, chains: Sequence[Sequence[Step]], table: ValueTable
) -> LeanRun | None:
    """Return how a plan is run without a trace, once a careful run has checked its shapes.

    None for plans with jumps or moves, and for those in which two values need the same memory.
    """
    if len(chains) != 1 or not chains[0]:
        return None
    flow = Flow(plan, table, chains[0])
    if not flow.sound:
        return None
    planner = Planner(flow, table)
    try:
        return planner.make()
    except (ExecutionError, RuntimeError, TypeError, ValueError, IndexError, MemoryError):
        planner.undo()  # what cannot be prepared runs instruction by instruction, and says why
        return None
