"""A delegate call run node by node, on either engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from typing_extensions import override

from runtime.backends.xnnpack import representation
from runtime.backends.xnnpack.engine import Engine
from runtime.backends.xnnpack.representation import STORED
from runtime.delegates.errors import DelegateError
from runtime.delegates.stepping import InnerNode, NodeSteps
from runtime.errors import ErrorCode


class PartitionSteps(NodeSteps):
    """A call of a partition.

    Args:
        engine: runs the nodes
        inputs: in memory order
        store: stores the results
    """

    def __init__(
        self,
        engine: Engine,
        inputs: Sequence[torch.Tensor],
        store: Callable[[list[torch.Tensor]], None],
    ) -> None:
        self._engine = engine
        self._store = store
        nodes = tuple(
            InnerNode(node.index, node.kind, node.read, node.outputs, node.handle)
            for node in engine.plan.nodes
        )
        super().__init__(nodes, engine.run_node)
        engine.begin(inputs)

    @override
    def value(self, ident: int) -> torch.Tensor:
        """Return a copy of a value, in memory order."""
        self._check(ident)
        return self._engine.value(ident).clone()

    @override
    def real(self, ident: int) -> torch.Tensor | None:
        """Return a quantized value dequantized, None if it is not quantized."""
        self._check(ident)
        value = self._engine.plan.values[ident]
        if value.quantization is None or value.quantization.row_dims:
            return None  # dynamically quantized rows are held as real values
        if value.data is not None:
            return representation.weight(value)
        return representation.real(value, representation.held(value, self._engine.value(ident)))

    @override
    def replace(self, ident: int, tensor: torch.Tensor) -> None:
        """Replace a value for the nodes that run from now on."""
        self._check(ident)
        value = self._engine.plan.values[ident]
        if value.data is not None:
            raise self._refused(f"value {ident} is a constant")
        requested = STORED[value.datatype]
        if tensor.dtype is not requested:
            raise self._refused(f"value {ident} is {requested}, found {tensor.dtype}")
        if tuple(tensor.shape) != tuple(self._engine.value(ident).shape):
            shape = list(self._engine.value(ident).shape)
            raise self._refused(f"value {ident} has the shape {shape}, not {list(tensor.shape)}")
        self._engine.replace(ident, tensor.detach())

    @override
    def finish(self) -> None:
        """Run the remaining nodes and store the results."""
        self.run_to(len(self.nodes))
        self._store([self._engine.value(value.ident) for value in self._engine.plan.outputs])

    def _check(self, ident: int) -> None:
        if ident not in self._engine.plan.values:
            raise self._refused(f"value {ident} not found")

    def _refused(self, reason: str) -> DelegateError:
        error = DelegateError(
            ErrorCode.InvalidArgument, reason, partition=self._engine.plan.partition
        )
        error.remedy = "Choose a value that a node computes, and a tensor of its dtype and shape."
        return error
