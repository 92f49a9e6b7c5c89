"""Which engine runs a partition."""

from __future__ import annotations

from typing import ClassVar

from runtime.backends.xnnpack.engine import Engine
from runtime.backends.xnnpack.errors import PartitionError
from runtime.backends.xnnpack.model import Plan
from runtime.backends.xnnpack.native.detect import availability, threads
from runtime.backends.xnnpack.native.engine import NativeEngine
from runtime.backends.xnnpack.native.local import LocalKernels
from runtime.backends.xnnpack.native.process import KernelProcess, Kernels
from runtime.backends.xnnpack.torch_engine import HostEngine
from runtime.errors import ErrorCode, ExecutionError, invalid_argument

AUTO, NATIVE, TORCH = "auto", "native", "torch"
NAMES = (AUTO, NATIVE, TORCH)


def engine_of(plan: Plan, name: str) -> tuple[Engine, str]:
    """Return the engine of a partition, and why it is not the preferred one.

    Args:
        plan: the checked payload
        name: ``auto`` takes the real kernels where they can be used

    Raises: PartitionError if the engine cannot be used, or refuses the payload
    """
    if name not in NAMES:
        raise invalid_argument(f"there is no engine {name!r}; there are {', '.join(NAMES)}")
    if name == TORCH:
        return HostEngine(plan), ""
    found = availability()
    if found.folder is not None:
        return _native(plan, fall_back=name == AUTO)
    if name == NATIVE:
        raise PartitionError(ErrorCode.NotSupported, found.reason, partition=plan.partition)
    return HostEngine(plan), found.reason


def _native(plan: Plan, *, fall_back: bool) -> tuple[Engine, str]:
    try:
        return NativeEngine(plan, kernels()), ""
    except ExecutionError as error:
        if not fall_back:
            raise
        return HostEngine(plan), f"The real kernels refuse it: {error.reason}."


class Shared:
    """The kernels that this process has, and those for other numbers of threads."""

    kernels: Kernels | None = None
    here = False
    count = 0
    others: ClassVar[dict[int, Kernels]] = {}


def run_kernels_here() -> None:
    """Let the real kernels run in this process, which may then end with them: for workers only.

    Without it they have a process of their own. The self-test has one in any case.
    """
    if not Shared.here:
        Shared.here, Shared.kernels = True, None


def kernels() -> Kernels:
    """Return the real kernels for as many threads as torch has, in a new process if need be."""
    _for_threads(threads())
    found, folder = Shared.kernels, availability().folder
    if found is None or not found.alive:
        assert folder is not None
        make = LocalKernels if Shared.here else KernelProcess
        found = Shared.kernels = make(folder, threads())
    return found


def _for_threads(count: int) -> None:
    """Take the kernels that have so many threads; what is loaded keeps its own."""
    if Shared.kernels is not None and Shared.count != count:
        Shared.others[Shared.count] = Shared.kernels
        Shared.kernels = Shared.others.get(count)
    Shared.count = count
