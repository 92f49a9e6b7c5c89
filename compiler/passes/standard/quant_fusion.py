"""Replaces computing with dequantised numbers by computing with the quantised ones.

Only operators that the runtime has a quantised kernel for are fused: the sum of two tensors, the
embedding, and operators that move numbers without changing them.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.ao.quantization.fx._decomposed as _decomposed

from compiler.edge import quantized
from compiler.edge.dim_order import TO_DIM_ORDER_COPY
from compiler.edge.ops import edge_op, ops
from compiler.passes.base import PassBase, PassResult
from compiler.passes.lineage import inherit
from compiler.untyped import aten

Node = torch.fx.Node
TORCH_OPERATORS = _decomposed  # importing it registers torch's operators
_q: Any = ops.edge.quantized_decomposed
_QUANTIZE = _q.quantize_per_tensor.default
_DEQUANTIZE = _q.dequantize_per_tensor.default
_DEQUANTIZE_ROWS = _q.dequantize_per_channel.default
_CAST = edge_op(TO_DIM_ORDER_COPY)
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
    """Fuses ``dequantise, operator, quantise`` into one operator on quantised tensors."""

    def __init__(self, _fix_node_meta_val: bool = True) -> None:
        """Take nothing; the documented option is always on, fused nodes have results."""
        del _fix_node_meta_val

    def call(self, graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401
        """Change a graph module in place."""
        modified = False
        for module in graph_module.modules():
            if isinstance(module, torch.fx.GraphModule):
                for node in list(module.graph.nodes):
                    rule = _RULES.get(node.target) if node.op == "call_function" else None
                    modified = (rule is not None and rule(module.graph, node)) or modified
                module.graph.eliminate_dead_code(is_impure_node=_is_fixed)
        return PassResult(graph_module, modified)


def _is_fixed(node: Node) -> bool:
    return node.op in ("placeholder", "output")


def _fused_result(graph: torch.fx.Graph, node: Node) -> bool:
    """Fuse what a quantisation ends."""
    inner = node.args[0]
    if not isinstance(inner, Node) or inner.op != "call_function":
        return False
    if inner.target is _DEQUANTIZE and _settings(inner) == _settings(node):
        node.replace_all_uses_with(_source(inner))
        return True
    if len(inner.users) > 1:
        return False
    if inner.target is edge_op(aten.add.Tensor):
        return _fused_sum(graph, node, inner)
    return inner.target in _MOVES and _moved(node, inner)


def _settings(node: Node) -> list[Any]:
    """Return scale, zero point, bounds and element type."""
    return [*node.args[1:6], node.kwargs.get("out_dtype")]


def _source(node: Node) -> Node:
    source = node.args[0]
    assert isinstance(source, Node)  # what is quantised is a tensor
    return source


def _fused_sum(graph: torch.fx.Graph, node: Node, inner: Node) -> bool:
    sides = [side for side in inner.args if isinstance(side, Node) and side.target is _DEQUANTIZE]
    if len(sides) != 2 or inner.kwargs.get("alpha", 1) != 1:
        return False
    kinds = {_source(side).meta["val"].dtype for side in sides}
    if kinds != {node.meta["val"].dtype}:
        return False
    args = [part for side in sides for part in (_source(side), *side.args[1:5])]
    with graph.inserting_before(node):
        fused = graph.call_function(edge_op(quantized.ADD), (*args, *node.args[1:5]))
    inherit(fused, inner.meta)
    fused.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(fused)
    return True


def _moved(node: Node, inner: Node) -> bool:
    """Move quantised numbers instead, where their settings stay the same."""
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


def _fused_embedding(graph: torch.fx.Graph, node: Node) -> bool:
    weight, indices = node.args[0], node.args[1]
    if not isinstance(weight, Node) or weight.target is not _DEQUANTIZE_ROWS:
        return False
    rows, scales, zero_points, axis, low, high = weight.args[:6]
    # Padding and sparse gradients are of training.
    if axis != 0 or node.meta["val"].dtype != torch.float32 or not isinstance(rows, Node):
        return False
    with graph.inserting_before(node):
        given = (rows, _as_float(graph, scales), _as_float(graph, zero_points), low, high, indices)
        fused = graph.call_function(edge_op(quantized.EMBEDDING_BYTE), given)
    inherit(fused, node.meta)
    fused.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(fused)
    return True


def _as_float(graph: torch.fx.Graph, given: Any) -> Any:  # noqa: ANN401
    """Return scales or zero points as the kernel takes them; folding makes them constants."""
    if not isinstance(given, Node) or given.meta["val"].dtype == torch.float32:
        return given
    dims = given.meta["val"].dim()
    options: dict[str, Any] = {"dtype": torch.float32, "dim_order": [*range(dims)]}
    cast = graph.call_function(_CAST, (given,), options)
    inherit(cast, given.meta)
    cast.meta["val"] = given.meta["val"].to(torch.float32)
    return cast


_RULES: dict[Any, Any] = {
    _QUANTIZE: _fused_result,
    edge_op(aten.embedding.default): _fused_embedding,
}
