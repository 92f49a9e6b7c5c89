"""A delegate call run node by node: run to a node, read a value, replace it, go on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from typing_extensions import override

from runtime.errors import ErrorCode, ExecutionError, invalid_argument


@dataclass(frozen=True, slots=True)
class InnerNode:
    """A node inside of a partition.

    Attributes:
        index: place in the partition
        kind: what it does
        inputs: ids of the values it reads
        outputs: ids of the values it makes
        debug_handle: of the operator it was made from, None where there is none
    """

    index: int
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    debug_handle: int | None


class DelegateSteps(ABC):
    """One delegate call, run node by node; nothing of it is recorded.

    Attributes:
        nodes: in the order they run
    """

    nodes: tuple[InnerNode, ...]

    @property
    @abstractmethod
    def position(self) -> int:
        """Return the place of the node that runs next."""

    @abstractmethod
    def step(self) -> None:
        """Run the next node.

        Raises: ExecutionError EndOfMethod when there is none left
        """

    def run_to(self, node: int) -> None:
        """Run all nodes before a node.

        Raises: ExecutionError InvalidArgument for a node that has run already, or is not there
        """
        if not self.position <= node <= len(self.nodes):
            raise invalid_argument(
                f"node {node} cannot be run to from node {self.position} of {len(self.nodes)}"
            )
        while self.position < node:
            self.step()

    @abstractmethod
    def value(self, ident: int) -> torch.Tensor:
        """Return a copy of what a value holds, in the order of memory.

        Raises: ExecutionError for a value that is not there, or that nothing has made yet
        """

    def real(self, ident: int) -> torch.Tensor | None:
        """Return the numbers that a quantised value stands for, None for any other value.

        Raises: ExecutionError for a value that is not there, or that nothing has made yet
        """
        del ident
        return None

    @abstractmethod
    def replace(self, ident: int, tensor: torch.Tensor) -> None:
        """Let a value hold something else, for the nodes that run from now on.

        Raises: ExecutionError for a value that cannot be replaced, or another element type
        """

    @abstractmethod
    def finish(self) -> None:
        """Run what is left and end the call: its results are stored."""


class EnteredSteps(DelegateSteps):
    """A delegate call that a method has entered; it is left once.

    Args:
        inside: the call
        leave: called when it is finished
    """

    def __init__(self, inside: DelegateSteps, leave: Callable[[], None]) -> None:
        self._inside = inside
        self._leave = leave
        self._left = False
        self.nodes = inside.nodes

    @property
    @override
    def position(self) -> int:
        """Return the place of the node that runs next."""
        return self._inside.position

    @override
    def step(self) -> None:
        """Run the next node."""
        self._check()
        self._inside.step()

    @override
    def value(self, ident: int) -> torch.Tensor:
        """Return a copy of what a value holds."""
        return self._inside.value(ident)

    @override
    def real(self, ident: int) -> torch.Tensor | None:
        """Return the numbers that a quantised value stands for."""
        return self._inside.real(ident)

    @override
    def replace(self, ident: int, tensor: torch.Tensor) -> None:
        """Let a value hold something else."""
        self._check()
        self._inside.replace(ident, tensor)

    @override
    def finish(self) -> None:
        """Run what is left; the method goes on behind the call."""
        self._check()
        self._inside.finish()
        self._left = True
        self._leave()

    def _check(self) -> None:
        if self._left:
            raise ExecutionError(
                ErrorCode.InvalidState,
                "the delegate call is finished",
                remedy="Step into the next one.",
            )
