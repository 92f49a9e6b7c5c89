"""The bound instructions of a method, for every way to run them, and errors with their place."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.errors import OF_SIZES, ErrorCode, ExecutionError, invalid_argument
from runtime.execution.binding import BoundInstruction
from runtime.execution.partitions import RunPosition
from runtime.kernels import built_in
from runtime.memory.slots import TensorShapeDynamism
from runtime.platform import LogLevel, log
from runtime.program.values import ValueTable
from schema.program import model as m

DEFAULT_BUDGET = 10_000_000  # instructions, as the stock runtime's

_OF_PLAN = (
    "No input of this method can have other sizes: the result does not fit the program's own plan. "
    "Compile it again, without the delegate if it is the result of one."
)


class Chains:
    """The chains of a method, bound.

    Attributes:
        plan: the execution plan that they come from
        instructions: of each chain
        calls: of each chain, the calls that check every shape
        jumps: of each chain, whether it has jumps
        events: of each chain, kernel event and instruction event of each instruction
        table: the values
        position: of the running instruction, read by code that logs from inside it
        budget: largest number of instructions in one run
        changes_sizes: whether an input may have other sizes in another run
    """

    def __init__(
        self,
        plan: m.ExecutionPlan,
        instructions: Sequence[Sequence[BoundInstruction]],
        table: ValueTable,
        position: RunPosition,
    ) -> None:
        self.plan = plan
        self.instructions = instructions
        self.calls = [[one.call for one in chain] for chain in instructions]
        self.jumps = [any(one.event == "JF_CALL" for one in chain) for chain in instructions]
        self.events = [[(one.kernel_event, one.event) for one in chain] for chain in instructions]
        self.table = table
        self.position = position
        self.budget = DEFAULT_BUDGET
        self.changes_sizes = any(
            isinstance(one := plan.values[index].val, m.Tensor)
            and one.shape_dynamism != TensorShapeDynamism.STATIC
            for index in plan.inputs
        )

    def spend(self, budget: int, count: int, chain: int) -> int:
        """Return the remaining budget after a number of instructions.

        Raises: ExecutionError InvalidProgram if it does not suffice
        """
        if count > budget:
            raise self.exhausted(chain, 0)
        return budget - count

    def exhausted(self, chain: int, index: int) -> ExecutionError:
        """Return the error of a run whose instruction budget is used up."""
        error = ExecutionError(
            ErrorCode.InvalidProgram,
            f"the run exceeded {self.budget:,} instructions; it loops forever, or needs a "
            "larger instruction budget",
            remedy="",
        )
        return self.failed(error, chain, index)

    def failed(self, error: Exception, chain: int, index: int) -> ExecutionError:
        """Return an exception of an instruction as an error of the program, with its location."""
        instructions = self.instructions[chain]
        at = instructions[index] if index < len(instructions) else None
        if not isinstance(error, ExecutionError):
            error = _translated(error, at)
        elif error.remedy in ("", OF_SIZES):
            error.remedy = _remedy_of_result(at) or error.remedy
            if error.remedy == OF_SIZES and not self.changes_sizes:
                error.remedy = _OF_PLAN
        error = error.located(
            method=self.plan.name,
            instruction=index,
            operator=at.operator if at is not None else "",
            source=self._source(chain, index),
        )
        log(LogLevel.ERROR, str(error))
        return error

    def _source(self, chain: int, index: int) -> str:
        traces = self.plan.chains[chain].stacktrace or ()
        frames = traces[index].items if index < len(traces) else ()
        return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _translated(error: Exception, at: BoundInstruction | None) -> ExecutionError:
    """Return an exception of torch or user code, with a remedy for the code at fault."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return ExecutionError(ErrorCode.MemoryAllocationFailed, reason)
    if isinstance(error, NotImplementedError) or "not implemented for" in str(error):
        remedy = "The kernel does not support this dtype."
        return ExecutionError(ErrorCode.NotSupported, reason, remedy=remedy)
    return invalid_argument(reason, remedy=_remedy(at))


def _remedy(at: BoundInstruction | None) -> str:
    if _is_built_in(at):
        return "The kernel refuses its arguments: check the values and sizes that reach it."
    raiser = "registered kernel" if at is not None and at.bound is not None else "backend"
    return f"The {raiser} raised it (__cause__ has the traceback): fix its code."


def _remedy_of_result(at: BoundInstruction | None) -> str:
    """Return the remedy for a rejected result, empty if unknown."""
    if at is None or at.bound is None or _is_built_in(at):
        return ""
    return (
        "The result of the registered kernel does not fit its plan: fix its code, or the shapes "
        "that its operator infers when it is exported."
    )


def _is_built_in(at: BoundInstruction | None) -> bool:
    """Return whether an instruction runs a built-in kernel."""
    kernel = at.bound.kernel if at is not None and at.bound is not None else None
    return kernel is not None and built_in(kernel.name) is kernel
