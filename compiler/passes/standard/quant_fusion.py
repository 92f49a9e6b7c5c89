"""Quantization fusion: operators on quantized tensors instead of dequantized ones.

Only operators that the runtime has a quantized kernel for are fused: the sum of two tensors, with a
relu too, the embedding, linear layers with constant weights, and operators that move values without
changing them. The kernel of add supports two tensors of one static shape with ranges within 0 and
255, and aborts the process otherwise;
no kernel adds a tensor and a scalar.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.ao.quantization.fx._decomposed as _decomposed

from compiler.dialect import quantized
from compiler.dialect.ops import edge_op, ops
from compiler.passes.base import PassBase, PassResult
from compiler.passes.lineage import inherit
from compiler.passes.standard.quant_embedding import Values, fused_embedding
from compiler.passes.standard.quant_linear import fused_linear
from compiler.untyped import aten

Node = torch.fx.Node
TORCH_OPERATORS = _decomposed  # importing it registers torch's operators
_q: Any = ops.edge.quantized_decomposed
_QUANTIZE = _q.quantize_per_tensor.default
_DEQUANTIZE = _q.dequantize_per_tensor.default
_ADD, _RELU = edge_op(aten.add.Tensor), edge_op(aten.relu.default)
_EMBEDDING = edge_op(aten.embedding.default)
_PERMUTE = edge_op(aten.permute_copy.default)
_KERNEL_RANGE = range(256)
_MOVES = frozenset(
    edge_op(op)
    for op in (
        aten.view_copy.default,
        aten.permute_copy.default,
        aten.slice_copy.Tensor,
        aten.select_copy.int,
        aten.expand_copy.default,
        aten.squeeze_copy.dims,
        aten.unsqueeze_copy.default,
        aten.cat.default,
    )
)


class QuantFusionPass(PassBase):
    """Fuses ``dequantize, operator, quantize`` into one operator on quantized tensors."""

    def __init__(
        self, _fix_node_meta_val: bool = True, node_value_dict: Values | None = None
    ) -> None:
        """Store the constants of the program, if known.

        Args:
            _fix_node_meta_val: documented; fused nodes always have results
            node_value_dict: tensors by placeholder; None in a compile selects all constants
        """
        del _fix_node_meta_val
        self.node_value_dict = node_value_dict

    def with_values(self, values: Values) -> QuantFusionPass:
        """Return a pass with the constants of a program, unless it was created with others."""
        known = self.node_value_dict
        return QuantFusionPass(node_value_dict=values if known is None else known)

    def call(self, graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401
        """Change a graph module in place."""
        modified = False
        for module in graph_module.modules():
            if isinstance(module, torch.fx.GraphModule):
                values = (self.node_value_dict or {}) if module is graph_module else {}
                changes = [_fused(module, node, values) for node in list(module.graph.nodes)]
                modified = modified or any(changes)
                module.graph.eliminate_dead_code(is_impure_node=_is_fixed)
        return PassResult(graph_module, modified)


def _fused(module: torch.fx.GraphModule, node: Node, values: Values) -> bool:
    if node.target is _QUANTIZE:
        return _fused_result(module.graph, node)
    if node.target is _PERMUTE:
        return fused_linear(module, node, values)
    return node.target is _EMBEDDING and fused_embedding(module, node, values)


def _is_fixed(node: Node) -> bool:
    return node.op in ("placeholder", "output")


def _fused_result(graph: torch.fx.Graph, node: Node) -> bool:
    """Fuse the pattern that ends in a quantize."""
    inner = node.args[0]
    if not isinstance(inner, Node) or inner.op != "call_function":
        return False
    if inner.target is _DEQUANTIZE and _settings(inner) == _settings(node):
        node.replace_all_uses_with(_source(inner))
        return True
    if len(inner.users) > 1:
        return False
    if inner.target is _ADD:
        return _fused_sum(graph, node, inner, 0)
    if inner.target is _RELU:
        below = inner.args[0]
        if not isinstance(below, Node) or below.target is not _ADD or len(below.users) > 1:
            return False
        # In quantized values, relu clamps at the zero point.
        return _fused_sum(graph, node, below, _settings(node)[1])
    return inner.target in _MOVES and _moved(node, inner)


def _settings(node: Node) -> list[Any]:
    """Return scale, zero point, bounds and dtype."""
    return [*node.args[1:6], node.kwargs.get("out_dtype")]


def _source(node: Node) -> Node:
    source = node.args[0]
    assert isinstance(source, Node)  # the quantized value is a tensor
    return source


def _fused_sum(graph: torch.fx.Graph, node: Node, inner: Node, least: int) -> bool:
    sides = [side for side in inner.args if isinstance(side, Node) and side.target is _DEQUANTIZE]
    if len(sides) != 2 or inner.kwargs.get("alpha", 1) != 1:
        return False
    values = [*(_source(side).meta["val"] for side in sides), node.meta["val"]]
    if not _one_kind(values):
        return False
    low, high = _settings(node)[2:4]
    bounds = [*(_settings(side)[2:4] for side in sides), (max(low, least), high)]
    if not all(
        low in _KERNEL_RANGE and high in _KERNEL_RANGE and low <= high for low, high in bounds
    ):
        return False
    args = [part for side in sides for part in (_source(side), *side.args[1:5])]
    with graph.inserting_before(node):
        fused = graph.call_function(edge_op(quantized.ADD), (*args, *node.args[1:3], *bounds[-1]))
    inherit(fused, inner.meta)
    fused.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(fused)
    return True


def _one_kind(values: list[torch.Tensor]) -> bool:
    """Return whether tensors have the same dtype and the same static shape."""
    kinds = {(value.dtype, tuple(map(str, value.shape))) for value in values}
    return len(kinds) == 1 and all(type(size) is int for size in values[0].shape)


def _moved(node: Node, inner: Node) -> bool:
    """Move quantized values instead, if their quantization parameters are equal."""
    given: Any = inner.args[0]
    several = isinstance(given, (list, tuple))
    sides: list[Any] = [*cast("Any", given)] if several else [given]
    for side in sides:
        if not isinstance(side, Node) or side.target is not _DEQUANTIZE:
            return False
        if _settings(side) != _settings(node):
            return False
    sources = [_source(side) for side in sides]
    inner.update_arg(0, sources if several else sources[0])
    inner.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(inner)
    return True
