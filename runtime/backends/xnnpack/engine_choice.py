"""Chooses the engine of a partition."""

from __future__ import annotations

import os
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


def engine_of(plan: PartitionPlan, name: str, *, isolate: bool = False) -> tuple[Engine, str]:
    """Return the engine of a partition, and why it is not the preferred one.

    Args:
        plan: the checked payload
        name: ``auto`` prefers the real kernels where they are available
        isolate: run the real kernels in a child process

    Raises: DelegateError if the engine cannot be used, or refuses the payload
    """
    if name not in NAMES:
        raise invalid_argument(f"unknown engine {name!r}; available: {', '.join(NAMES)}")
    if name == TORCH:
        return TorchEngine(plan), ""
    found = availability()
    if found.folder is not None:
        return _native(plan, isolate=isolate, fall_back=name == AUTO)
    if name == NATIVE:
        raise DelegateError(ErrorCode.NotSupported, found.reason, partition=plan.partition)
    return TorchEngine(plan), found.reason


def _native(plan: PartitionPlan, *, isolate: bool, fall_back: bool) -> tuple[Engine, str]:
    try:
        return NativeEngine(plan, kernels(isolate=isolate)), ""
    except ExecutionError as error:
        if not fall_back:
            raise
        return TorchEngine(plan), f"The real kernels refuse it: {error.reason}."


class KernelPool:
    """The real kernels of this process, by whether they run in a child and by thread count."""

    kernels: ClassVar[dict[tuple[bool, int], Kernels]] = {}


# A fork has neither the threads of the library nor the pipes of a child.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: setattr(KernelPool, "kernels", {}))


def kernels(*, isolate: bool = False) -> Kernels:
    """Return the real kernels for as many threads as torch uses.

    Args:
        isolate: run them in a child process, which may end with them; started if there is none
    """
    key = (isolate, threads())
    found, folder = KernelPool.kernels.get(key), availability().folder
    if found is None or not found.alive:
        assert folder is not None
        make = KernelProcess if isolate else LocalKernels
        found = KernelPool.kernels[key] = make(folder, threads())
    return found
