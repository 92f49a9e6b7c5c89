"""Removes no-op views and copies, and merges consecutive ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler.dialect.dim_order import CLONE_DIM_ORDER, TO_DIM_ORDER_COPY
from compiler.dialect.ops import edge_op
from compiler.dialect.templates import nodes_in
from compiler.passes.base import PassBase, PassResult
from compiler.passes.fake import same_kind
from compiler.untyped import aten

Node = torch.fx.Node


def _static(value: Any) -> bool:  # noqa: ANN401
    sizes: Any = value.shape if isinstance(value, torch.Tensor) else (None,)
    return all(isinstance(size, int) for size in sizes)


class RemoveViewsPass(PassBase):
    """Removes views that change no shape and copies that change neither dtype nor layout.

    Consecutive views are merged, and consecutive permutations too. Copies that are results
    of the graph are kept, so that results share no memory with each other or with inputs.
    """

    def call(self, graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401
        """Change a graph module in place."""
        graphs = [m.graph for m in graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
        changed = [_simplify(graph) for graph in graphs]
        return PassResult(graph_module, any(changed))


def _simplify(graph: torch.fx.Graph) -> bool:
    returned = {n for node in graph.nodes if node.op == "output" for n in nodes_in(node.args)}
    modified = False
    for node in list(graph.nodes):
        rule = _RULES.get(node.target) if node.op == "call_function" else None
        if rule is None:
            continue
        modified = rule(node) or modified
        source = node.args[0]
        if node in returned or not isinstance(source, Node):
            continue
        if _changes_nothing(node, source):
            node.replace_all_uses_with(source)
            graph.erase_node(node)
            modified = True
    if modified:
        graph.eliminate_dead_code(is_impure_node=lambda n: n.op in ("placeholder", "output"))
    return modified


def _changes_nothing(node: Node, source: Node) -> bool:
    before, after = source.meta.get("val"), node.meta.get("val")
    if not isinstance(before, torch.Tensor) or not same_kind(before, after):
        return False
    if node.target is edge_op(aten.permute_copy.default):
        return _order(node) == list(range(before.dim()))
    # Equal symbols are equal sizes, save for slices, whose bounds may depend on data.
    return _static(after) or node.target is not edge_op(aten.slice_copy.Tensor)


def _below(node: Node) -> Node | None:
    """Return the input of a node if it is of the same operator and has no other user."""
    source = node.args[0]
    if isinstance(source, Node) and source.op == "call_function" and source.target is node.target:
        return source
    return None


def _merge_views(node: Node) -> bool:
    below = _below(node)
    if below is None:
        return False
    node.update_arg(0, below.args[0])
    return True


def _order(node: Node) -> list[int]:
    known: Any = node.args[1]
    dims = len(known)
    return [int(d) % dims for d in known]


def _merge_permutations(node: Node) -> bool:
    below = _below(node)
    if below is None:
        return False
    inner, outer = _order(below), _order(node)
    node.args = (below.args[0], [inner[d] for d in outer])
    return True


def _leave(node: Node) -> bool:
    del node
    return False


_RULES: dict[Any, Callable[[Node], bool]] = {
    edge_op(aten.view_copy.default): _merge_views,
    edge_op(aten.permute_copy.default): _merge_permutations,
    edge_op(aten.expand_copy.default): _leave,
    edge_op(aten.slice_copy.Tensor): _leave,
    edge_op(aten.squeeze_copy.dims): _leave,
    edge_op(aten.alias_copy.default): _leave,
    edge_op(aten.clone.default): _leave,
    edge_op(aten._to_copy.default): _leave,
    edge_op(CLONE_DIM_ORDER): _leave,
    edge_op(TO_DIM_ORDER_COPY): _leave,
}
