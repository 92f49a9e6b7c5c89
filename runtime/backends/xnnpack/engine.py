"""The interface of the engines that run a partition, and the source of their times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum

import torch

from runtime.backends.xnnpack.model import PartitionPlan, PayloadNode, Value
from runtime.delegates.errors import DelegateError
from runtime.delegates.interface import HOST_EMULATION, BoundCall, DelegateTracer
from runtime.errors import ErrorCode, ExecutionError, invalid_argument
from runtime.memory.slots import TensorSlot


class TimeSource(Enum):
    """Source of times; times of different sources are never added up."""

    HOST = HOST_EMULATION
    KERNELS = "measured on real kernels"
    STEPS = "measured on real kernels, node by node"


class Engine(ABC):
    """Runs one partition. Inputs and results have memory order and stored dtypes.

    Attributes:
        plan: the checked payload
        time_source: of its times
    """

    plan: PartitionPlan
    time_source: TimeSource

    @abstractmethod
    def run(self, inputs: Sequence[torch.Tensor], tracer: DelegateTracer) -> list[torch.Tensor]:
        """Run all nodes and return the results, in the order of arguments.

        Raises: DelegateError naming the node that failed
        """

    def bound(
        self,
        inputs: Sequence[tuple[Value, TensorSlot]],
        outputs: Sequence[tuple[Value, TensorSlot]],
    ) -> BoundCall | None:
        """Return a call on tensors of a method that skips conversions, None if there is none."""
        del inputs, outputs
        return None

    @abstractmethod
    def begin(self, inputs: Sequence[torch.Tensor]) -> None:
        """Set the inputs, for nodes that are run one by one."""

    @abstractmethod
    def run_node(self, index: int) -> None:
        """Run one node; those before it have run.

        Raises: DelegateError naming the node
        """

    @abstractmethod
    def value(self, ident: int) -> torch.Tensor:
        """Return a value.

        Raises: DelegateError for a value that is not computed yet
        """

    @abstractmethod
    def replace(self, ident: int, tensor: torch.Tensor) -> None:
        """Replace a value from now on."""

    def close(self) -> None:  # noqa: B027 - optional
        """Free all resources."""

    def _missing(self, value: Value) -> DelegateError:
        return DelegateError(
            ErrorCode.InvalidState,
            f"value {value.ident} is not computed yet",
            partition=self.plan.partition,
        )


def at_node(
    error: Exception, node: PayloadNode, partition: int, *, loading: bool = False
) -> DelegateError:
    """Return an error with the node that raised it."""
    if isinstance(error, DelegateError):
        return error
    if isinstance(error, ExecutionError):
        code, reason = error.code, error.reason
    else:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        short = isinstance(error, MemoryError) or "can't allocate memory" in reason
        code = invalid_argument(reason).code
        code = ErrorCode.MemoryAllocationFailed if short else code
    if loading and code is not ErrorCode.DelegateMemoryAllocationFailed:
        code = ErrorCode.DelegateInvalidCompatibility
    return DelegateError(
        code,
        reason,
        partition=partition,
        node=node.index,
        kind=node.kind,
        debug_handle=node.handle,
    )
