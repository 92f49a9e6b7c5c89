"""Expressions of weights alone whose value takes no more room in a file than what it replaces."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator
from typing import Any

import networkx
import torch
from torch.utils._pytree import tree_leaves

from compiler.dialect.ops import EdgeOp

Node = torch.fx.Node
_NAMESPACES = ("aten", "dim_order_ops")
# An instruction, its arguments and the tensor it creates take about that much in a file.
_CALL_BYTES = 128
_MOVES = frozenset(
    (
        "alias_copy",
        "as_strided_copy",
        "clone",
        "_clone_dim_order",
        "detach_copy",
        "expand_copy",
        "permute_copy",
        "select_copy",
        "slice_copy",
        "split_copy",
        "split_with_sizes_copy",
        "squeeze_copy",
        "t_copy",
        "transpose_copy",
        "unbind_copy",
        "unsqueeze_copy",
        "view_copy",
        "_to_copy",
        "_to_dim_order_copy",
    )
)


def folded_expressions(
    graph: torch.fx.Graph, weights: Collection[Node], may: Callable[[Node], bool]
) -> set[Node]:
    """Return the calls to replace by their value, such as those of a weight norm.

    An expression is folded if it computes, and if its results take no more room than the weights
    that nothing else reads and the calls it replaces. What only moves elements is left to the
    kernels that read it.

    Args:
        graph: edge dialect
        weights: placeholders whose value is known at compile time
        may: decides whether a call may be folded if its inputs are known
    """
    known, calls = set(weights), set[Node]()
    for node in graph.nodes:
        if _is_foldable(node) and may(node) and known.issuperset(node.all_input_nodes):
            known.add(node)
            calls.add(node)
    calls = _without_growth(graph, calls)
    found: set[Node] = set()
    for group in _connected(calls):
        results = [node for node in group if not calls.issuperset(node.users)]
        read = {n for node in group for n in node.all_input_nodes if n in weights}
        freed = [n for n in read if calls.issuperset(n.users)]
        room = sum(map(_nbytes, freed)) + _CALL_BYTES * len(group)
        if read and any(map(_computes, group)) and sum(map(_nbytes, results)) <= room:
            found.update(group)
    return found


def _is_foldable(node: Node) -> bool:
    target: Any = node.target
    if node.op != "call_function":
        return False
    if target is operator.getitem:
        return True
    return isinstance(target, EdgeOp) and target.namespace in _NAMESPACES


def _without_growth(graph: torch.fx.Graph, calls: set[Node]) -> set[Node]:
    """Return calls without those at the end that are larger than what they read."""
    kept = set(calls)
    for node in reversed(graph.nodes):
        if node in kept and not kept.issuperset(node.users):
            read = sum(map(_nbytes, node.all_input_nodes))
            if _nbytes(node) > max(read, _CALL_BYTES):
                kept.remove(node)
    # The results of a call are selected by calls that stay with it.
    lost = {n for n in kept if n.target is operator.getitem and n.args[0] not in kept}
    return kept - lost


def _connected(calls: Collection[Node]) -> Iterator[set[Node]]:
    """Yield groups of calls that read each other or the same large weight."""
    edges = [
        (source, node)
        for node in calls
        for source in node.all_input_nodes
        if source in calls or _nbytes(source) > _CALL_BYTES
    ]
    joined: Any = networkx.DiGraph([*edges, *((node, node) for node in calls)]).to_undirected()
    for group in networkx.connected_components(joined):
        yield {node for node in group if node in calls}


def _computes(node: Node) -> bool:
    target: Any = node.target
    if target is operator.getitem:
        return False
    name = target.op._schema.name.split("::")[1]
    if name not in _MOVES:
        return True
    source = node.all_input_nodes
    return bool(source) and _dtype(source[0]) != _dtype(node)


def _dtype(node: Node) -> Any:  # noqa: ANN401
    return getattr(node.meta.get("val"), "dtype", None)


def _nbytes(node: Node) -> int:
    value: Any = node.meta.get("val")
    tensors = [one for one in tree_leaves(value) if isinstance(one, torch.Tensor)]
    return sum(int(one.numel()) * one.element_size() for one in tensors)
