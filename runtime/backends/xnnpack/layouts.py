"""Memory layouts of the values of a payload, inferred from its nodes.

Nodes over images need channels last, and the compiler inserts permutations that belong to no
operator of the program: they have no debug handle. Where such a node reads or writes a value in the
program's own order, the order on its other side is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from runtime.backends.xnnpack.model import PartitionPlan, PayloadNode
from schema.payloads.xnnpack import nodes as n

UNIT = -1
Labels = tuple[int, ...]
"""The program's dimension of each dimension in memory, UNIT for one that only memory has."""

_IMAGES = frozenset(
    (
        "ArgMaxPooling2d",
        "AvgPooling2d",
        "Conv2d",
        "ConvTranspose2d",
        "DepthwiseConv2d",
        "GlobalAvgPooling2d",
        "MaxPooling2d",
        "PReLU",
        "StaticResizeBilinear2D",
    )
)
_OTHER_ORDER = frozenset(("BatchMatrixMultiply", "FullyConnected", "GlobalAvgPooling2d"))
_MOVES = ("StaticTranspose", "StaticReshape")
_IMAGE = 4  # dimensions
_TO_LAST, _TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


class DimLayouts:
    """Permutes the values of a payload into the dimensions of the program.

    Args:
        plan: the payload, which is analysed at the first call
    """

    def __init__(self, plan: PartitionPlan) -> None:
        self._plan = plan
        self._found: Mapping[int, Labels] | None = None

    def logical(self, ident: int, tensor: torch.Tensor) -> torch.Tensor:
        """Return a value, given in memory order, with the dimensions of the program.

        It is returned unchanged where its layout is unknown.
        """
        if self._found is None:
            self._found = layouts_of(self._plan)
        labels = self._found.get(ident)
        if labels is None or len(labels) != tensor.dim():
            return tensor
        units = [axis for axis, label in enumerate(labels) if label == UNIT]
        if any(tensor.shape[axis] != 1 for axis in units):
            return tensor
        axes = [axis for axis in range(len(labels)) if axis not in units]
        moving = tensor.permute(sorted(axes, key=labels.__getitem__) + units)
        return moving.reshape(moving.shape[: len(axes)]).contiguous()


def layouts_of(plan: PartitionPlan) -> dict[int, Labels]:
    """Return the layout of every value in image layout.

    None is known in payloads without debug handles, where inserted nodes look like others.
    """
    if all(node.handle is None for node in plan.nodes):
        return {}
    regions = _Regions(plan)
    known = regions.labels()
    found: dict[int, Labels] = {}
    for ident, value in plan.values.items():
        labels = known.get(regions.root(ident))
        if len(value.dims) == _IMAGE and regions.is_image(ident):
            found[ident] = labels or _TO_LAST
        elif labels is not None and labels != tuple(range(len(value.dims))):
            found[ident] = labels  # moved by the program, between nodes over images
    return found


class _Regions:
    """Groups of values with one layout, because the nodes between them preserve it (union-find)."""

    def __init__(self, plan: PartitionPlan) -> None:
        self._plan = plan
        self._parent = {ident: ident for ident in plan.values}
        self._moves: list[PayloadNode] = []
        self._given = sorted(value.ident for value in (*plan.inputs, *plan.outputs))
        self._own: set[int] = set()
        images: set[int] = set()
        moved: list[PayloadNode] = []  # by the program
        for node in plan.nodes:
            if node.kind in _MOVES:
                (self._moves if node.handle is None else moved).append(node)
                continue
            ends = self._ends(node)
            self._own.update(ends)
            if node.kind in _IMAGES:
                ends = [node.inputs[0], *node.outputs]
                images.update(ends)
            if node.kind not in _OTHER_ORDER:
                for ident in ends:
                    if self._rank(ident) == self._rank(ends[-1]):
                        self._parent[self.root(ident)] = self.root(ends[-1])
        self._images = {self.root(ident) for ident in images if self._rank(ident) == _IMAGE}
        for ends in map(self._ends, moved):  # beside an image both are in an order of images
            self._own.update(() if any(map(self.is_image, ends)) else ends)

    def _ends(self, node: PayloadNode) -> list[int]:
        values = self._plan.values
        return [ident for ident in (*node.read, *node.outputs) if values[ident].data is None]

    def _rank(self, ident: int) -> int:
        return len(self._plan.values[ident].dims)

    def root(self, ident: int) -> int:
        """Return the representative value of a region."""
        while self._parent[ident] != ident:
            self._parent[ident] = self._parent[self._parent[ident]]
            ident = self._parent[ident]
        return ident

    def is_image(self, ident: int) -> bool:
        """Return whether the region of a value has a node over images."""
        return self.root(ident) in self._images

    def labels(self) -> dict[int, Labels]:
        """Return the layout of the regions that inserted nodes connect with a known one."""
        beside: dict[int, list[tuple[PayloadNode, int, int]]] = {}
        for node in self._moves:
            source, target = node.inputs[0], node.outputs[0]
            beside.setdefault(self.root(source), []).append((node, source, target))
            beside.setdefault(self.root(target), []).append((node, target, source))
        known: dict[int, Labels] = {}
        for own in (self._given, sorted(self._own)):  # what enters and leaves is certain
            plain = {self.root(one): self._rank(one) for one in own if not self.is_image(one)}
            new = {root: tuple(range(rank)) for root, rank in plain.items() if root not in known}
            known.update(new)
            self._spread(known, list(new), beside)
        return known

    def _spread(
        self,
        known: dict[int, Labels],
        waiting: list[int],
        beside: Mapping[int, Sequence[tuple[PayloadNode, int, int]]],
    ) -> None:
        """Add the layouts of regions beside some that are known."""
        while waiting:
            region = waiting.pop()
            for node, nearest, far in beside.get(region, ()):
                if self.root(far) in known:
                    continue
                found = self._carried(node, nearest, far, known[region])
                if found is not None:
                    known[self.root(far)] = found
                    waiting.append(self.root(far))

    def _carried(self, node: PayloadNode, nearest: int, far: int, labels: Labels) -> Labels | None:
        """Return the layout on the other side of an inserted node, None where it is ambiguous."""
        given, requested = (self._plan.values[ident].dims for ident in (nearest, far))
        if len(labels) != len(given):
            return None
        if isinstance(node.form, n.StaticTranspose):
            order = node.form.perm
            forwards = nearest == node.inputs[0]
            order = order if forwards else [order.index(axis) for axis in range(len(order))]
            return tuple(labels[axis] for axis in order)
        order = _TO_LAST if self.is_image(far) else _TO_FIRST
        if len(given) == len(requested) == _IMAGE and given != requested:
            return (
                tuple(labels[axis] for axis in order)
                if _is_moved(given, requested, order)
                else None
            )
        return _with_units(labels, given, requested)


def _is_moved(given: Sequence[int], requested: Sequence[int], order: Sequence[int]) -> bool:
    return [given[axis] for axis in order] == list(requested)


def _with_units(labels: Labels, given: Sequence[int], requested: Sequence[int]) -> Labels | None:
    """Return the labels of a shape that differs only in dimensions of size 1."""
    left = list(zip(labels, given, strict=True))
    found: list[int] = []
    for size in requested:
        while left and left[0][1] != size and left[0][0] == UNIT:
            left.pop(0)
        if left and left[0][1] == size:
            found.append(left.pop(0)[0])
        elif size == 1:
            found.append(UNIT)
        else:
            return None
    return None if any(label != UNIT for label, _ in left) else tuple(found)
