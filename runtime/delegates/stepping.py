"""Delegate calls run node by node: run to a node, read or replace a value, continue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from typing_extensions import override

from runtime.errors import ErrorCode, ExecutionError, invalid_argument


@dataclass(frozen=True, slots=True)
class InnerNode:
    """A node of a partition.

    Attributes:
        index: in the partition
        kind: name of its operation
        inputs: ids of the values it reads
        outputs: ids of the values it writes
        debug_handle: of the operator it was lowered from, None if unknown
    """

    index: int
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    debug_handle: int | None


class DelegateSteps(ABC):
    """One delegate call, run node by node without a trace.

    Attributes:
        nodes: in the order they run
    """

    nodes: tuple[InnerNode, ...]

    @property
    @abstractmethod
    def position(self) -> int:
        """Return the index of the node that runs next."""

    @abstractmethod
    def step(self) -> None:
        """Run the next node.

        Raises: ExecutionError EndOfMethod after the last node
        """

    def run_to(self, node: int) -> None:
        """Run all nodes before a node.

        Raises: ExecutionError InvalidArgument for a node that has already run, or does not exist
        """
        if not self.position <= node <= len(self.nodes):
            raise invalid_argument(
                f"cannot run to node {node} from node {self.position} of {len(self.nodes)}"
            )
        while self.position < node:
            self.step()

    @abstractmethod
    def value(self, ident: int) -> torch.Tensor:
        """Return a copy of a value, with its dimensions in memory order.

        Raises: ExecutionError for an unknown value, or one that is not computed yet
        """

    def real(self, ident: int) -> torch.Tensor | None:
        """Return a quantized value dequantized, None if it is not quantized.

        Raises: ExecutionError for an unknown value, or one that is not computed yet
        """
        del ident
        return None

    @abstractmethod
    def replace(self, ident: int, tensor: torch.Tensor) -> None:
        """Replace a value for all nodes that have not run yet.

        Raises: ExecutionError for a value that cannot be replaced, or a different dtype
        """

    @abstractmethod
    def finish(self) -> None:
        """Run the remaining nodes and store the results."""


class NodeSteps(DelegateSteps):
    """A delegate call whose nodes run by their index.

    Args:
        nodes: in the order they run
        run_node: runs the node of an index
    """

    def __init__(self, nodes: tuple[InnerNode, ...], run_node: Callable[[int], object]) -> None:
        self.nodes = nodes
        self._run_node = run_node
        self._position = 0

    @property
    @override
    def position(self) -> int:
        """Return the index of the node that runs next."""
        return self._position

    @override
    def step(self) -> None:
        """Run the next node."""
        if self._position >= len(self.nodes):
            raise ExecutionError(ErrorCode.EndOfMethod, "all nodes have run")
        with torch.no_grad():
            self._run_node(self._position)
        self._position += 1


class EnteredSteps(DelegateSteps):
    """A delegate call that a method has entered.

    Args:
        inside: the call
        leave: called once, when the call has finished
    """

    def __init__(self, inside: DelegateSteps, leave: Callable[[], None]) -> None:
        self._inside = inside
        self._leave = leave
        self._is_finished = False
        self.nodes = inside.nodes

    @property
    @override
    def position(self) -> int:
        """Return the index of the node that runs next."""
        return self._inside.position

    @override
    def step(self) -> None:
        """Run the next node."""
        self._check()
        self._inside.step()

    @override
    def value(self, ident: int) -> torch.Tensor:
        """Return a copy of a value."""
        return self._inside.value(ident)

    @override
    def real(self, ident: int) -> torch.Tensor | None:
        """Return a quantized value dequantized."""
        return self._inside.real(ident)

    @override
    def replace(self, ident: int, tensor: torch.Tensor) -> None:
        """Replace a value."""
        self._check()
        self._inside.replace(ident, tensor)

    @override
    def finish(self) -> None:
        """Run the remaining nodes; the method continues after the call."""
        self._check()
        self._inside.finish()
        self._is_finished = True
        self._leave()

    def _check(self) -> None:
        if self._is_finished:
            raise ExecutionError(
                ErrorCode.InvalidState,
                "the delegate call is finished",
                remedy="Step into the next one.",
            )
