"""Untraced runs: results stay where kernels wrote them, and adjacent instructions are fused."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.errors import ExecutionError
from runtime.execution.binding import BoundInstruction
from runtime.execution.fused.agreement import Unoptimized
from runtime.execution.fused.blocks import BasicBlock
from runtime.execution.fused.dataflow import Dataflow
from runtime.execution.fused.fused_run import FusedRun
from runtime.execution.fused.planner import Planner
from runtime.execution.fused.resolved import resolved_calls
from runtime.execution.fused.scripts import has_scripts
from runtime.execution.fused.stretches import Stretch
from runtime.program.values import ValueTable
from schema.program import model as m

__all__ = [
    "BasicBlock",
    "FusedRun",
    "Stretch",
    "Unoptimized",
    "has_scripts",
    "plan_fused_run",
    "resolved_calls",
]


def plan_fused_run(
    plan: m.ExecutionPlan, chains: Sequence[Sequence[BoundInstruction]], table: ValueTable
) -> FusedRun | None:
    """Return how a plan is run without a tracer, once a run has checked its shapes.

    None for plans with jumps or moves, and for those in which live values overlap in memory.
    """
    if len(chains) != 1 or not chains[0]:
        return None
    flow = Dataflow(plan, table, chains[0])
    if not flow.is_sound:
        return None
    planner = Planner(flow, table)
    try:
        return planner.plan()
    except (ExecutionError, RuntimeError, TypeError, ValueError, IndexError, MemoryError):
        return None  # one call an instruction then, whose errors name the instruction
    finally:
        planner.restore()
