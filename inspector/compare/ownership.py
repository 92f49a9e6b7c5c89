"""Nodes that changed owner, and the fate of each partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from inspector.compare.alignment import GraphAlignment
from inspector.compare.model import OwnerChange, PartitionChange
from inspector.files.session import Session
from inspector.graph.delegation import verdicts_by_node
from inspector.graph.model_graph import ModelGraph, ModelNode
from inspector.join.record_maps import verdicts
from schema.backends import short_backend
from schema.graph import NodeKind

PORTABLE = "portable"
_PASSIVE = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT, NodeKind.GET_ATTR)


def owner(node: ModelNode) -> str:
    """Return the owner of a node: a backend, or the kernels of the runtime."""
    return short_backend(node.backend) if node.backend else PORTABLE


def owner_changes(
    alignment: GraphAlignment, session: Session, method: str, number: int
) -> tuple[OwnerChange, ...]:
    """Return the nodes in both graphs whose backend or partition changed.

    Args:
        alignment: of the first graph with this one
        session: of the second graph, for the verdicts in its record
        method: name
        number: index of that session
    """
    same = same_partitions(alignment)
    reasons = _reasons(session, method)
    old_nodes, new_nodes = alignment.old.nodes, alignment.new.nodes
    pairs = [((old_nodes[pair.old],), new_nodes[pair.new]) for pair in alignment.pairs]
    for group in alignment.replaced:
        gone = tuple(old_nodes[each] for each in group.old)
        pairs += [(gone, new_nodes[each]) for each in group.new]
    found: list[OwnerChange] = []
    for gone, new in sorted(pairs, key=lambda pair: pair[1].id):
        if new.node.kind in _PASSIVE or any(_alike(old, new, same) for old in gone):
            continue
        old = gone[0]
        found.append(
            OwnerChange(
                method,
                number,
                ", ".join(each.name for each in gone),
                new.name,
                new.node.target,
                new.node.module_path,
                owner(old),
                owner(new),
                old.delegate,
                new.delegate,
                reasons.get(new.name, ""),
            )
        )
    return tuple(found)


def _alike(old: ModelNode, new: ModelNode, same: Mapping[int, int]) -> bool:
    if old.backend != new.backend:
        return False
    return old.delegate is None or same.get(old.delegate) == new.delegate


def _reasons(session: Session, method: str) -> dict[str, str]:
    if session.record is None:
        return {}
    given = verdicts_by_node(verdicts(session.record, method))
    return {node: found[0].reason for node, found in given.items() if found[0].reason}


def same_partitions(alignment: GraphAlignment) -> dict[int, int]:
    """Return delegate in the old graph -> the most similar one in the new graph.

    A delegate has one partner at most; the pair with most nodes in common comes first.
    """
    common = _common(alignment)
    found: dict[int, int] = {}
    for (old, new), _ in sorted(common.items(), key=lambda item: (-item[1], item[0])):
        if old not in found and new not in found.values():
            found[old] = new
    return found


def _common(alignment: GraphAlignment) -> Counter[tuple[int, int]]:
    common: Counter[tuple[int, int]] = Counter()
    for pair in alignment.pairs:
        old, new = alignment.old.nodes[pair.old], alignment.new.nodes[pair.new]
        if old.delegate is not None and new.delegate is not None and old.backend == new.backend:
            common[old.delegate, new.delegate] += 1
    return common


def partition_changes(
    alignment: GraphAlignment, method: str, number: int
) -> tuple[PartitionChange, ...]:
    """Return the delegates that were removed, added, or have other nodes."""
    same, common = same_partitions(alignment), _common(alignment)
    before, after = _members(alignment.old), _members(alignment.new)
    found: list[PartitionChange] = []
    for old, (backend, count) in sorted(before.items()):
        new = same.get(old)
        others = after[new][1] if new is not None else 0
        shared = common[old, new] if new is not None else 0
        if not shared == count == others:
            found.append(PartitionChange(method, number, old, new, backend, count, others, shared))
    for new, (backend, count) in sorted(after.items()):
        if new not in same.values():
            found.append(PartitionChange(method, number, None, new, backend, 0, count, 0))
    return tuple(found)


def _members(graph: ModelGraph) -> dict[int, tuple[str, int]]:
    found: dict[int, tuple[str, int]] = {}
    for node in graph.nodes:
        if node.delegate is not None:
            backend, count = found.get(node.delegate, (node.backend, 0))
            found[node.delegate] = backend, count + 1
    return found
