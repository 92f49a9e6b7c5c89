"""Fusion of graph nodes into steps, each of which becomes one payload node."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

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
from compiler.backends.xnnpack.patterns import PLAIN, Pattern, is_copy, pattern_of
from compiler.backends.xnnpack.precision import ConfigPrecisionType
from compiler.backends.xnnpack.quantization import (
    Affine,
    affine_of,
    affine_of_value,
    dynamic_source,
    home_of,
    is_dequantize,
    is_quantize,
    quantizing_name_of_choice,
)
from compiler.backends.xnnpack.views import without_views
from compiler.dialect.templates import walk
from compiler.errors import UnsupportedError, at
from compiler.untyped import aten

Node = torch.fx.Node
BATCH_NORM = aten._native_batch_norm_legit_no_training.default
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
class PayloadStep:
    """One or a few payload nodes, and the operators fused into them.

    Attributes:
        node: the operator that is applied
        nodes: all operators, that one first
        bounds: of the result, from an activation
        norms: batch norms folded into the weights, in order
        pattern: plain or quantized
        transposed: an operand that its kernel transposes on reading, and its source
    """

    node: Node
    nodes: list[Node] = field(default_factory=list[Node])
    bounds: tuple[float, float] | None = None
    norms: list[Node] = field(default_factory=list[Node])
    pattern: Pattern = PLAIN
    transposed: tuple[Node, Node] | None = None

    @property
    def is_dynamic(self) -> bool:
        """Return whether its input is dynamically quantized."""
        return self.pattern.precision is ConfigPrecisionType.DYNAMIC_QUANT

    @property
    def handles(self) -> tuple[int, ...]:
        """Return the debug handles of the operators."""
        found = [node.meta.get("debug_handle") for node in self.nodes]
        return tuple(handle for handle in found if isinstance(handle, int))


class PayloadSteps:
    """A graph as steps; a value is identified by the node that computes it.

    Attributes:
        facts: about the program
        inputs: placeholders that are passed at run time, in order
        outputs: result nodes, in order
        built: steps in order, by the node whose value they compute
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.facts = Facts(program)
        self.inputs: list[Node] = []
        self.outputs: list[Node] = []
        self.built: dict[Node, PayloadStep] = {}
        self._parent: dict[Node, Node] = {}
        self._folded: dict[Node, torch.Tensor | None] = {}
        self._chosen: set[Node] = set()
        self._kept: set[Node] = set()
        graph, self._views = without_views(program.graph)
        for node in graph.nodes:
            self._read(node)

    def root(self, node: Node) -> Node:
        """Return the node that computes a value, skipping nodes that only forward it."""
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
        step = self.built.get(node)
        given = (self.read_by(step, n) for n in node.all_input_nodes if is_tensor(n))
        roots = dict.fromkeys(self.root(n) for n in given)
        yield from (root for root in roots if not self.is_constant(root))

    def read_by(self, step: PayloadStep | None, node: Node) -> Node:
        """Return the node whose value a step reads; a quantized step reads the quantized value."""
        if step is not None and step.transposed is not None and step.transposed[0] is node:
            return step.transposed[1]
        quantized = step is not None and step.pattern.affine is not None
        source: Any = node.args[0] if quantized and is_dequantize(node) else node
        return source

    def affine(self, node: Node) -> Affine | None:
        """Return scale and zero point of a value, None for floating point."""
        root = self.root(node)
        step = self.built.get(root)
        if step is not None and step.pattern.affine is not None:
            return step.pattern.affine
        return affine_of_value(root)

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
        elif source is not None and self._quantizes(node, source):
            return
        elif source is not None and is_copy(node) and self._keeps_scale(node):
            self._parent[node] = source.args[0]  # pyright: ignore[reportArgumentType]
        elif source is not None and (op is operator.getitem or is_copy(node)):
            self._parent[node] = source
        elif source is None or not (self._folds_norm(node, source) or self._bounds(node, source)):
            self._make(node)

    def _make(self, node: Node) -> None:
        pattern = pattern_of(node, self.facts)
        nodes = [node, *_quantizing(node, pattern), *self._views.get(node, ())]
        step = PayloadStep(node, nodes, pattern=pattern)
        self.built[node] = step
        if op_of(node) is aten.bmm.default:
            self._read_transposed(step)

    def _read_transposed(self, step: PayloadStep) -> None:
        """Fuse the transpose of a matmul's second operand."""
        first, second = cast("tuple[Node, Node]", step.node.args)
        built = None if first is second else self._sole_producer(second)
        if built is not None and _swaps_matrices(built.node):
            step.transposed = second, cast("Node", built.node.args[0])
            step.nodes += built.nodes
            del self.built[built.node]

    def _keeps_scale(self, node: Node) -> bool:
        """Return whether a copy is between a dequantize and its quantize."""
        kept = pattern_of(node, self.facts).affine is not None
        if kept:
            self._kept.add(node)
        return kept

    def _quantizes(self, node: Node, source: Node) -> bool:
        """Return whether a node is a quantize or dequantize with other users."""
        if quantizing_name_of_choice(node) or source in self._chosen:
            self._chosen.add(node)
        elif is_quantize(node):
            self._read_quantize(node, source)
        elif is_dequantize(node):
            self._read_dequantize(node, source)
        else:
            return False
        return True

    def _read_quantize(self, node: Node, source: Node) -> None:
        if self._chosen.intersection(node.all_input_nodes):
            return  # of a dynamic chain, whose last node determines the value read
        _known(node)
        step = self.built.get(self.root(source))
        pattern = PLAIN if step is None else step.pattern
        is_result = pattern.affine is not None and node in pattern.along
        if source in self._kept or is_result:
            self._parent[node] = source
        else:
            self.built[node] = PayloadStep(node, [node])

    def _read_dequantize(self, node: Node, source: Node) -> None:
        given = dynamic_source(node)
        patterns = [pattern_of(user, self.facts) for user in node.users]
        if given is not None:
            if any(p.precision is not ConfigPrecisionType.DYNAMIC_QUANT for p in patterns):
                raise UnsupportedError(
                    f"the quantized input of {node} is read in floating point, {at(node)}"
                )
            self._parent[node] = given
            return
        _known(node)
        if not patterns or not all(p.affine is not None and node in p.along for p in patterns):
            self.built[node] = PayloadStep(node, [node])

    def _folds_norm(self, node: Node, source: Node) -> bool:
        step = self._sole_producer(source)
        if op_of(node) is not BATCH_NORM or step is None or step.bounds or step.is_dynamic:
            return False
        if not self._is_fixed(step):
            return False
        step.norms.append(node)
        self._absorb(node, source, step)
        return True

    def _is_fixed(self, step: PayloadStep) -> bool:
        op = op_of(step.node)
        if op not in GEMM:
            return False
        if op is not aten.convolution.default and rank_of(step.node) != 2:
            return False  # its channels are not the last dimension
        places = (2, 0) if op is aten.addmm.default else (1, 2)
        found: list[Any] = [step.node.args[p] for p in places if p < len(step.node.args)]
        if op in _AS_GIVEN and not is_transposition(found[0]):
            return False
        return home_of(found[0], self.facts) is not None and all(
            other is None or self.is_constant(other) for other in found[1:]
        )

    def _bounds(self, node: Node, source: Node) -> bool:
        bounds, step = bounds_of(node), self._sole_producer(source)
        if bounds is None or step is None or step.bounds or op_of(step.node) not in BOUNDED:
            return False
        step.bounds = bounds
        self._absorb(node, source, step)
        return True

    def _absorb(self, node: Node, source: Node, step: PayloadStep) -> None:
        step.nodes.append(node)
        self._parent[node] = source

    def _sole_producer(self, node: Node) -> PayloadStep | None:
        """Return the step whose value only one node reads."""
        while len(node.users) == 1 and node in self._parent:
            node = self._parent[node]
        return self.built.get(node) if len(node.users) == 1 else None


def _known(node: Node) -> None:
    """Check that quantization parameters are constant and per tensor.

    Raises: UnsupportedError naming the node
    """
    if affine_of(node) is None:
        raise UnsupportedError(f"{node} has no static per-tensor scale, {at(node)}")


def _quantizing(node: Node, pattern: Pattern) -> list[Node]:
    """Return the quantize and dequantize nodes that are fused into an operator's node."""
    moved: list[Any] = [n.args[0] for n in pattern.along if is_transposition(n)]
    read = [n for n in pattern.along if is_dequantize(n) and (node in n.users or n in moved)]
    if pattern.precision is ConfigPrecisionType.DYNAMIC_QUANT:
        read = [n for n in read if dynamic_source(n) is None]
    built = [n for n in pattern.along if is_quantize(n) and affine_of(n) is not None]
    return [*read, *(built if pattern.affine is not None and not _is_padding(node) else [])]


def _is_padding(node: Node) -> bool:
    return op_of(node) is aten.constant_pad_nd.default


def _swaps_matrices(node: Node) -> bool:
    """Return whether a node transposes each matrix of a batch."""
    if op_of(node) is not aten.permute_copy.default:
        return False
    order: Any = node.args[1]
    return [dim % 3 for dim in order] == [0, 2, 1]
