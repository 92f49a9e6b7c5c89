"""Loads a partition on trial and frees it."""

from __future__ import annotations

from runtime.backends.xnnpack.engine_choice import kernels
from runtime.backends.xnnpack.model import PartitionPlan
from runtime.backends.xnnpack.native.constants import ConstantStore
from runtime.backends.xnnpack.native.engine import NativeEngine
from runtime.backends.xnnpack.native.process import Kernels
from runtime.backends.xnnpack.native.stepwise import StepEngine
from runtime.backends.xnnpack.torch_engine import TorchEngine
from runtime.delegates.errors import ENDED, LOADING, SHAPES, DelegateError, LoadFailure
from runtime.errors import ExecutionError


def try_native(plan: PartitionPlan) -> LoadFailure | None:
    """Load a partition alone on the real kernels; return its failure, None if it loads.

    The kernels must be available. They are restarted if their process has ended.
    """
    process = kernels(isolate=True)
    try:
        engine = NativeEngine(plan, process)
    except ExecutionError as error:
        if not process.alive:
            return LoadFailure(ENDED, (_killer(plan) or error,))
        return LoadFailure(LOADING, tuple(_refused(plan, process)) or (error,))
    try:
        engine.take_shapes()
    except ExecutionError as error:
        return LoadFailure(SHAPES if process.alive else ENDED, (error,))
    finally:
        engine.close()
    return None


def try_torch(plan: PartitionPlan) -> LoadFailure | None:
    """Load a partition on torch's kernels; return its failure, None if it loads."""
    try:
        TorchEngine(plan).close()
    except ExecutionError as error:
        return LoadFailure(LOADING, (error,))
    return None


def _refused(plan: PartitionPlan, process: Kernels) -> list[DelegateError]:
    """Return the error of each node that the library refuses alone."""
    found: list[DelegateError] = []
    try:
        StepEngine(plan, process, ConstantStore(process, plan), found).close()
    except DelegateError as error:
        found.append(error)
    return found


def _killer(plan: PartitionPlan) -> ExecutionError | None:
    """Return the error of the node that crashes the process when run alone, None if none does."""
    process = kernels(isolate=True)
    try:
        StepEngine(plan, process, ConstantStore(process, plan)).close()
    except ExecutionError as error:
        return error
    return None
