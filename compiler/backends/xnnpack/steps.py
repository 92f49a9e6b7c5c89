"""From a graph to steps: what becomes one node of a payload, and what is folded into it."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.backends.xnnpack.facts import (
    Facts,
    bounds_of,
    is_tensor,
    is_transposition,
    op_of,
    rank_of,
)
from compiler.edge.dim_order import CLONE_DIM_ORDER, TO_DIM_ORDER_COPY
from compiler.edge.templates import walk
from compiler.untyped import aten

Node = torch.fx.Node
BATCH_NORM = aten._native_batch_norm_legit_no_training.default
COPIES = frozenset((aten.clone.default, CLONE_DIM_ORDER, TO_DIM_ORDER_COPY))
GEMM = frozenset(
    (aten.convolution.default, aten.linear.default, aten.addmm.default, aten.mm.default)
)
_AS_GIVEN = frozenset((aten.addmm.default, aten.mm.default))  # their weight is [in, out]
BOUNDED = GEMM | frozenset(
    (
        aten.add.Tensor,
        aten.add.Scalar,
        aten.sub.Tensor,
        aten.sub.Scalar,
        aten.mul.Tensor,
        aten.mul.Scalar,
    )
)
"""Operators whose payload node bounds its result."""


@dataclass
class Step:
    """One node of a payload, or a few, and the operators they stand for.

    Attributes:
        node: the operator that says what is done
        nodes: all operators, that one first
        bounds: of the result, from an activation
        norms: batch norms folded into the weights, in order
    """

    node: Node
    nodes: list[Node] = field(default_factory=list[Node])
    bounds: tuple[float, float] | None = None
    norms: list[Node] = field(default_factory=list[Node])

    @property
    def handles(self) -> tuple[int, ...]:
        """Return the debug handles of the operators."""
        found = [node.meta.get("debug_handle") for node in self.nodes]
        return tuple(handle for handle in found if isinstance(handle, int))


class Steps:
    """A graph as steps; a value is known by the node that computes it.

    Attributes:
        facts: about the program
        inputs: placeholders that are given at run time, in order
        outputs: nodes that leave, in order
        made: by the node whose value it computes, each step in order
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.facts = Facts(program)
        self.inputs: list[Node] = []
        self.outputs: list[Node] = []
        self.made: dict[Node, Step] = {}
        self._parent: dict[Node, Node] = {}
        self._folded: dict[Node, torch.Tensor | None] = {}
        for node in program.graph.nodes:
            self._read(node)

    def root(self, node: Node) -> Node:
        """Return the node that computes the value another one only passes on."""
        while node in self._parent:
            node = self._parent[node]
        return node

    def is_constant(self, node: Node) -> bool:
        """Return whether a value is known at compile time."""
        root = self.root(node)
        return self.facts.is_constant(root) or root in self._folded

    def constant(self, node: Node) -> torch.Tensor:
        """Return a value known at compile time."""
        root = self.root(node)
        if root not in self._folded:
            return self.facts.tensor(root)
        kept = self._folded[root]
        if kept is None:
            kept = self._folded[root] = self._computed(root)
        return kept

    def operands(self, node: Node) -> Iterator[Node]:
        """Yield the values of a node's arguments that are computed at run time, each once."""
        roots = dict.fromkeys(self.root(n) for n in node.all_input_nodes if is_tensor(n))
        yield from (root for root in roots if not self.is_constant(root))

    def _computed(self, node: Node) -> torch.Tensor:
        def known(leaf: Any) -> Any:  # noqa: ANN401
            return self.constant(leaf) if isinstance(leaf, Node) else leaf

        args, kwargs = walk(known, (node.args, node.kwargs))
        with torch.no_grad():
            return op_of(node)(*args, **kwargs)

    def _read(self, node: Node) -> None:
        if node.op == "placeholder":
            if not self.facts.is_constant(node):
                self.inputs.append(node)
        elif node.op == "output":
            results: Any = node.args[0]
            self.outputs += list(results)
        elif node.op == "call_function":
            self._read_call(node)

    def _read_call(self, node: Node) -> None:
        op = op_of(node)
        source = node.args[0] if node.args and isinstance(node.args[0], Node) else None
        given = node.all_input_nodes
        if is_tensor(node) and given and all(map(self.is_constant, given)):
            self._folded[node] = None
        elif source is not None and (op is operator.getitem or op in COPIES):
            self._parent[node] = source
        elif source is None or not (self._folds_norm(node, source) or self._bounds(node, source)):
            self.made[node] = Step(node, [node])

    def _folds_norm(self, node: Node, source: Node) -> bool:
        step = self._sole_producer(source)
        if op_of(node) is not BATCH_NORM or step is None or step.bounds or not self._is_fixed(step):
            return False
        step.norms.append(node)
        self._absorb(node, source, step)
        return True

    def _is_fixed(self, step: Step) -> bool:
        op = op_of(step.node)
        if op not in GEMM:
            return False
        if op is not aten.convolution.default and rank_of(step.node) != 2:
            return False  # its channels are not the last dimension
        places = (2, 0) if op is aten.addmm.default else (1, 2)
        found = [step.node.args[p] for p in places if p < len(step.node.args)]
        if op in _AS_GIVEN and not is_transposition(found[0]):
            return False
        return self.facts.weight(found[0]) is not None and all(
            other is None or self.facts.is_constant(other) for other in found[1:]
        )

    def _bounds(self, node: Node, source: Node) -> bool:
        bounds, step = bounds_of(node), self._sole_producer(source)
        if bounds is None or step is None or step.bounds or op_of(step.node) not in BOUNDED:
            return False
        step.bounds = bounds
        self._absorb(node, source, step)
        return True

    def _absorb(self, node: Node, source: Node, step: Step) -> None:
        step.nodes.append(node)
        self._parent[node] = source

    def _sole_producer(self, node: Node) -> Step | None:
        """Return the step whose value only one node reads."""
        while len(node.users) == 1 and node in self._parent:
            node = self._parent[node]
        return self.made.get(node) if len(node.users) == 1 else None
