"""What leads to a node, what follows from it, and the ways between two nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from inspector.graph.model_graph import ModelGraph
from schema.objects.identity_cache import identity_cache

Links = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Ways:
    """All ways from some nodes to others.

    Attributes:
        nodes: on any of the ways, with both ends
        shortest: one with the fewest edges, in order
    """

    nodes: frozenset[int]
    shortest: tuple[int, ...]


@identity_cache
def readers(graph: ModelGraph) -> Links:
    """Return the nodes that read each node, by id."""
    return _links(len(graph.nodes), ((edge.source, edge.target) for edge in graph.edges))


@identity_cache
def makers(graph: ModelGraph) -> Links:
    """Return the nodes that each node reads, by id."""
    return _links(len(graph.nodes), ((edge.target, edge.source) for edge in graph.edges))


def _links(nodes: int, pairs: Iterable[tuple[int, int]]) -> Links:
    found: list[dict[int, None]] = [{} for _ in range(nodes)]
    for here, there in pairs:
        found[here][there] = None
    return tuple(tuple(one) for one in found)


def ancestors(graph: ModelGraph, start: Iterable[int]) -> frozenset[int]:
    """Return the nodes that some nodes depend on, with these nodes."""
    return _reached(makers(graph), start)


def descendants(graph: ModelGraph, start: Iterable[int]) -> frozenset[int]:
    """Return the nodes that depend on some nodes, with these nodes."""
    return _reached(readers(graph), start)


def _reached(links: Links, start: Iterable[int]) -> frozenset[int]:
    found = set(start)
    waiting = list(found)
    while waiting:
        for other in links[waiting.pop()]:
            if other not in found:
                found.add(other)
                waiting.append(other)
    return frozenset(found)


def ways_between(graph: ModelGraph, one: Collection[int], two: Collection[int]) -> Ways | None:
    """Return the ways between two sets of nodes, in the direction that has any; None without."""
    for first, last in ((one, two), (two, one)):
        nodes = descendants(graph, first) & ancestors(graph, last)
        if nodes:
            return Ways(nodes, _shortest(readers(graph), first, last))
    return None


def _shortest(links: Links, first: Iterable[int], last: Collection[int]) -> tuple[int, ...]:
    before: dict[int, int | None] = dict.fromkeys(first)
    waiting = deque(before)
    ends = frozenset(last)
    while waiting:
        node = waiting.popleft()
        if node in ends:
            return _back(before, node)
        for other in links[node]:
            if other not in before:
                before[other] = node
                waiting.append(other)
    return ()


def _back(before: dict[int, int | None], node: int) -> tuple[int, ...]:
    way: list[int] = []
    at: int | None = node
    while at is not None:
        way.append(at)
        at = before[at]
    return tuple(reversed(way))


@identity_cache
def subgraph(graph: ModelGraph, kept: tuple[int, ...]) -> ModelGraph:
    """Return the graph of some nodes, in the order of the whole, and the edges between them.

    Args:
        graph: the whole
        kept: ids of the nodes, ascending
    """
    numbers = {old: new for new, old in enumerate(kept)}
    nodes = tuple(replace(graph.nodes[old], id=new) for old, new in numbers.items())
    edges = tuple(
        replace(edge, source=numbers[edge.source], target=numbers[edge.target])
        for edge in graph.edges
        if edge.source in numbers and edge.target in numbers
    )
    return ModelGraph(graph.name, graph.source, nodes, edges, {one.name: one.id for one in nodes})


def around(graph: ModelGraph, nodes: Sequence[int]) -> frozenset[int]:
    """Return some nodes with those that they read and that read them."""
    found = set(nodes)
    for node in nodes:
        found.update(makers(graph)[node])
        found.update(readers(graph)[node])
    return frozenset(found)
