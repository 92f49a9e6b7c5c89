"""Runs a method: completely by its plan, or instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from runtime.delegates.stepping import DelegateSteps
from runtime.errors import OF_RUN, ErrorCode, ExecutionError
from runtime.execution.chains import Chains
from runtime.execution.run_plan import checking_plan, final_plan, planned_beside_results
from runtime.execution.ways import run_one, run_traced
from runtime.tracing.tracer import EventTracer

_torch: Any = torch
# `no_grad` takes 1.3 us, a tenth of the run of a small network on a backend
_enable_gradients: Callable[[bool], None] = _torch._C._set_grad_enabled


class MethodRunner:
    """Runs the chains of a method one after the other.

    Attributes:
        in_progress: whether a run was begun and has not ended
        plan: how complete runs are executed
    """

    def __init__(self, chains: Chains) -> None:
        self.in_progress = False
        self.plan = checking_plan(chains)
        self._chains = chains
        self._is_checked = False  # whether a run was completed, and so checked every shape
        self._next = (0, 0)  # chain and instruction that `step` runs

    def run(self, tracer: EventTracer | None, outputs: Callable[[], list[Any]]) -> None:
        """Run all instructions; log times and values if there is a tracer.

        The first run checks every shape; the later ones rely on it. Where sizes change, it also
        plans them, so that no size that comes later has to; others are planned when they run again.

        Raises: ExecutionError naming the instruction that failed, InvalidState during a run
        """
        if self.in_progress:
            raise self._state("The method is in the middle of a run.")
        self.in_progress = True
        had_gradients = torch.is_grad_enabled()
        _enable_gradients(False)
        try:
            if self._is_checked and not self.plan.is_final:
                self.plan = final_plan(self._chains)
            if tracer is None:
                self.plan.untraced()
            else:
                self.plan.restore()
                run_traced(self._chains, self.plan.traced, tracer, outputs)
            self._is_checked = True
            if tracer is None and self._chains.changes_sizes and not self.plan.is_final:
                self.plan = planned_beside_results(self._chains)
        finally:
            _enable_gradients(had_gradients)
            self.in_progress = False
            self._next = (0, 0)

    def step(self, tracer: EventTracer | None) -> None:
        """Run the next instruction.

        Raises: ExecutionError EndOfMethod after the last instruction
        """
        chain, index = self._come_to_next()
        if tracer is not None and not self.in_progress:
            tracer.create_event_block("Execute")
        self.in_progress = True
        self.plan.restore()
        with torch.no_grad():
            self._next = (chain, run_one(self._chains, chain, index, tracer))

    def _upcoming(self) -> tuple[int, int] | None:
        """Return chain and index of the next instruction, None after the last one."""
        chain, index = self._next
        instructions = self._chains.instructions
        while chain < len(instructions) and index >= len(instructions[chain]):
            chain, index = chain + 1, 0
        return (chain, index) if chain < len(instructions) else None

    def _come_to_next(self) -> tuple[int, int]:
        upcoming = self._upcoming()
        if upcoming is None:
            self._next = (len(self._chains.instructions), 0)
            self.in_progress = False
            raise ExecutionError(ErrorCode.EndOfMethod, "all instructions have run").located(
                method=self._chains.plan.name
            )
        self._next = upcoming
        return upcoming

    @property
    def at_delegate(self) -> bool:
        """Return whether the next instruction is a delegate call."""
        upcoming = self._upcoming()
        if upcoming is None:
            return False
        return self._chains.instructions[upcoming[0]][upcoming[1]].enter is not None

    @property
    def instruction(self) -> int:
        """Return the index over all chains of the instruction that runs next."""
        chain, index = self._next
        return sum(map(len, self._chains.instructions[:chain])) + index

    def enter(self) -> DelegateSteps:
        """Begin the next instruction, a delegate call, to run it node by node.

        `leave` completes it.

        Raises: ExecutionError EndOfMethod, InvalidState where there is nothing to enter
        """
        chain, index = self._come_to_next()
        chains = self._chains
        enter = chains.instructions[chain][index].enter
        chains.position.chain, chains.position.instruction = chain, index
        self.plan.restore()
        try:
            with torch.no_grad():
                inside = None if enter is None else enter()
        except Exception as error:
            raise chains.failed(error, chain, index) from error
        if inside is None:
            raise chains.failed(
                self._state("The next instruction cannot be entered."), chain, index
            )
        self.in_progress = True
        return inside

    def leave(self) -> None:
        """Continue after the instruction that was entered."""
        self._next = (self._next[0], self._next[1] + 1)

    def reset(self) -> None:
        """Reset to the first instruction.

        Raises: ExecutionError InvalidState before the end was reached
        """
        if self._upcoming() is not None:
            raise self._state("Cannot reset until EndOfMethod has been reached.")
        self._next = (0, 0)
        self.in_progress = False

    def _state(self, reason: str) -> ExecutionError:
        return ExecutionError(ErrorCode.InvalidState, reason, remedy=OF_RUN).located(
            method=self._chains.plan.name
        )
