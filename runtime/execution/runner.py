"""Walks the bound instructions of a method, with and without recording what they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from operator import length_hint
from typing import Any

import torch

from runtime.delegates.stepping import DelegateSteps
from runtime.errors import OF_RUN, OF_SIZES, ErrorCode, ExecutionError, invalid_argument
from runtime.execution.binding import Step
from runtime.execution.fused import LeanRun, lean_run, settled_calls
from runtime.execution.partitions import Place
from runtime.kernels import built_in
from runtime.platform import LogLevel, clock, current, log
from runtime.program.values import ValueTable
from runtime.tracing.tracer import DebugLevel, EventTracer, ProfilingLevel
from schema.garbage import uncollected
from schema.program import model as m

_torch: Any = torch
DEFAULT_BUDGET = 10_000_000  # instructions, as the stock runtime's


class Runner:
    """Runs the chains of a method one after the other.

    Attributes:
        budget: instructions that one run may take
        in_progress: whether a run was begun and has not ended
    """

    def __init__(
        self, plan: m.ExecutionPlan, chains: Sequence[list[Step]], place: Place, table: ValueTable
    ) -> None:
        self.budget = DEFAULT_BUDGET
        self.in_progress = False
        self._plan = plan
        self._chains = chains
        self._place = place
        self._table = table
        self._at = [0, 0]
        self._calls = [[step.call for step in chain] for chain in chains]
        self._settled = self._calls
        self._jumps = [any(step.event == "JF_CALL" for step in chain) for chain in chains]
        self._names = [[(step.inner, step.event) for step in chain] for chain in chains]
        self._ran = False
        self._lean: LeanRun | None = None
        self._traced = self._calls
        self._moved = False
        self._gave_back = False
        self._prepared = False

    def run(self, tracer: EventTracer | None, outputs: Callable[[], list[Any]]) -> None:
        """Run everything; log times and values where there is a tracer.

        The first run checks every shape; the later ones need not.

        Raises: ExecutionError naming the instruction that failed, InvalidState during a run
        """
        if self.in_progress:
            raise self._state("The method is in the middle of a run.")
        self.in_progress = True
        try:
            with torch.no_grad():
                if self._ran:
                    self._prepare()
                if tracer is not None:
                    self._go_home()
                    self._run_traced(tracer, outputs)
                elif self._lean is not None:
                    self._run_lean(self._lean)
                else:
                    self._run_plain()
            self._ran = True
        finally:
            self.in_progress = False
            self._at = [0, 0]

    def _prepare(self) -> None:
        """Choose the calls of the runs after the first one."""
        if self._prepared:
            return
        self._prepared = True
        with uncollected():
            self._lean = lean_run(self._plan, self._chains, self._table)
        if self._lean is not None:
            calls = list(self._calls[0])
            for index, call in self._lean.direct.items():
                calls[index] = call
            self._traced = [calls]
            self._moved = True
        else:
            self._settled = settled_calls(self._plan, self._chains, self._table)

    def _go_home(self) -> None:
        if self._moved and self._lean is not None:
            self._lean.restore()
        self._moved = self._gave_back = False

    def _run_lean(self, lean: LeanRun) -> None:
        if not self._moved:
            lean.move()
        self._moved = True
        if not self._gave_back:
            lean.give_back()
        self._gave_back = True
        self._spend(self.budget, len(self._calls[0]), 0, 0)
        left = iter(lean.calls)
        try:
            with _no_dispatch():
                for call in left:
                    call()
        except Exception as error:
            at = len(lean.calls) - 1 - length_hint(left)
            raise self._failed(error, 0, lean.places[at]) from error

    def _run_plain(self) -> None:
        left = self.budget
        for number, calls in enumerate(self._settled):
            self._place.chain = number
            if self._jumps[number]:
                left = self._run_jumping(number, left)
            else:
                left = self._spend(left, len(calls), number, 0)
                self._run_straight(number, calls)

    def _run_straight(self, number: int, calls: Sequence[Callable[[], int | None]]) -> None:
        index = 0
        place = self._place
        try:
            for index, call in enumerate(calls):
                place.instruction = index
                call()
        except Exception as error:
            raise self._failed(error, number, index) from error

    def _run_jumping(self, number: int, left: int) -> int:
        calls, place = self._settled[number], self._place
        index = 0
        try:
            while index < len(calls) and left > 0:
                left -= 1
                place.instruction = index
                target = calls[index]()
                index = index + 1 if target is None else target
        except Exception as error:
            raise self._failed(error, number, index) from error
        if index < len(calls):
            raise self._exhausted(number, index)
        return left

    def _run_traced(self, tracer: EventTracer, outputs: Callable[[], list[Any]]) -> None:
        tracer.create_event_block("Execute")
        with tracer.scope("Method::execute"):
            left = self.budget
            for number in range(len(self._chains)):
                left = self._trace_chain(tracer, number, left)
        if tracer.debug_level >= DebugLevel.OUTPUTS:
            for value in outputs():
                tracer.log_value(value, output=True)

    def _trace_chain(self, tracer: EventTracer, number: int, left: int) -> int:
        """Run a chain with an event for each instruction; return what is left of the budget."""
        self._place.chain = number
        profiles = tracer.profiling_level >= ProfilingLevel.ALL_EVENTS
        if self._jumps[number] or tracer.debug_level >= DebugLevel.INTERMEDIATE or not profiles:
            return self._trace_steps(tracer, number, left)
        calls, place, write = self._traced[number], self._place, tracer.rows.append
        tick = current().clock
        left = self._spend(left, len(calls), number, 0)
        index = 0
        try:
            for index, ((inner, event), call) in enumerate(
                zip(self._names[number], calls, strict=True)
            ):
                place.instruction = index
                start = tick()
                call()
                write((inner, event, number, index, start, tick()))
        except Exception as error:
            raise self._failed(error, number, index) from error
        return left

    def _trace_steps(self, tracer: EventTracer, number: int, left: int) -> int:
        steps, calls, place = self._chains[number], self._traced[number], self._place
        index, jumps = 0, self._jumps[number]
        try:
            while index < len(steps) and left > 0:
                left -= 1
                place.instruction = index
                start = clock()
                target = calls[index]()
                self._record(tracer, number, index, (start, clock()))
                index = target if jumps and target is not None else index + 1
        except Exception as error:
            raise self._failed(error, number, index) from error
        if index < len(steps):
            raise self._exhausted(number, index)
        return left

    def _record(self, tracer: EventTracer, number: int, index: int, times: tuple[int, int]) -> None:
        step = self._chains[number][index]
        if step.logged and tracer.debug_level >= DebugLevel.INTERMEDIATE:
            self._log_values(tracer, step, number, index)
        if tracer.profiling_level >= ProfilingLevel.ALL_EVENTS:
            tracer.rows.append((step.inner, step.event, number, index, *times))

    def _log_values(self, tracer: EventTracer, step: Step, number: int, index: int) -> None:
        if tracer.only.takes(index, step.operator):
            for value in step.logged:
                item = self._table.resolve(self._table.items[value])
                tracer.log_value(item, number, index)

    def step(self, tracer: EventTracer | None) -> None:
        """Run the next instruction.

        Raises: ExecutionError EndOfMethod when there is none left
        """
        self._come_to_next()
        if tracer is not None and not self.in_progress:
            tracer.create_event_block("Execute")
        self.in_progress = True
        self._go_home()
        with torch.no_grad():
            self._at[1] = self._one(tracer, *self._at)

    def _come_to_next(self) -> None:
        while self._at[0] < len(self._chains) and self._at[1] >= len(self._chains[self._at[0]]):
            self._at = [self._at[0] + 1, 0]
        if self._at[0] >= len(self._chains):
            self.in_progress = False
            raise ExecutionError(ErrorCode.EndOfMethod, "there is no instruction left").located(
                method=self._plan.name
            )

    @property
    def at_delegate(self) -> bool:
        """Return whether the next instruction is a delegate call."""
        number, index = self._at
        while number < len(self._chains) and index >= len(self._chains[number]):
            number, index = number + 1, 0
        return number < len(self._chains) and self._chains[number][index].enter is not None

    @property
    def instruction(self) -> int:
        """Return the index over all chains of the instruction that runs next."""
        number, index = self._at
        return sum(map(len, self._chains[:number])) + index

    def enter(self) -> DelegateSteps:
        """Begin the next instruction, a delegate call, to be run node by node.

        It is over when `leave` is called.

        Raises: ExecutionError EndOfMethod, InvalidState where there is nothing to enter
        """
        self._come_to_next()
        number, index = self._at
        self._go_home()
        enter = self._chains[number][index].enter
        self._place.chain, self._place.instruction = number, index
        self._go_home()
        try:
            with torch.no_grad():
                inside = None if enter is None else enter()
        except Exception as error:
            raise self._failed(error, number, index) from error
        if inside is None:
            raise self._failed(
                self._state("The next instruction cannot be entered."), number, index
            )
        self.in_progress = True
        return inside

    def leave(self) -> None:
        """Go on behind the instruction that was entered."""
        self._at[1] += 1

    def _one(self, tracer: EventTracer | None, number: int, index: int) -> int:
        if tracer is not None:
            return self._one_traced(tracer, number, index)
        self._place.chain, self._place.instruction = number, index
        try:
            target = self._calls[number][index]()
        except Exception as error:
            raise self._failed(error, number, index) from error
        return index + 1 if target is None else target

    def _one_traced(self, tracer: EventTracer, number: int, index: int) -> int:
        self._place.chain, self._place.instruction = number, index
        start = clock()
        try:
            target = self._calls[number][index]()
        except Exception as error:
            raise self._failed(error, number, index) from error
        self._record(tracer, number, index, (start, clock()))
        return index + 1 if target is None else target

    def reset(self) -> None:
        """Go back to the first instruction.

        Raises: ExecutionError InvalidState before the end was reached
        """
        at = self._at
        ended = at[0] >= len(self._chains) or (
            at[0] == len(self._chains) - 1 and at[1] >= len(self._chains[at[0]])
        )
        if not ended:
            raise self._state("Cannot reset until EndOfMethod has been reached.")
        self._at = [0, 0]
        self.in_progress = False

    def _spend(self, left: int, count: int, number: int, index: int) -> int:
        if count > left:
            raise self._exhausted(number, index)
        return left - count

    def _exhausted(self, number: int, index: int) -> ExecutionError:
        return self._failed(
            ExecutionError(
                ErrorCode.InvalidProgram,
                f"the run took more than {self.budget:,} instructions; it loops without end, or "
                "needs a larger instruction budget",
                remedy="",
            ),
            number,
            index,
        )

    def _state(self, reason: str) -> ExecutionError:
        return ExecutionError(ErrorCode.InvalidState, reason, remedy=OF_RUN).located(
            method=self._plan.name
        )

    def _failed(self, error: Exception, number: int, index: int) -> ExecutionError:
        """Return what a kernel raised as an error of the program, with its place."""
        step = self._chains[number][index] if index < len(self._chains[number]) else None
        if not isinstance(error, ExecutionError):
            error = _translated(error, step)
        elif error.remedy in ("", OF_SIZES):
            error.remedy = _remedy_of_result(step) or error.remedy
        error = error.located(
            method=self._plan.name,
            instruction=index,
            operator=step.operator if step is not None else "",
            source=self._source(number, index),
        )
        log(LogLevel.ERROR, str(error))
        return error

    def _source(self, number: int, index: int) -> str:
        traces = self._plan.chains[number].stacktrace or ()
        frames = traces[index].items if index < len(traces) else ()
        return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _no_dispatch() -> AbstractContextManager[Any]:
    """Return a context in which kernels are called without a look at what records gradients."""
    return _torch._C._AutoDispatchBelowAutograd()


def _translated(error: Exception, step: Step | None) -> ExecutionError:
    """Return what torch or code of the user raised, with a remedy for whose code it was."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return ExecutionError(ErrorCode.MemoryAllocationFailed, text)
    if isinstance(error, NotImplementedError) or "not implemented for" in str(error):
        remedy = "The kernel does not support this dtype."
        return ExecutionError(ErrorCode.NotSupported, text, remedy=remedy)
    return invalid_argument(text, remedy=_remedy_of(step))


def _remedy_of(step: Step | None) -> str:
    if _is_own(step):
        return "The kernel refuses its arguments: check the values and sizes that reach it."
    whose = "registered kernel" if step is not None and step.parts is not None else "backend"
    return f"The {whose} raised it (__cause__ has the traceback): mend its code."


def _remedy_of_result(step: Step | None) -> str:
    """Return what to do where an instruction's result is refused, empty where that is unknown."""
    if step is None or step.parts is None:
        return ""
    if _is_own(step):
        return ""
    return (
        "The registered kernel returned what does not fit its plan: mend its code, or the shapes "
        "that its operator infers when it is exported."
    )


def _is_own(step: Step | None) -> bool:
    """Return whether an instruction runs a built-in kernel."""
    kernel = step.parts.kernel if step is not None and step.parts is not None else None
    return kernel is not None and built_in(kernel.name) is kernel
