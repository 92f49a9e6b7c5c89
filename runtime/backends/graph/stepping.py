"""A delegate call of a graph payload, run node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from typing_extensions import override

from runtime.backends.graph.engine import GraphEngine
from runtime.delegates.stepping import InnerNode, NodeSteps
from runtime.errors import ErrorCode, ExecutionError


class GraphSteps(NodeSteps):
    """A call of a payload; values are numbered in the order of the graph.

    Args:
        engine: runs the nodes
        inputs: of the call
        store: stores the results
    """

    def __init__(
        self, engine: GraphEngine, inputs: Sequence[Any], store: Callable[[list[Any]], None]
    ) -> None:
        self._engine = engine
        self._store = store
        places = engine.places
        nodes = tuple(
            InnerNode(
                index,
                node.target or node.kind.value,
                tuple(places[name] for name in node.inputs if engine.has_tensor(name)),
                tuple(places[name] for name in node.outputs if engine.has_tensor(name)),
                node.debug_handle,
            )
            for index, node in enumerate(engine.graph.nodes)
        )
        super().__init__(nodes, engine.run_node)
        engine.begin(inputs)

    @override
    def value(self, ident: int) -> torch.Tensor:
        """Return a copy of a value."""
        return self._tensor(ident).clone()

    @override
    def replace(self, ident: int, tensor: torch.Tensor) -> None:
        """Replace a value for the nodes that run from now on."""
        current = self._tensor(ident)
        name = [*self._engine.places][ident]
        if self._engine.graph.values[name].constant:
            raise _refused(f"value {ident} is a constant")
        if tensor.dtype is not current.dtype:
            raise _refused(f"value {ident} is {current.dtype}, found {tensor.dtype}")
        if tensor.shape != current.shape:
            shapes = f"{list(current.shape)}, not {list(tensor.shape)}"
            raise _refused(f"value {ident} has the shape {shapes}")
        self._engine.replace(ident, tensor.detach().clone())

    @override
    def finish(self) -> None:
        """Run the remaining nodes and store the results."""
        self.run_to(len(self.nodes))
        self._store(self._engine.results())

    def _tensor(self, ident: int) -> torch.Tensor:
        if not 0 <= ident < len(self._engine.places):
            raise _refused(f"value {ident} not found")
        value = self._engine.value(ident)
        if not isinstance(value, torch.Tensor):
            raise _refused(f"value {ident} is not computed yet, or is not a tensor")
        return value


def _refused(reason: str) -> ExecutionError:
    remedy = "Choose a value that a node computes, and a tensor of its dtype and shape."
    return ExecutionError(ErrorCode.InvalidArgument, reason, remedy=remedy)
