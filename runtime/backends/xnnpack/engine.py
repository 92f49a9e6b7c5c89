"""What every engine does with a partition, and what its times are worth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum

import torch

from runtime.backends.xnnpack.errors import PartitionError
from runtime.backends.xnnpack.model import Node, Plan, Value
from runtime.delegates.interface import HOST_EMULATION, DelegateTracer
from runtime.errors import ErrorCode, ExecutionError, invalid_argument


class Measured(Enum):
    """Where times come from; times of different kinds are never added up."""

    HOST = HOST_EMULATION
    KERNELS = "measured on real kernels"
    STEPS = "measured on real kernels, node by node"


class Engine(ABC):
    """Runs one partition. Tensors go in and out in the order of memory and in stored types.

    Attributes:
        plan: the checked payload
        measured: where its times come from
    """

    plan: Plan
    measured: Measured

    @abstractmethod
    def run(self, inputs: Sequence[torch.Tensor], tracer: DelegateTracer) -> list[torch.Tensor]:
        """Run all nodes and return the results, by argument.

        Raises: PartitionError naming the node that failed
        """

    @abstractmethod
    def begin(self, inputs: Sequence[torch.Tensor]) -> None:
        """Set the inputs; nodes are run one by one after it."""

    @abstractmethod
    def run_node(self, index: int) -> None:
        """Run one node; those before it were run.

        Raises: PartitionError naming the node
        """

    @abstractmethod
    def value(self, ident: int) -> torch.Tensor:
        """Return what a value holds.

        Raises: PartitionError for a value that nothing has made yet
        """

    @abstractmethod
    def replace(self, ident: int, tensor: torch.Tensor) -> None:
        """Let a value hold something else from now on."""

    def close(self) -> None:  # noqa: B027 - need not do anything
        """Let go of everything."""

    def _missing(self, value: Value) -> PartitionError:
        return PartitionError(
            ErrorCode.InvalidState,
            f"value {value.ident} holds nothing yet",
            partition=self.plan.partition,
        )


def at_node(
    error: Exception, node: Node, partition: int, *, loading: bool = False
) -> PartitionError:
    """Return an error with the node where it was raised."""
    if isinstance(error, PartitionError):
        return error
    if isinstance(error, ExecutionError):
        code, reason = error.code, error.reason
    else:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        short = isinstance(error, MemoryError) or "can't allocate memory" in reason
        code = invalid_argument(reason).code
        code = ErrorCode.MemoryAllocationFailed if short else code
    if loading:
        code = ErrorCode.DelegateInvalidCompatibility
    return PartitionError(
        code,
        reason,
        partition=partition,
        node=node.index,
        kind=node.kind,
        debug_handle=node.handle,
    )
