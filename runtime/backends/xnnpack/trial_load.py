"""A partition loaded to see whether it loads, and let go of again."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.backends.xnnpack.engine_choice import kernels
from runtime.backends.xnnpack.errors import PartitionError
from runtime.backends.xnnpack.model import Plan
from runtime.backends.xnnpack.native.constants import ConstantStore
from runtime.backends.xnnpack.native.engine import NativeEngine
from runtime.backends.xnnpack.native.process import Kernels
from runtime.backends.xnnpack.native.stepwise import StepEngine
from runtime.backends.xnnpack.torch_engine import HostEngine
from runtime.errors import ExecutionError

LOADING, SHAPES, ENDED = "initialisation", "shapes", "ended"


@dataclass(frozen=True, slots=True)
class Refused:
    """What an engine does not load.

    Attributes:
        phase: ``initialisation``, ``shapes`` when it loads and its first run would fail, or
            ``ended`` when the process of the kernels did
        errors: one for each node that is to blame; one without a node where none could be named
    """

    phase: str
    errors: tuple[ExecutionError, ...]


def try_native(plan: Plan) -> Refused | None:
    """Load a partition on the real kernels, alone in their process; return what is wrong with it.

    The kernels must be available. Their process is a new one when the last has ended.
    """
    process = kernels()
    try:
        engine = NativeEngine(plan, process)
    except ExecutionError as error:
        if not process.alive:
            return Refused(ENDED, (_killer(plan) or error,))
        return Refused(LOADING, tuple(_refused(plan, process)) or (error,))
    try:
        engine.take_shapes()
    except ExecutionError as error:
        return Refused(SHAPES if process.alive else ENDED, (error,))
    finally:
        engine.close()
    return None


def try_torch(plan: Plan) -> Refused | None:
    """Load a partition on torch's kernels; return what is wrong with it."""
    try:
        HostEngine(plan).close()
    except ExecutionError as error:
        return Refused(LOADING, (error,))
    return None


def _refused(plan: Plan, process: Kernels) -> list[PartitionError]:
    """Return the refusal of each node that the library does not take alone."""
    found: list[PartitionError] = []
    try:
        StepEngine(plan, process, ConstantStore(process, plan), found).close()
    except PartitionError as error:
        found.append(error)
    return found


def _killer(plan: Plan) -> ExecutionError | None:
    """Return an error with the node that ends the process when it is alone, None for none."""
    process = kernels()
    try:
        StepEngine(plan, process, ConstantStore(process, plan)).close()
    except ExecutionError as error:
        return error
    return None
