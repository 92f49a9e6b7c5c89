"""Ranks inside one cluster: cycles broken, every edge pointing down."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

Pair = tuple[int, int]


def rank_items(
    count: int, pairs: Sequence[Pair], pinned: Sequence[bool]
) -> tuple[list[int], list[bool]]:
    """Return the rank of each item and which pairs are drawn upwards.

    Items are numbered in execution order. Where pairs form a cycle those that go back in that
    order point up; all others point down by at least one rank. An item without predecessors that
    is not pinned moves down to just above its first reader.

    Args:
        count: number of items
        pairs: source and target of each edge, no item with itself
        pinned: items fed from outside the cluster, which stay where they are
    """
    upward = _upward(count, pairs)
    down = pairs
    if any(upward):
        down = [(v, u) if up else (u, v) for (u, v), up in zip(pairs, upward, strict=True)]
    rank, fed = [0] * count, [False] * count
    for upper, lower in _from_above(count, down):
        fed[lower] = True
        if rank[lower] <= rank[upper]:
            rank[lower] = rank[upper] + 1
    nearest: dict[int, int] = {}  # rank of the first reader of what nothing leads to
    for upper, lower in down:
        if not fed[upper] and not pinned[upper]:
            nearest[upper] = min(nearest.get(upper, count), rank[lower])
    for upper, reader in nearest.items():
        rank[upper] = reader - 1
    return rank, upward


def _from_above(count: int, pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Return the pairs of an acyclic graph, those into an item before those out of it."""
    if all(upper < lower for upper, lower in pairs):  # execution order is an order of flow
        return sorted(pairs)
    above, below = _neighbours(count, pairs)
    order = _topological(count, above, below)
    return [(item, reader) for item in order for reader in below[item]]


def _neighbours(count: int, pairs: Sequence[Pair]) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in pairs:
        above[lower].append(upper)
        below[upper].append(lower)
    return above, below


def _topological(count: int, above: list[list[int]], below: list[list[int]]) -> list[int]:
    waiting = [len(found) for found in above]
    ready = deque(item for item in range(count) if not waiting[item])
    order: list[int] = []
    while ready:
        item = ready.popleft()
        order.append(item)
        for reader in below[item]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    return order


def _upward(count: int, pairs: Sequence[Pair]) -> list[bool]:
    """Return the pairs to turn: those against execution order that lie on, or between, cycles."""
    if all(source < target for source, target in pairs):
        return [False] * len(pairs)
    above, below = _neighbours(count, pairs)
    free = set(_topological(count, above, below))
    if len(free) == count:
        return [False] * len(pairs)
    free.update(_topological(count, below, above))
    return [u > v and u not in free and v not in free for u, v in pairs]
