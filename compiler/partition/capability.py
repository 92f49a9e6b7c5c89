"""Capability-based partitioning: the fewest acyclic partitions of supported nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.fx.passes.infra.partitioner import Partition

from compiler.partition.reasons import note, operator_of
from compiler.partition.regions import regions, unit_of
from compiler.partition.support import SupportAnswer, explain
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.objects.plural import plural

Node = torch.fx.Node
_NON_COMPUTE = ("aten.view.default", "aten.view_copy.default", "getitem")


class CapabilityBasedPartitioner:
    """Proposes partitions of the nodes that a support object accepts; linear in the graph."""

    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        operator_support: Any,  # noqa: ANN401 - anything with is_node_supported
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
    ) -> None:
        """Create the partitioner of a graph.

        Args:
            graph_module: an edge graph
            operator_support: decides for each node whether it is supported
            allows_single_node_partition: keep partitions with one computing node
            non_compute_ops: operators that do not count as computing
            allowed_single_node_partition_ops: operators that may be alone nevertheless
        """
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = frozenset(map(plain_name, (*_NON_COMPUTE, *(non_compute_ops or ()))))
        self.allowed_single_node_partition_ops = frozenset(
            map(plain_name, allowed_single_node_partition_ops or ())
        )

    def propose_partitions(self) -> list[Partition]:
        """Return partitions, the last of the graph first, numbered from 0."""
        nodes = list(self.graph_module.graph.nodes)
        modules: Any = self.graph_module
        submodules = dict(modules.named_modules())
        answers = {
            node: explain(self.operator_support, submodules, node)
            for node in nodes
            if node.op != "output" and unit_of(node) is node
        }
        note_refused(answers)
        taken = {node for node, answer in answers.items() if answer.supported}
        groups = self._grouped(taken)
        _take_data(groups, taken)
        return numbered(group for group in groups if self._is_large_enough(group))

    def _grouped(self, taken: set[Node]) -> list[list[Node]]:
        return regions(self.graph_module.graph, lambda node: 0 if node in taken else None)

    def _is_large_enough(self, group: Sequence[Node]) -> bool:
        if self.allows_single_node_partition:
            return True
        names = [operator_of(node) for node in group if node.op == "call_function"]
        computing = sum(name not in self.non_compute_ops for name in names)
        alone = any(name in self.allowed_single_node_partition_ops for name in names)
        if computing > 1 or alone:
            return True
        for node in group:
            if node.op == "call_function":
                nodes = plural(computing, "computing node")
                text = f"its partition has {nodes}, fewer than 2"
                note(node, "allows_single_node_partition", NodeOutcome.TOO_SMALL, text)
        return False

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Remove non-compute nodes from the beginnings and ends of partitions."""
        for partition in partitions:
            nodes = partition.nodes
            for backwards in (False, True):
                for node in reversed([*nodes]) if backwards else [*nodes]:
                    around: Iterable[Node] = node.users if backwards else node.all_input_nodes
                    if self._is_idle(node) and not any(other in nodes for other in around):
                        partition.remove_node(node)
                        text = "it only moves data at the edge of its partition"
                        note(node, "non_compute_ops", NodeOutcome.REJECTED, text)

    def _is_idle(self, node: Node) -> bool:
        return node.op == "call_function" and operator_of(node) in self.non_compute_ops


def note_refused(
    answers: Mapping[Node, SupportAnswer], ours: Mapping[Node, Node] | None = None
) -> None:
    """Record the calls that a support object rejected, with reasons.

    Args:
        answers: for nodes of one graph
        ours: our node for each of them, None if they are ours
    """
    accepted = {operator_of(node) for node, answer in answers.items() if answer.supported}
    for node, answer in answers.items():
        if answer.supported or node.op != "call_function":
            continue
        known = answer.has_rule
        if known is None:  # unknown, so infer it from the nodes it accepts in this graph
            known = operator_of(node) in accepted
        outcome = NodeOutcome.REJECTED if known else NodeOutcome.NO_RULE
        mine = node if ours is None else ours.get(node, node)
        note(mine, answer.rule, outcome, answer.text, weak=True)


def plain_name(name: str) -> str:
    """Return an operator's name without the prefixes of Python."""
    name = name.removeprefix("torch.ops.").removeprefix("_operator.")
    return f"{name}.default" if name.count(".") == 1 and name.startswith("aten.") else name


def numbered(groups: Iterable[Sequence[Node]]) -> list[Partition]:
    """Return groups as partitions, the last of the graph first."""
    backwards = [*groups][::-1]
    return [Partition(id=index, nodes=group) for index, group in enumerate(backwards)]


def _take_data(groups: Sequence[list[Node]], taken: set[Node]) -> None:
    """Add supported placeholders and attributes to the first group that reads them."""
    seen: set[Node] = set()
    for group in groups:
        read = [used for node in group for used in node.all_input_nodes]
        data = [
            n
            for n in dict.fromkeys(read)
            if n.op != "call_function" and n in taken and n not in seen
        ]
        seen.update(data)
        group[:0] = data
