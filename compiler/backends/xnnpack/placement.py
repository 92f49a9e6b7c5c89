"""Assignment of channels-last layouts with the fewest transposes.

Convolutions and pooling read and write channels last, views and matmuls the contiguous layout.
All other nodes accept either: each connected group gets the layout that moves the
fewest elements at its border. A permutation reads and writes any layout at no cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum

import torch
from torch.export import ExportedProgram

from compiler.backends.xnnpack.facts import (
    argument,
    numbers,
    op_of,
    rank_of,
    shape_of,
    static_size,
    unknown_sizes,
    value_of,
)
from compiler.backends.xnnpack.layout import (
    UNIT,
    Layout,
    boundary,
    channels_last,
    moves_data,
    plain,
)
from compiler.backends.xnnpack.row_means import is_row_mean
from compiler.backends.xnnpack.steps import PayloadStep, PayloadSteps
from compiler.untyped import aten

Node = torch.fx.Node


class Want(Enum):
    """The layouts that a step reads and writes."""

    LAST = "channels last"
    PLAIN = "plain"
    EITHER = "either, the same for all"
    FREE = "any layout, for inputs and result"


_LAST = frozenset(
    (
        aten.convolution.default,
        aten.avg_pool2d.default,
        aten.max_pool2d.default,
        aten.max_pool2d_with_indices.default,
        aten.mean.dim,
        aten.max.dim,
        aten.upsample_bilinear2d.vec,
        aten.prelu.default,
        aten._prelu_kernel.default,
    )
)
_PLAIN = frozenset(
    (
        aten.linear.default,
        aten.addmm.default,
        aten.mm.default,
        aten.bmm.default,
        aten.view_copy.default,
        aten.unsqueeze_copy.default,
        aten._softmax.default,
    )
)

_REDUCTIONS = frozenset((aten.mean.dim, aten.max.dim))
_SIGNAL, _IMAGE = 3, 4  # dimensions of a batch


def wants(step: PayloadStep, steps: PayloadSteps) -> Want:
    """Return the layouts that a step accepts."""
    op, node = op_of(step.node), step.node
    if op is aten.permute_copy.default:
        return Want.FREE
    if is_row_mean(node):
        return Want.PLAIN
    if op in _LAST or op in _PLAIN:
        return Want.LAST if op in _LAST else Want.PLAIN
    rank = rank_of(node)
    either = rank in (3, 4) and all(rank_of(n) == rank for n in steps.operands(node))
    return Want.EITHER if either else Want.PLAIN


class Placement:
    """The layout of each value.

    Attributes:
        home: by value, the layout it is computed in
    """

    def __init__(self, steps: PayloadSteps) -> None:
        self._steps = steps
        self.home: dict[Node, Layout] = {n: boundary(value_of(n)) for n in _tensors(steps.inputs)}
        self._region: dict[Node, Node] = {}
        kinds = {node: wants(step, steps) for node, step in steps.built.items()}
        for node, kind in kinds.items():
            self._enter(node, kind)
        self._choose(kinds)

    def _enter(self, node: Node, kind: Want) -> None:
        if kind in (Want.EITHER, Want.FREE):
            self._region[node] = node
        else:
            self.home[node] = result_layout(node, kind)
        if kind is Want.EITHER:
            for source in self._steps.operands(node):
                if source in self._region:
                    self._region[self._find(source)] = self._find(node)

    def _find(self, node: Node) -> Node:
        while self._region[node] is not node:
            self._region[node] = self._region[self._region[node]]
            node = self._region[node]
        return node

    def _choose(self, kinds: dict[Node, Want]) -> None:
        """Choose the layout of each region that transposes the fewest elements at its boundary."""
        costs, steps = _Costs(), self._steps
        for node, kind in kinds.items():
            for source in steps.operands(node):
                if kind is Want.EITHER and source in self.home:
                    costs.add(self._find(node), source, self.home[source])
                elif kind in (Want.LAST, Want.PLAIN) and source in self._region:
                    costs.add(self._find(source), source, _layout(kind, rank_of(source)))
        for output in steps.outputs:
            root = steps.root(output)
            if root in self._region:
                costs.add(self._find(root), root, boundary(value_of(output)))
        plainly = {self._find(node) for node in self._region if _is_unshapable(node)}
        for node in self._region:
            region = self._find(node)
            kind = Want.PLAIN if region in plainly else costs.best(region)
            self.home[node] = _layout(kind, rank_of(node))


def _is_unshapable(node: Node) -> bool:
    """Return whether a signal cannot become an image: a reshape infers one size only."""
    return rank_of(node) == _SIGNAL and len(unknown_sizes(shape_of(node))) > 1


class _Costs:
    """Elements moved at the borders of regions, for each layout a region could have."""

    def __init__(self) -> None:
        self._moved: dict[tuple[Node, Want], int] = {}
        self._seen: set[tuple[Node, Node, Layout]] = set()

    def add(self, region: Node, value: Node, other: Layout) -> None:
        """Count the transposes of a value with a given layout at the boundary of a region."""
        if (region, value, other) in self._seen:
            return
        self._seen.add((region, value, other))
        sizes = shape_of(value)
        for kind in (Want.LAST, Want.PLAIN):
            if moves_data(sizes, _layout(kind, rank_of(value)), other):
                count = math.prod(map(static_size, sizes))
                self._moved[region, kind] = self._moved.get((region, kind), 0) + count

    def best(self, region: Node) -> Want:
        """Return the cheaper layout of a region, the plain one of equals."""
        last, plainly = (self._moved.get((region, kind), 0) for kind in (Want.LAST, Want.PLAIN))
        return Want.LAST if last < plainly else Want.PLAIN


def result_layout(node: Node, kind: Want) -> Layout:
    """Return the layout in which a step computes its value; reduced dimensions are kept."""
    if kind is Want.LAST and op_of(node) in _REDUCTIONS and rank_of(node) < _IMAGE:
        dims = numbers(argument(node, "dim"), 1)
        left = iter(range(rank_of(node)))
        names = [UNIT if d in {x % _IMAGE for x in dims} else next(left) for d in range(_IMAGE)]
        return tuple(names[d] for d in channels_last(_IMAGE))
    return _layout(kind, rank_of(node))


def _layout(kind: Want, rank: int) -> Layout:
    return channels_last(rank) if kind is Want.LAST else plain(rank)


def _tensors(nodes: Iterable[Node]) -> list[Node]:
    return [node for node in nodes if isinstance(node.meta.get("val"), torch.Tensor)]


def border_moves(program: ExportedProgram) -> tuple[frozenset[str], frozenset[str]]:
    """Return the inputs and the results of a partition that are transposed at its boundary.

    Args:
        program: the partition, as the backend is given it
    """
    steps = PayloadSteps(program)
    home = Placement(steps).home
    given = {node for node in steps.inputs if node in home}
    moved: set[str] = set()
    for node, step in steps.built.items():
        kind = wants(step, steps)
        for source in steps.operands(node):
            if source not in given or kind is Want.FREE:
                continue
            requested = home[node] if kind is Want.EITHER else _layout(kind, rank_of(source))
            if moves_data(shape_of(source), home[source], requested):
                moved.add(source.name)
    left = [
        node.name
        for node in steps.outputs
        for root in [steps.root(node)]
        if root in home and moves_data(shape_of(root), home[root], boundary(value_of(node)))
    ]
    return frozenset(moved), frozenset(left)
