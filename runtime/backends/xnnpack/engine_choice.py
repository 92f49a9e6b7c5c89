"""Chooses the engine of a partition."""

from __future__ import annotations

from typing import ClassVar

from runtime.backends.xnnpack.engine import Engine
from runtime.backends.xnnpack.model import PartitionPlan
from runtime.backends.xnnpack.native.detect import availability, threads
from runtime.backends.xnnpack.native.engine import NativeEngine
from runtime.backends.xnnpack.native.local import LocalKernels
from runtime.backends.xnnpack.native.process import KernelProcess, Kernels
from runtime.backends.xnnpack.torch_engine import TorchEngine
from runtime.delegates.errors import DelegateError
from runtime.errors import ErrorCode, ExecutionError, invalid_argument

AUTO, NATIVE, TORCH = "auto", "native", "torch"
NAMES = (AUTO, NATIVE, TORCH)


def engine_of(plan: PartitionPlan, name: str) -> tuple[Engine, str]:
    """Return the engine of a partition, and why it is not the preferred one.

    Args:
        plan: the checked payload
        name: ``auto`` prefers the real kernels where they are available

    Raises: DelegateError if the engine cannot be used, or refuses the payload
    """
    if name not in NAMES:
        raise invalid_argument(f"unknown engine {name!r}; available: {', '.join(NAMES)}")
    if name == TORCH:
        return TorchEngine(plan), ""
    found = availability()
    if found.folder is not None:
        return _native(plan, fall_back=name == AUTO)
    if name == NATIVE:
        raise DelegateError(ErrorCode.NotSupported, found.reason, partition=plan.partition)
    return TorchEngine(plan), found.reason


def _native(plan: PartitionPlan, *, fall_back: bool) -> tuple[Engine, str]:
    try:
        return NativeEngine(plan, kernels()), ""
    except ExecutionError as error:
        if not fall_back:
            raise
        return TorchEngine(plan), f"The real kernels refuse it: {error.reason}."


class KernelPool:
    """The real kernels of this process, and those for other thread counts."""

    kernels: Kernels | None = None
    here = False
    count = 0
    others: ClassVar[dict[int, Kernels]] = {}


def run_kernels_here() -> None:
    """Let the real kernels run in this process, which they may crash: for workers only.

    By default they run in a child process. The self-test always does.
    """
    if not KernelPool.here:
        KernelPool.here, KernelPool.kernels = True, None


def kernels() -> Kernels:
    """Return the real kernels for as many threads as torch uses, in a new process if needed."""
    _for_threads(threads())
    found, folder = KernelPool.kernels, availability().folder
    if found is None or not found.alive:
        assert folder is not None
        make = LocalKernels if KernelPool.here else KernelProcess
        found = KernelPool.kernels = make(folder, threads())
    return found


def _for_threads(count: int) -> None:
    """Select the kernels with that many threads; loaded partitions keep their own."""
    if KernelPool.kernels is not None and KernelPool.count != count:
        KernelPool.others[KernelPool.count] = KernelPool.kernels
        KernelPool.kernels = KernelPool.others.get(count)
    KernelPool.count = count
