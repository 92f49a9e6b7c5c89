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
    down = [(v, u) if up else (u, v) for (u, v), up in zip(pairs, upward, strict=True)]
    above, below = _neighbours(count, down)
    order = _topological(count, above, below)
    rank = [0] * count
    for item in order:
        lowest = rank[item] + 1
        for reader in below[item]:
            rank[reader] = max(rank[reader], lowest)
    for item in reversed(order):
        if not above[item] and below[item] and not pinned[item]:
            rank[item] = min(rank[reader] for reader in below[item]) - 1
    return rank, upward


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
