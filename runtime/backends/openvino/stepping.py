"""A delegate call of OpenVINO, run layer by layer: the values of one probed inference, in order.

A replaced value becomes an input of the network: what follows is computed again from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from typing_extensions import override

from runtime.backends.openvino.engine import LayerEngine, Probes
from runtime.delegates.stepping import InnerNode, NodeSteps
from runtime.errors import ErrorCode, ExecutionError
from schema.graph import Graph, GraphNode, NodeKind

Tensor = torch.Tensor
_COMPUTING = (NodeKind.CALL, NodeKind.CONTROL)


class LayerSteps(NodeSteps):
    """A call of a payload; values are numbered in the order of the graph.

    Args:
        engine: of the payload
        graph: of the payload
        inputs: of the call
        store: stores the results
    """

    def __init__(
        self,
        engine: LayerEngine,
        graph: Graph,
        inputs: Sequence[Tensor],
        store: Callable[[Sequence[Tensor]], None],
    ) -> None:
        self._engine = engine
        self._graph = graph
        self._inputs = list(inputs)
        self._store = store
        self._idents = {name: place for place, name in enumerate(graph.values)}
        self._kept: dict[str, Tensor] = dict(zip(graph.inputs, self._inputs, strict=True))
        self._replaced: dict[str, Tensor] = {}
        self._values: dict[str, Tensor] = {}
        self._probes: Probes | None = None
        super().__init__(tuple(map(self._node, range(len(graph.nodes)), graph.nodes)), self._run)

    def _node(self, index: int, node: GraphNode) -> InnerNode:
        places = [
            tuple(self._idents[name] for name in names if self._graph.values[name].tensor)
            for names in (node.inputs, node.outputs)
        ]
        kind = node.target or node.kind.value
        return InnerNode(index, kind, places[0], places[1], node.debug_handle)

    def _run(self, index: int) -> None:
        node = self._graph.nodes[index]
        if node.kind not in _COMPUTING:
            return
        self._refresh()
        for name in node.outputs:
            if name in self._values:
                self._kept[name] = self._replaced.get(name, self._values[name])

    def _refresh(self) -> None:
        """Run the network if its inputs have changed."""
        if self._probes is not None:
            return
        given = self._replaced
        self._probes = self._engine.with_given(given) if given else self._engine.probes()
        self._values = self._probes.run(self._inputs)

    @override
    def value(self, ident: int) -> Tensor:
        """Return a copy of a value."""
        return self._tensor(self._name(ident)).clone()

    @override
    def replace(self, ident: int, tensor: Tensor) -> None:
        """Replace a value for the layers that run from now on."""
        name = self._name(ident)
        if self._graph.values[name].constant:
            raise _refused(f"value {ident} is a constant of the payload")
        current = self._tensor(name)
        if tensor.dtype is not current.dtype:
            raise _refused(f"value {ident} is {current.dtype}, found {tensor.dtype}")
        if tensor.shape != current.shape:
            shapes = f"{list(current.shape)}, not {list(tensor.shape)}"
            raise _refused(f"value {ident} has the shape {shapes}")
        own = tensor.detach().clone()
        if name in self._graph.inputs:
            self._inputs[self._graph.inputs.index(name)] = own
        else:
            self._replaced[name] = own
        self._kept[name] = own
        self._drop()

    def _drop(self) -> None:
        if self._probes is not None and self._probes is not self._engine.probes():
            self._engine.free(self._probes)
        self._probes = None

    @override
    def finish(self) -> None:
        """Run the remaining layers and store the results."""
        self.run_to(len(self.nodes))
        self._refresh()
        assert self._probes is not None
        outputs = [
            self._replaced.get(name, result)
            for name, result in zip(self._graph.outputs, self._probes.outputs, strict=False)
        ]
        self._store(outputs)
        self._drop()

    def _name(self, ident: int) -> str:
        names = [*self._idents]
        if not 0 <= ident < len(names):
            raise _refused(f"value {ident} not found")
        return names[ident]

    def _tensor(self, name: str) -> Tensor:
        if self._graph.values[name].constant:
            return self._engine.constant(name)
        if name not in self._kept:
            raise _refused(f"value {self._idents[name]} is not computed yet")
        return self._kept[name]


def _refused(reason: str) -> ExecutionError:
    remedy = "Choose a value that a layer computes, and a tensor of its dtype and shape."
    return ExecutionError(ErrorCode.InvalidArgument, reason, remedy=remedy)
