"""Branches, loops and variables of TOSA 1.0.

A variable is known by its name in all blocks of a graph, and keeps its value from run to run.

Source: the TOSA 1.0 specification, chapters on control flow and variable operators
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from runtime.backends.graph import Fixed, Operation, OperatorTable
from runtime.backends.graph.engine import GraphEngine
from runtime.backends.graph.nested import branch, loop
from runtime.backends.graph.registers import constant, dtype_of_value, refused
from schema.graph import Graph, GraphNode
from schema.payloads import Payload

_BRANCH, _LOOP = "COND_IF", "WHILE_LOOP"
_DECLARED, _WRITTEN = "VARIABLE", "VARIABLE_WRITE"
# Serializers write an identity from or to the tensor of a variable for a read or a write.
_OF_VARIABLES = (_DECLARED, "VARIABLE_READ", _WRITTEN, "IDENTITY")
_MOST_DEPTH = 32  # of blocks inside blocks


def tosa_engine(payload: Payload, table: OperatorTable, partition: int) -> GraphEngine:
    """Return the executor of a TOSA graph with its blocks.

    Raises: DelegateError naming the operators that are not known
    """
    binder = _Binder(payload, table, partition)
    return GraphEngine(payload, replace(table, bind=binder.bind), partition)


@dataclass(frozen=True, slots=True)
class _Binder:
    """Binds the operators of a graph and of its blocks.

    Attributes:
        payload: that has them
        table: the operators without blocks
        partition: index among the delegates of the method
        around: names of the blocks around the bound one
        variables: current values by name
        engines: of the blocks by name, one each however many nodes have it
    """

    payload: Payload
    table: OperatorTable
    partition: int
    around: tuple[str, ...] = ()
    variables: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    engines: dict[str, GraphEngine] = field(default_factory=dict[str, GraphEngine])

    def bind(self, node: GraphNode, graph: Graph) -> Operation | None:
        """Return the call of a node, None for an operator that is not known in this form."""
        if node.target in (_BRANCH, _LOOP):
            return self._control(node)
        if node.target in _OF_VARIABLES:
            return self._variable(node, graph) or self.table.bind(node, graph)
        return self.table.bind(node, graph)

    def _control(self, node: GraphNode) -> Operation | None:
        outermost = self.payload.graph
        blocks: Mapping[str, Graph] = {} if outermost is None else outermost.subgraphs
        known = [name for name in node.subgraphs if name in blocks and name not in self.around]
        if len(known) != 2:  # two are named: a block inside itself would have no end
            return None
        engines = tuple(self._engine(name, blocks[name]) for name in known)
        names = node.inputs
        if node.target == _LOOP:
            return Operation(partial(loop, engines), (tuple(names),), blocks=engines)
        operands = tuple(names[1:])
        return Operation(partial(branch, engines), (names[0], operands, operands), blocks=engines)

    def _engine(self, name: str, block: Graph) -> GraphEngine:
        if name in self.engines:
            return self.engines[name]
        if len(self.around) >= _MOST_DEPTH:
            raise refused(f"blocks are nested deeper than {_MOST_DEPTH}", self.partition)
        inner = replace(self, around=(*self.around, name))
        table, payload = replace(self.table, bind=inner.bind), replace(self.payload, graph=block)
        self.engines[name] = GraphEngine(payload, table, self.partition, name)
        return self.engines[name]

    def _variable(self, node: GraphNode, graph: Graph) -> Operation | None:
        """Return the call of a node that reads or writes a variable, None for any other node."""
        names = cast("Mapping[str, str]", graph.attributes.get("variables", {}))
        read = [one for one in node.inputs if one in names]
        written = [one for one in node.outputs if one in names]
        if node.target == _WRITTEN and not written:
            read, written = read[1:], read[:1]
        if not read and not written:
            return None
        held = self.variables
        for one in (*read, *written):
            if names[one] not in held:
                held[names[one]] = self._first(graph, one)
        if not written or node.target == _DECLARED:
            return Operation(partial(_read, held, names[(*read, *written)[0]]), (Fixed(None),))
        given = [one for one in node.inputs if one not in names]
        run = partial(_write, held, names[written[0]])
        if given:
            return Operation(run, (given[0],))
        return (
            Operation(partial(_copy, run, held, names[read[0]]), (Fixed(None),)) if read else None
        )

    def _first(self, graph: Graph, tensor: str) -> Tensor:
        """Return the value of a variable before the first run: stored with it, or zeros.

        Raises: DelegateError for one without fixed sizes
        """
        value = graph.values[tensor]
        dtype = dtype_of_value(value, self.table, self.partition)
        if value.tensor is None or dtype is None:
            raise refused(f"variable {tensor} is not a tensor", self.partition)
        named = {one.name: one.data for one in self.payload.constants}
        data = named.get(value.constant)
        if value.constant and data is not None:
            return constant(value, data, self.table, self.partition)
        try:
            return torch.zeros(tuple(map(int, value.tensor.sizes)), dtype=dtype)
        except (RuntimeError, ValueError) as error:
            why = f"variable {tensor} has the sizes {list(value.tensor.sizes)}"
            raise refused(why, self.partition) from error


def _read(held: Mapping[str, Tensor], name: str, _: None) -> Tensor:
    return held[name]


def _write(held: dict[str, Tensor], name: str, value: Tensor) -> Any:  # noqa: ANN401
    # a copy: the caller has other values in the memory of an input at the next run
    held[name] = value.to(held[name].dtype, copy=True)
    return (held[name],)


def _copy(run: Any, held: Mapping[str, Tensor], name: str, _: None) -> Any:  # noqa: ANN401
    return run(held[name])
