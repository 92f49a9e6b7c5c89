"""The FLOPs of a call, from the sizes of its tensors: two for each product that is summed."""

from __future__ import annotations

from typing import Any

import torch

from compiler.dialect.ops import EdgeOp
from compiler.untyped import aten

Node = torch.fx.Node
_LEFT_AT = {
    aten.mm.default: 0,
    aten.bmm.default: 0,
    aten.linear.default: 0,
    aten.addmm.default: 1,
    aten.baddbmm.default: 1,
}
"""Argument index of the matrix whose last dimension is summed over."""


def flops_of(node: Node) -> int:
    """Return the FLOPs of a call; any other operator takes one an element.

    A symbolic size counts as that of the example, one that depends on data as 1.
    """
    target: Any = node.target
    op = target.op if isinstance(target, EdgeOp) else target
    if op in _LEFT_AT:
        return 2 * _count(node) * _sizes(node.args[_LEFT_AT[op]])[-1]
    if op is aten.convolution.default:
        weight = _sizes(node.args[1])
        transposed: Any = node.args[6]
        outer = _count(node.args[0]) if transposed else _count(node)
        return 2 * outer * _product(weight[1:])
    return _count(node)


def _count(node: Any) -> int:  # noqa: ANN401
    return _product(_sizes(node))


def _product(sizes: list[int]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found


def _sizes(node: Any) -> list[int]:  # noqa: ANN401
    value = node.meta.get("val") if isinstance(node, Node) else None
    value = value[0] if isinstance(value, (tuple, list)) and value else value  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, torch.Tensor):
        return [0]
    sizes: tuple[Any, ...] = tuple(value.shape)
    return [size if isinstance(size, int) else _example(size) for size in sizes]


def _example(size: Any) -> int:  # noqa: ANN401
    return int(size.node.hint) if size.node.has_hint() else 1
