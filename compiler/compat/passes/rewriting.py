"""Pattern replacement that keeps the metadata of the replaced nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.fx.subgraph_rewriter as _rewriter

from compiler.dialect.ops import EdgeOp, edge_op
from compiler.passes.lineage import inherit, restore_metadata, snapshot
from compiler.untyped import OpOverload

Node = torch.fx.Node
Pattern = Callable[..., Any] | torch.fx.Graph | torch.fx.GraphModule
Filter = Callable[[Any, torch.fx.Graph, torch.fx.Graph], bool]


@dataclass(frozen=True)
class ReplacedPatterns:
    """One replaced match of a pattern.

    Attributes:
        anchor: the node of the old graph that is the pattern's result
        nodes_map: the node of the old graph for each node of the pattern
        replacements: the new nodes
    """

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(
    graph_module: torch.fx.GraphModule,
    pattern: Pattern,
    replacement: Pattern,
    match_filters: Sequence[Filter] | None = None,
    ignore_literals: bool = False,
) -> list[ReplacedPatterns]:
    """Replace all matches of a pattern in place.

    The inputs of the pattern match anything. New nodes have the source lines and the debug handle
    of the result node, the origins of all nodes they replace, and fake results.

    Args:
        graph_module: changed
        pattern: a function of operators, or its graph
        replacement: likewise, with the same inputs
        match_filters: each may reject a match: called with it, the graph and the pattern's graph
        ignore_literals: let scalars of the pattern match any scalar

    Raises: PassError if the replacement does not accept the inputs of the pattern
    """
    before = snapshot(graph_module)
    edge = any(isinstance(node.target, EdgeOp) for node in graph_module.graph.nodes)
    rewrite: Any = cast("Any", _rewriter).replace_pattern_with_filters
    found = rewrite(
        graph_module,
        _graph_of(pattern, edge=edge),
        _graph_of(replacement, edge=edge),
        list(match_filters or ()),
        ignore_literals,
    )
    replaced = [ReplacedPatterns(r.anchor, r.nodes_map, list(r.replacements)) for r in found]
    for one in replaced:
        _describe(one)
    if replaced:
        restore_metadata(before, graph_module, "replace_pattern")
    return replaced


def _graph_of(pattern: Pattern, *, edge: bool) -> torch.fx.Graph:
    if isinstance(pattern, torch.fx.GraphModule):
        graph = pattern.graph
    elif isinstance(pattern, torch.fx.Graph):
        graph = pattern
    else:
        graph = torch.fx.symbolic_trace(pattern).graph
    if not edge or not any(isinstance(node.target, OpOverload) for node in graph.nodes):
        return graph
    own = torch.fx.Graph()  # the caller's object is not changed
    own.output(own.graph_copy(graph, {}))
    for node in own.nodes:
        if isinstance(node.target, OpOverload):
            node.target = edge_op(node.target)
    return own


def _describe(one: ReplacedPatterns) -> None:
    matched = [
        node
        for pattern, node in one.nodes_map.items()
        if pattern.op == "call_function" and node.op == "call_function"
    ]
    meta = dict(one.anchor.meta)
    origins = [source for node in matched for source in node.meta.get("from_node") or ()]
    if origins:
        meta["from_node"] = _without_repeats(origins)
    for node in one.replacements:
        if node.op == "call_function":
            inherit(node, meta)


def _without_repeats(sources: list[Any]) -> list[Any]:
    return list({id(source): source for source in sources}.values())
