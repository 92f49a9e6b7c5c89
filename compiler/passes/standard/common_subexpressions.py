"""Common subexpression elimination."""

from __future__ import annotations

import operator
from typing import Any

import torch

from compiler.dialect.ops import EdgeOp
from compiler.dialect.templates import nodes_in, walk
from compiler.passes.base import PassBase, PassResult
from compiler.untyped import NUMBER_OPERATORS, aten

Node = torch.fx.Node
# Operators of other namespaces may have state that their arguments do not show.
_PURE_NAMESPACES = frozenset(("aten", "dim_order_ops", "quantized_decomposed"))


class CSEPass(PassBase):
    """Common subexpression elimination, separately in each body of control flow.

    Two nodes are equal if operator and arguments are. Results of the graph are kept.
    """

    def call(self, graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401
        """Change a graph module in place."""
        graphs = [m.graph for m in graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
        changed = [_merge(graph) for graph in graphs]
        return PassResult(graph_module, any(changed))


def _merge(graph: torch.fx.Graph) -> bool:
    returned = {n for node in graph.nodes if node.op == "output" for n in nodes_in(node.args)}
    first: dict[Any, Node] = {}
    modified = False
    for node in list(graph.nodes):
        if node in returned or not _is_pure(node):
            continue
        # Readers of merged nodes already read the first one, so arguments compare as nodes.
        known = first.setdefault(_key(node), node)
        if known is not node:
            node.replace_all_uses_with(known)
            graph.erase_node(node)
            modified = True
    return modified


def _is_pure(node: Node) -> bool:
    target: Any = node.target
    if node.op != "call_function":
        return False
    if target is operator.getitem or target in NUMBER_OPERATORS or target is aten.sym_size.int:
        return True
    if not isinstance(target, EdgeOp) or target.namespace not in _PURE_NAMESPACES:
        return False
    tags = target.op.tags
    return torch.Tag.nondeterministic_seeded not in tags and not target.op._schema.is_mutable


def _key(node: Node) -> Any:  # noqa: ANN401
    args, kwargs = walk(_leaf, (tuple(node.args), dict(node.kwargs)))
    return node.target, _hashable(args), tuple(sorted((n, _hashable(v)) for n, v in kwargs.items()))


def _leaf(leaf: Any) -> Any:  # noqa: ANN401
    # 1, 1.0 and True are equal in Python; None cannot be sorted among option values.
    return ("node", id(leaf)) if isinstance(leaf, Node) else (type(leaf).__name__, repr(leaf))


def _hashable(tree: Any) -> Any:  # noqa: ANN401
    return tuple(map(_hashable, tree)) if isinstance(tree, (list, tuple)) else tree  # pyright: ignore[reportUnknownArgumentType]
