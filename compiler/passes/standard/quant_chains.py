"""Duplicates dynamic quantization for each user of the quantized tensor."""

from __future__ import annotations

import operator
from typing import Any

import torch

from compiler.passes.base import PassBase, PassResult

Node = torch.fx.Node
_DEQUANTIZE = (
    "dequantize_per_tensor.tensor",
    "dequantize_affine.default",
    "dequantize_per_token.default",
)
_CHOOSE = "choose_qparams"


class DuplicateDynamicQuantChainPass(PassBase):
    """Duplicates ``choose_qparams, quantize, dequantize`` for each user after the first.

    A partition with one reader can then include the entire chain. Runs on exported programs and on
    edge programs.
    """

    def call(self, graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401
        """Change a graph module in place."""
        modified = False
        for node in list(graph_module.graph.nodes):
            chain = _chain(node)
            for user in list(node.users)[1:] if chain else ():
                user.replace_input_with(node, _repeated(graph_module.graph, chain, user))
                modified = True
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)


def _name(node: Node) -> str:
    return str(getattr(node.target, "__name__", node.target)).split("decomposed.")[-1]


def _chain(node: Node) -> list[Node]:
    """Return the chain a node ends, in the order of the data; may be empty."""
    if node.op != "call_function" or not _name(node).startswith(_DEQUANTIZE):
        return []
    found: dict[Node, None] = {node: None}
    waiting = [node]
    while waiting:
        for source in waiting.pop().all_input_nodes:
            quantizes = _name(source).startswith(("quantize_", _CHOOSE))
            if source not in found and (quantizes or source.target is operator.getitem):
                found[source] = None
                waiting.append(source)
    if not any(_CHOOSE in _name(part) for part in found):
        return []
    return sorted(found, key=_place)


def _place(node: Node) -> Any:  # noqa: ANN401
    return node._sort_key  # pyright: ignore[reportPrivateUsage] - torch keeps the order there


def _repeated(graph: torch.fx.Graph, chain: list[Node], user: Node) -> Node:
    built: dict[Node, Node] = {}
    with graph.inserting_before(user):
        for node in chain:
            built[node] = graph.node_copy(node, lambda source: built.get(source, source))
            built[node].meta = dict(node.meta)
    return built[chain[-1]]
