"""Partitions by patterns, by lists of nodes, and by groups of nodes that must stay together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import networkx
import torch
from torch.fx.passes.infra.partitioner import Partition

from compiler.partition.capability import CapabilityBasedPartitioner
from compiler.partition.pattern_matching import matches_of
from compiler.partition.reasons import note
from compiler.partition.regions import contracted, regions, unit_of
from compiler.partition.support import ExplainedSupport, SupportAnswer, any_chain
from schema.etrecord.parts.verdicts import NodeOutcome

Node = torch.fx.Node


class GroupBasedPartitioner(CapabilityBasedPartitioner):
    """Proposes partitions in which given groups of nodes are never split."""

    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        operator_support: Any,  # noqa: ANN401
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        node_groups: Sequence[Collection[Node]] | None = None,
    ) -> None:
        """Create the partitioner of a graph.

        Args:
            graph_module: an edge graph
            operator_support: decides for each node whether it is supported
            allows_single_node_partition: keep partitions with one computing node
            non_compute_ops: operators that do not count as computing
            allowed_single_node_partition_ops: operators that may be alone nevertheless
            node_groups: nodes that stay together

        Raises: ValueError if a node is in two groups
        """
        super().__init__(
            graph_module,
            operator_support,
            allows_single_node_partition,
            non_compute_ops,
            allowed_single_node_partition_ops,
        )
        self._group_of: dict[Node, str] = {}
        for index, group in enumerate(node_groups or ()):
            for node in group:
                if self._group_of.setdefault(node, f"group {index}") != f"group {index}":
                    raise ValueError(f"Node {node} exists in multiple groups.")

    def _grouped(self, taken: set[Node]) -> list[list[Node]]:
        graph = self.graph_module.graph
        calls = {n: g for n, g in self._group_of.items() if n.op == "call_function"}
        calls = {n: g for n, g in calls.items() if unit_of(n) is n}
        whole = _without_cycles(graph, _supported(calls, taken), taken)
        left = {node for node in calls if node not in whole}
        return regions(graph, lambda n: 0 if n in taken and n not in left else None, whole)


def _supported(groups: Mapping[Node, str], taken: set[Node]) -> dict[Node, str]:
    broken = {group for node, group in groups.items() if node not in taken}
    for node, group in groups.items():
        if group in broken and node in taken:
            text = f"{group} is not supported entirely"
            note(node, "node_groups", NodeOutcome.REJECTED, text)
    return {node: group for node, group in groups.items() if group not in broken}


def _without_cycles(
    graph: torch.fx.Graph, groups: Mapping[Node, str], taken: set[Node]
) -> dict[Node, str]:
    """Return the groups that can be one call each.

    Groups that depend on each other in a cycle, also through other nodes, are merged with those,
    and are rejected if a node of the loop is not supported.
    """
    followed = {n: groups[unit_of(n)] for n in graph.nodes if unit_of(n) in groups}
    order, waits = contracted(graph, followed)
    if len(order) == len(waits):
        return dict(groups)
    digraph: Any = networkx.DiGraph([(s, key) for key, found in waits.items() for s in found])
    loops: list[set[Any]] = [
        s for s in networkx.strongly_connected_components(digraph) if len(s) > 1
    ]
    joined = dict(groups)
    for loop in loops:
        between = {unit_of(key) for key in loop if not isinstance(key, str)}
        names = {key for key in loop if isinstance(key, str)}
        members = [node for node, group in groups.items() if group in names]
        if between <= taken:
            joined |= dict.fromkeys((*members, *between), min(names))
            continue
        for node in members:
            text = f"{joined.pop(node)} as one call would depend on its own results"
            note(node, "node_groups", NodeOutcome.CYCLE, text)
    return joined


class _Among(ExplainedSupport):
    """Support for the nodes of lists."""

    def __init__(self, nodes: Collection[Node], what: str) -> None:
        self._nodes = set(nodes)
        self._what = what

    def explain(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> SupportAnswer:
        matched = node in self._nodes
        return SupportAnswer(
            matched, self._what, "" if matched else f"it does not belong to any of the {self._what}"
        )


def _support(op_support: Any, nodes: Collection[Node] | None, what: str) -> Any:  # noqa: ANN401
    if nodes is None:
        if op_support is None:
            raise ValueError("pass a pattern or operator support to partition with")
        return op_support
    listed = _Among(nodes, what)
    return listed if op_support is None else any_chain(op_support, listed)


def generate_partitions_from_list_of_nodes(
    graph_module: torch.fx.GraphModule,
    pattern_list: Sequence[Sequence[Node]] | None = None,
    op_support: Any | None = None,  # noqa: ANN401
) -> list[Partition]:
    """Return the largest partitions of listed and of supported nodes.

    Raises: ValueError if neither is given
    """
    nodes = None if pattern_list is None else {n for nodes in pattern_list for n in nodes}
    support = _support(op_support, nodes, "listed nodes")
    return CapabilityBasedPartitioner(graph_module, support, True).propose_partitions()


def generate_grouped_partitions_from_list_of_nodes(
    graph_module: torch.fx.GraphModule,
    pattern_list: Sequence[Sequence[Node]] | None = None,
    op_support: Any | None = None,  # noqa: ANN401
) -> list[Partition]:
    """Return the largest partitions of listed and of supported nodes; each list stays together.

    Raises: ValueError if both are missing, or a node is in two lists
    """
    nodes = None if pattern_list is None else {n for nodes in pattern_list for n in nodes}
    support = _support(op_support, nodes, "listed nodes")
    partitioner = GroupBasedPartitioner(graph_module, support, True, node_groups=pattern_list)
    return partitioner.propose_partitions()


def generate_pattern_op_partitions(
    graph_module: torch.fx.GraphModule,
    patterns: Sequence[torch.fx.Graph] | None = None,
    partitions_list: Sequence[Sequence[Node]] | None = None,
    op_support: Any | None = None,  # noqa: ANN401
    ignore_literals: bool = False,
) -> list[Partition]:
    """Return the largest partitions of nodes in patterns, in lists, or supported.

    Args:
        graph_module: an edge graph
        patterns: graphs of edge operators whose placeholders match anything
        partitions_list: further nodes, such as source partitions
        op_support: decides for each node whether it is supported
        ignore_literals: let scalars in patterns match any scalar

    Raises: ValueError if patterns, lists and support are all missing
    """
    graph = graph_module.graph
    nodes: set[Node] | None = None
    if patterns is not None or partitions_list:
        found = matches_of(graph, patterns or (), ignore_literals=ignore_literals)
        nodes = {node for group in (*found, *(partitions_list or ())) for node in group}
    support = _support(op_support, nodes, "patterns")
    return CapabilityBasedPartitioner(graph_module, support, True).propose_partitions()
