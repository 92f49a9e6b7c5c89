"""Straight pieces of plans whose results stay in their slots, such as those with jumps.

No jump leads into the middle of a piece, so that graphs may stand for stretches of it. It has to
run a few times first: one in a branch may do so long after the method did.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from runtime.execution.binding import BoundInstruction, Call
from runtime.execution.fused.scripts import has_scripts
from runtime.execution.fused.stretches import Stretch, scripted_calls
from runtime.execution.fused.symbolic import Scope
from runtime.execution.partitions import RunPosition
from schema.objects.cyclic_gc import gc_suspended
from schema.program import model as m

RUNS_BEFORE_GRAPHS = 3  # recording takes as long as some runs


class BasicBlock:
    """Consecutive instructions that run as one call, which returns the instruction behind them.

    Args:
        calls: of the instructions
        start: the first instruction
        scope: the shared state of the instructions
        position: of the running instruction, kept up to date

    Attributes:
        calls: in order; graphs, once it has run a few times
        count: number of its instructions
    """

    __slots__ = ("_end", "_places", "_position", "_runs", "_scope", "calls", "count")

    def __init__(
        self, calls: Sequence[Call], start: int, scope: Scope, position: RunPosition
    ) -> None:
        self.calls = list(calls)
        self.count = len(calls)
        self._places = list(range(start, start + len(calls)))
        self._end = start + len(calls)
        self._scope: Scope | None = scope if has_scripts() else None
        self._position = position
        self._runs = 0

    def __call__(self) -> int:
        """Run the instructions; the position names the one that runs, after an error as well."""
        if self._scope is not None:
            self._runs += 1
            if self._runs > RUNS_BEFORE_GRAPHS:
                self._record(self._scope)
                return self._end
        position = self._position
        call: Any = None
        try:
            for place, call in zip(self._places, self.calls, strict=True):
                position.instruction = place
                call()
        except Exception:
            if isinstance(call, Stretch):
                position.instruction = call.place
            raise
        return self._end

    @gc_suspended()
    def _record(self, scope: Scope) -> None:
        """Run the instructions, and let graphs stand for stretches of them from the next run on."""
        self._scope = None
        made = scripted_calls(self.calls, self._places, scope, self._notice)
        self.calls, self._places = made.calls, made.places

    def _notice(self, place: int) -> None:
        self._position.instruction = place


def blocks_of(
    instructions: Sequence[BoundInstruction],
    chain: m.Chain,
    calls: list[Call],
    scope: Scope,
    position: RunPosition,
) -> list[Call]:
    """Return the calls of a chain, those of its blocks at their first instruction.

    Args:
        instructions: of the chain, bound
        chain: it in the plan
        calls: of its instructions
        scope: the shared state of the instructions
        position: of the running instruction
    """
    found = list(calls)
    begins = sorted({0, len(calls), *_borders(chain)})
    for start, end in pairwise(begins):
        last = end - 1 if instructions[end - 1].event == "JF_CALL" else end
        if last - start > 1:
            found[start] = BasicBlock(calls[start:last], start, scope, position)
    return found


def _borders(chain: m.Chain) -> list[int]:
    """Return the instructions behind jumps, and those that jumps lead to."""
    borders: list[int] = []
    for place, instruction in enumerate(chain.instructions):
        args = instruction.instr_args
        if isinstance(args, m.JumpFalseCall):
            borders += (place + 1, args.destination_instruction)
    return borders
