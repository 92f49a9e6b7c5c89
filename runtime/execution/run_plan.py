"""How a method is run: a plan that checks every shape first, and the one chosen after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from runtime.execution.binding import Call
from runtime.execution.chains import Chains
from runtime.execution.fused import FusedRun, plan_fused_run, resolved_calls
from runtime.execution.ways import run_calls, run_fused, run_resolved
from schema.objects.cyclic_gc import gc_suspended


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How a method is run; chosen once, when a run has checked every shape.

    Attributes:
        untraced: runs all instructions without a tracer
        calls: by chain, the call of each instruction in `untraced` unless it is fused
        traced: by chain, the call of each instruction in runs with a tracer
        fused: the fused run of `untraced`, None if it is not fused
        is_final: whether it was chosen after a run that checked every shape
    """

    untraced: Callable[[], None]
    calls: Sequence[Sequence[Call]]
    traced: Sequence[Sequence[Call]]
    fused: FusedRun | None = None
    is_final: bool = False

    def restore(self) -> None:
        """Point every tensor at its planned memory, as traced runs and single steps need it."""
        if self.fused is not None:
            self.fused.deactivate()


def checking_plan(chains: Chains) -> RunPlan:
    """Return the plan of the first run, in which every shape is checked."""
    calls = chains.calls
    return RunPlan(partial(run_calls, chains, calls), calls, calls)


@gc_suspended()
def final_plan(chains: Chains) -> RunPlan:
    """Return the plan of all runs after a complete one: fused where the program allows it."""
    fused = plan_fused_run(chains.plan, chains.instructions, chains.table)
    if fused is None:
        calls = resolved_calls(chains.plan, chains.instructions, chains.table, chains.position)
        untraced = partial(run_resolved, chains, calls)
        return RunPlan(untraced, calls, chains.calls, is_final=True)
    traced = list(chains.calls[0])
    for index, call in fused.direct.items():
        traced[index] = call
    return RunPlan(partial(run_fused, chains, fused), chains.calls, [traced], fused, is_final=True)


def planned_beside_results(chains: Chains) -> RunPlan:
    """Return the final plan; tensors keep the results of the run that is over."""
    plan = final_plan(chains)
    if plan.fused is not None:
        plan.fused.restore()
    return plan
