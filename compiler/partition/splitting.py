"""Splits tagged nodes into acyclic regions under the rules of the user."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping

import torch

from compiler.interface.partitioner import DelegationSpec
from compiler.partition.reasons import groups_noted
from compiler.partition.regions import find_cycle, regions, results_taken, sources, unit_of
from compiler.partition.rules import Granularity, PartitionRules, innermost_module
from compiler.partition.tags import tag_of

Node = torch.fx.Node


def cut(
    graph: torch.fx.Graph,
    specs: Mapping[str, DelegationSpec],
    rules: PartitionRules,
    changed: Collection[str],
) -> list[list[Node]]:
    """Return acyclic regions; unchanged partitions are kept.

    Args:
        graph: tagged
        specs: delegation spec of each tag
        rules: of the user
        changed: tags that lost nodes
    """
    calls = [n for n in graph.nodes if n.op == "call_function" and tag_of(n) in specs]
    taken = set(calls)
    held = _together(graph, taken, set(changed) if _is_plain(rules) else None)
    alone = {held.get(n, n) for n in calls if unit_of(n) is n and rules.stands_alone(n)}

    def label(node: Node) -> Hashable | None:
        if node not in taken:
            return None
        key = held.get(node, node)
        if key in alone:
            return "alone", key
        by_module = rules.granularity is Granularity.MODULE
        return (tag_of(node), innermost_module(node)) if by_module else tag_of(node)

    units = {node: key for node, key in held.items() if unit_of(node) is node}
    return regions(graph, label, units, set(_cuts(graph, rules, calls, units)))


def _is_plain(rules: PartitionRules) -> bool:
    """Return whether the rules keep the partitioner's partitions unsplit."""
    parting = (rules.cut_edges, rules.cut_before, rules.cut_after)
    return not any((*parting, rules.alone_nodes, rules.alone_ops)) and (
        rules.granularity is Granularity.MAXIMAL
    )


def _together(graph: torch.fx.Graph, taken: set[Node], changed: set[str] | None) -> dict[Node, str]:
    """Return the node sets that must stay together: unchanged tags, and noted groups.

    Args:
        graph: tagged
        taken: its tagged calls
        changed: tags that lost nodes; None for all
    """
    tags = {node: str(tag_of(node)) for node in taken}
    groups: dict[Node, str] = {}
    for at, group in enumerate(groups_noted()):
        mine = [node for node in group if node.graph is graph]
        if mine and all(node in taken for node in mine) and len({tags[n] for n in mine}) == 1:
            groups.update(dict.fromkeys(mine, f"group {at}"))
    groups = {node: groups[unit_of(node)] for node in taken if unit_of(node) in groups}
    tried = [groups, {}]
    if changed is not None:
        whole = {node: f"tag {tag}" for node, tag in tags.items() if tag not in changed}
        tried = [{**groups, **whole}, whole, {}]
    return next(found for found in tried if not found or not find_cycle(graph, found))


def _cuts(
    graph: torch.fx.Graph, rules: PartitionRules, calls: list[Node], held: Mapping[Node, str]
) -> Iterator[tuple[Node, Node]]:
    """Yield pairs of a node and a reader of it between which a partition ends."""
    named = {node.name: node for node in graph.nodes}
    for first, second in rules.cut_edges:
        if first in named and second in named:
            yield unit_of(named[first]), unit_of(named[second])
    members: dict[str, list[Node]] = {}
    for node, key in held.items():
        members.setdefault(key, []).append(node)
    for node in calls:
        before, after = rules.cuts(node) if unit_of(node) is node else (False, False)
        if not before and not after:
            continue
        group = members[held[node]] if node in held else [node]
        for each in group:
            read = [s for s in sources(each) if before and s not in group]
            yield from ((source, each) for source in read)
            readers = [r for r in _readers(each) if after and r not in group]
            yield from ((each, reader) for reader in readers)


def _readers(node: Node) -> Iterator[Node]:
    for value in (node, *results_taken(node)):
        for user in value.users:
            if user.op == "call_function" and unit_of(user) is user:
                yield user
