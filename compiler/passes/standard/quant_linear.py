"""Fuses linear layers over dequantized weights: the weights stay in the file as they are quantized.

Weights of 8 bits are read by ``mixed_linear``. No kernel multiplies by weights of 4 or 2 bits, so
those are looked up row by row as the table of an embedding is, in front of ``linear``; while it
runs, the weight of one layer is in memory as floats.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.dialect import quantized
from compiler.dialect.ops import edge_op
from compiler.passes.fake import fake_mode_of
from compiler.passes.lineage import inherit
from compiler.passes.standard.quant_embedding import (
    QuantizedTable,
    Values,
    constant_table,
    held_constant,
    known_table,
    operator_bounds,
)
from compiler.untyped import aten

Node = torch.fx.Node
_PERMUTE = edge_op(aten.permute_copy.default)
_MM, _ADDMM = edge_op(aten.mm.default), edge_op(aten.addmm.default)
_ADD, _LINEAR = edge_op(aten.add.Tensor), edge_op(aten.linear.default)
_MIXED = edge_op(quantized.MIXED_LINEAR)


def fused_linear(module: torch.fx.GraphModule, node: Node, values: Values) -> bool:
    """Replace products with a transposed weight, if it is a known dequantized one.

    Args:
        module: whose graph is changed; packed tensors are added to it
        node: the transposition
        values: of placeholders, by name
    """
    if not is_transposition(node):
        return False
    (given,) = node.all_input_nodes
    products = [operands_of(user, node) for user in node.users]
    found = known_table(given, values)
    if found is None or not products or None in products:
        return False
    table, known = found
    rows, _, *zeros = known
    weight = None
    if rows.dtype != torch.int8 or quantized.bits_of(rows) < 8 or _any(zeros):
        weight = _looked_up(module, node, table, known)
    for user in list(node.users):
        x, bias = operands_of(user, node) or (None, None)
        with module.graph.inserting_before(user):
            if weight is not None:
                whole = (x, weight) if bias is None else (x, weight, bias)
                made = module.graph.call_function(_LINEAR, whole)
            else:
                made = _mixed(module, user, (x, bias), table, known)
        inherit(made, user.meta)
        made.meta["val"] = user.meta["val"]
        user.replace_all_uses_with(made)
    return True


def is_transposition(node: Node) -> bool:
    """Return whether a node transposes a matrix."""
    if node.target is not _PERMUTE:
        return False
    given: Any = node.args[0]
    order: Any = node.args[1]
    swapped = list(order) in ([1, 0], [-1, 0], [1, -2], [-1, -2])
    return swapped and isinstance(given, Node) and given.meta["val"].dim() == 2


def _any(zeros: list[torch.Tensor]) -> bool:
    return bool(zeros) and bool(zeros[0].count_nonzero())


def operands_of(user: Node, weight: Node) -> tuple[Node, Node | None] | None:
    """Return what is multiplied by a weight and what is added, None for another operator."""
    bias: Any = None
    if user.target is _ADDMM and not user.kwargs:
        bias, x, matrix = user.args[:3]
    elif user.target is _MM:
        x, matrix = user.args[:2]
    else:
        return None
    whole = isinstance(x, Node) and matrix is weight and x is not weight
    if not whole or (bias is not None and (bias is weight or bias.meta["val"].dim() != 1)):
        return None
    assert isinstance(x, Node)
    return x, bias


def _looked_up(
    module: torch.fx.GraphModule, node: Node, table: QuantizedTable, known: tuple[Any, ...]
) -> Node:
    """Return all rows of a weight, as floats."""
    places = torch.arange(known[0].shape[0])
    op, first = constant_table(module, node, table, known)
    low, high = operator_bounds(op, table)
    with module.graph.inserting_before(node):
        every = held_constant(module, table.rows, f"rows{len(places)}", places)
        weight = module.graph.call_function(edge_op(op), (*first, low, high, every))
    inherit(weight, node.meta)
    given: Any = node.args[0]
    weight.meta["val"] = given.meta["val"]
    return weight


def _mixed(
    module: torch.fx.GraphModule,
    user: Node,
    operands: tuple[Any, Any],
    table: QuantizedTable,
    known: tuple[Any, ...],
) -> Node:
    """Return a product with a weight of 8 bits, and its sum with a bias."""
    x, bias = operands
    scales = held_constant(module, table.scales, "scales", known[1])
    product = module.graph.call_function(_MIXED, (x, table.rows, scales, None))
    if bias is None:
        return product
    inherit(product, user.meta)
    product.meta["val"] = fake_mode_of([user]).from_tensor(user.meta["val"])
    return module.graph.call_function(_ADD, (product, bias))
