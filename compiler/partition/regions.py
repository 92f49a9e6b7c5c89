"""Acyclic regions of a graph, found in time linear in its nodes and edges.

A region may be replaced by one call only if no path leaves and re-enters it, and several regions
together only if they do not depend on each other cyclically.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

import torch

Node = torch.fx.Node


def follows_source(node: Node) -> bool:
    """Return whether a node only selects one of several results of another."""
    return node.op == "call_function" and node.target is operator.getitem


def unit_of(node: Node) -> Node:
    """Return the node that computes: the source of a ``getitem``, or the node itself."""
    while follows_source(node) and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def regions(
    graph: torch.fx.Graph,
    label: Callable[[Node], Hashable | None],
    groups: Mapping[Node, str] | None = None,
    cuts: Collection[tuple[Node, Node]] = (),
) -> list[list[Node]]:
    """Return sets of equally labelled calls that can be contracted all at once.

    Each node is given a depth: how often a path from the inputs leaves a label. Depths never fall
    along an edge and rise where a label is left, so all equally deep nodes of a label are one
    region, whether or not they read each other. With one label and no cuts there cannot be fewer
    regions: the deepest path alone needs that many. Nodes that only feed deeper nodes are moved
        down to
    them first.

    Args:
        graph: in topological order
        label: of a node, None to exclude it; a ``getitem`` has the label of its source
        groups: sets that stay together, none of which forms a cycle; the label of the first node
            applies
        cuts: pairs of a node and a reader of it that must not be in one region
    """
    nodes = [node for node in graph.nodes if node.op == "call_function" and unit_of(node) is node]
    held = groups or {}
    keys = {node: held.get(node, node) for node in nodes}
    members: dict[Hashable, list[Node]] = {}
    for node in nodes:
        members.setdefault(keys[node], []).append(node)
    order: Sequence[Hashable] = list(members)
    if held:  # groups move nodes to the last of them, results follow their producer
        followed = {n: held[unit_of(n)] for n in graph.nodes if unit_of(n) in held}
        order = [key for key in contracted(graph, followed)[0] if key in members]
    labels = {key: label(members[key][0]) for key in order}
    places = {found: at for at, found in enumerate(dict.fromkeys(labels.values()), 1)}
    classes = {key: 0 if labels[key] is None else places[labels[key]] for key in order}
    read = {
        key: list(dict.fromkeys(keys[s] for node in members[key] for s in sources(node)))
        for key in order
    }
    cut = {(keys[a], keys[b]) for a, b in cuts if a in keys and b in keys}
    others = {key: [s for s in read[key] if s != key] for key in order}
    depth = _depths(
        order, others, lambda a, b: classes[a] > 0 and (classes[a] != classes[b] or (a, b) in cut)
    )
    found: dict[tuple[int, int], list[Hashable]] = {}
    for key in order:
        if classes[key]:
            found.setdefault((classes[key], depth[key]), []).append(key)
    return [_with_results(_in_order(nodes, members, group)) for group in found.values()]


def sources(node: Node) -> Iterable[Node]:
    """Return the computing nodes a node reads."""
    return [unit_of(used) for used in node.all_input_nodes if used.op == "call_function"]


def _depths(
    order: Sequence[Hashable],
    read: Mapping[Hashable, Sequence[Hashable]],
    parts: Callable[[Hashable, Hashable], bool],
) -> dict[Hashable, int]:
    readers: dict[Hashable, list[Hashable]] = {key: [] for key in order}
    depth: dict[Hashable, int] = {}
    for key in order:
        for source in read[key]:
            readers[source].append(key)
        above = (depth[s] + parts(s, key) for s in read[key])
        depth[key] = max(above, default=0)
    for key in reversed(order):
        below = [depth[r] - parts(key, r) for r in readers[key]]
        if below:
            depth[key] = max(depth[key], min(below))
    return depth


def _in_order(
    nodes: Sequence[Node], members: Mapping[Hashable, Sequence[Node]], keys: Sequence[Hashable]
) -> list[Node]:
    found = [node for key in keys for node in members[key]]
    if len(found) == len(keys):
        return found
    requested = set(found)
    return [node for node in nodes if node in requested]


def _with_results(group: Iterable[Node]) -> list[Node]:
    """Return nodes followed each by the ``getitem`` nodes that read it."""
    found: list[Node] = []
    for node in group:
        found += (node, *results_taken(node))
    return found


def results_taken(node: Node) -> list[Node]:
    """Return the ``getitem`` nodes that read a node, and those that read them."""
    found: list[Node] = []
    for user in node.users:
        if follows_source(user) and user.args[0] is node:
            found += (user, *results_taken(user))
    return found


def find_cycle(graph: torch.fx.Graph, group_of: Mapping[Node, str]) -> list[Node]:
    """Return nodes along a cycle created by contracting each group to one call; empty if acyclic.

    Args:
        graph: in topological order
        group_of: group of each node that is in one
    """
    order, after = contracted(graph, group_of)
    if len(order) == len(after):
        return []
    left = {key: [k for k in after[key] if k not in order] for key in after if key not in order}
    return _spelled_out(_loop(left), group_of, graph)


def contracted(
    graph: torch.fx.Graph, group_of: Mapping[Node, str]
) -> tuple[dict[Hashable, int], dict[Hashable, list[Hashable]]]:
    """Return an order of nodes and groups, and the predecessors of each.

    The order has every node and group unless there is a cycle.
    """
    waits: dict[Hashable, dict[Hashable, None]] = {}
    place: dict[Hashable, int] = {}
    for index, node in enumerate(graph.nodes):
        key: Hashable = group_of.get(node, node)
        place[key] = index  # a group is placed at its last node
        mine = waits.setdefault(key, {})
        for used in node.all_input_nodes:
            source: Hashable = group_of.get(used, used)
            if source != key:
                mine[source] = None
    return _sorted(waits, place), {key: list(found) for key, found in waits.items()}


def _sorted(
    waits: Mapping[Hashable, Mapping[Hashable, None]], place: Mapping[Hashable, int]
) -> dict[Hashable, int]:
    readers: dict[Hashable, list[Hashable]] = {key: [] for key in waits}
    missing = {key: len(found) for key, found in waits.items()}
    for key, found in waits.items():
        for source in found:
            readers[source].append(key)
    keys = sorted(waits, key=place.__getitem__)
    number = {key: index for index, key in enumerate(keys)}
    ready = [number[key] for key in keys if not missing[key]]
    order: dict[Hashable, int] = {}
    while ready:
        key = keys[heapq.heappop(ready)]
        order[key] = len(order)
        for reader in readers[key]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, number[reader])
    return order


def _loop(waits: Mapping[Hashable, Sequence[Hashable]]) -> list[Hashable]:
    """Return keys each of which waits for the next, the last for the first."""
    key = next(iter(waits))
    seen: dict[Hashable, int] = {}
    while key not in seen:
        seen[key] = len(seen)
        key = waits[key][0]
    return [k for k, at in seen.items() if at >= seen[key]]


def _spelled_out(
    loop: Sequence[Hashable], group_of: Mapping[Node, str], graph: torch.fx.Graph
) -> list[Node]:
    """Return the nodes at which the loop passes from one key to the next, in data order."""
    found: list[Node] = []
    for reader, source in zip(loop, (*loop[1:], loop[0]), strict=True):
        for node in graph.nodes:
            if group_of.get(node, node) != reader:
                continue
            used = [u for u in node.all_input_nodes if group_of.get(u, u) == source]
            if used:
                found += (node, used[0])
                break
    return list(dict.fromkeys(reversed(found)))
