"""Matmuls between two views, the lowered form of linear on more than two dimensions.

The first view flattens the operand to rows, the second restores the dimensions of the operand in
the result. Kernels accept an operand of any rank, so the views are not part of the payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.backends.xnnpack.facts import is_tensor, op_of, shape_of, unknown_sizes
from compiler.backends.xnnpack.quantization import is_dequantize
from compiler.dialect.copies import copied_graph
from compiler.untyped import aten, expression_of, simplified

Node = torch.fx.Node
MAX_RANK = 6  # XNN_MAX_TENSOR_DIMS
_OPERAND_AT = {aten.linear.default: 0, aten.mm.default: 0, aten.addmm.default: 1}


def views_around(node: Node) -> tuple[Node, Node] | None:
    """Return the views around a matmul that have no other users, None if not found."""
    place = _OPERAND_AT.get(op_of(node))
    if place is None or place >= len(node.args) or len(node.users) != 1:
        return None
    rows, back = node.args[place], next(iter(node.users))
    if not isinstance(rows, Node) or list(rows.users) != [node] or node.args.count(rows) > 1:
        return None
    if not all(op_of(view) is aten.view_copy.default for view in (rows, back)):
        return None
    given: Any = rows.args[0]
    if not all(map(is_tensor, (given, rows, node, back))):
        return None
    # Views of floating point with known sizes are written as they are: each value can be compared.
    if not is_dequantize(given) and not unknown_sizes(shape_of(back)):
        return None
    before, built = shape_of(given), (*shape_of(given)[:-1], shape_of(node)[-1])
    kept = len(shape_of(rows)) == 2 and _same(before[-1:], shape_of(rows)[-1:])
    fits = 2 <= len(before) <= MAX_RANK and kept and _same(shape_of(back), built)
    return (rows, back) if fits else None


def matmul_behind(view: Node) -> Node:
    """Return the matmul whose operand a view flattens to rows; another node unchanged."""
    reader = next(iter(view.users), view)
    found = views_around(reader)
    return reader if found is not None and found[0] is view else view


def without_views(graph: torch.fx.Graph) -> tuple[torch.fx.Graph, dict[Node, list[Node]]]:
    """Return a graph in which matmuls absorb the views around them.

    Returns: a graph, the given one if it needs no change; and by matmul in it, the
        views removed from the given graph
    """
    named = {node.name: found for node in graph.nodes if (found := views_around(node)) is not None}
    if not named:
        return graph, {}
    built = copied_graph(graph)
    gone: dict[Node, list[Node]] = {}
    for product in [node for node in built.nodes if node.name in named]:
        rows: Any = product.args[_OPERAND_AT[op_of(product)]]
        back = next(iter(product.users))
        # The second view becomes the matmul: its name is the name of the result.
        back.target, back.kwargs = product.target, product.kwargs
        back.args = tuple(rows.args[0] if arg is rows else arg for arg in product.args)
        back.meta = {**product.meta, "val": back.meta["val"]}
        gone[back] = [*named[product.name]]
        built.erase_node(product)
        built.erase_node(rows)
    return built, gone


def _same(first: Sequence[Any], second: Sequence[Any]) -> bool:
    return list(map(_formula, first)) == list(map(_formula, second))


def _formula(size: Any) -> Any:  # noqa: ANN401 - an int or a symbol
    return size if isinstance(size, int) else simplified(expression_of(size))
