"""The order of the nodes inside a partition, which another compiler keeps as a list of handles.

The stock tool writes the nodes of a partition in an order of its own, lists their debug handles in
that order, and its passes then number the nodes of each kind again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schema.graph import GraphNode


@dataclass(frozen=True, slots=True)
class PartitionOrder:
    """The nodes of a partition in its order.

    Attributes:
        nodes: in the order of the partition
        unsure: kinds of which handles and operands do not tell which node is which
    """

    nodes: tuple[GraphNode, ...]
    unsure: frozenset[str]

    def renamed(self) -> dict[str, str]:
        """Return name in the partition, as its passes number it -> recorded name."""
        count: dict[str, int] = {}
        found: dict[str, str] = {}
        for node in self.nodes:
            kind = kind_of(node.name)
            number = count[kind] = count.get(kind, -1) + 1
            found[f"{kind}_{number}" if number else kind] = node.name
        return found


def partition_order(recorded: Sequence[GraphNode], handles: Sequence[int]) -> PartitionOrder | None:
    """Return the order that a list of handles shows; None if it is not one of these nodes.

    Args:
        recorded: nodes that may be in the partition, with those that select a result
        handles: of the nodes of the partition, in its order
    """
    waiting: dict[int, list[int]] = {}
    for place, node in enumerate(recorded):
        if node.debug_handle is not None:
            waiting.setdefault(node.debug_handle, []).append(place)
    missing = {value for node in recorded for value in node.outputs}
    placed: list[int] = []
    unsure: set[str] = set()
    for handle in handles:
        left = waiting.get(handle, [])
        ready = [place for place in left if missing.isdisjoint(recorded[place].inputs)]
        if not ready:
            return None
        if len(ready) > 1:
            unsure.update(kind_of(recorded[place].name) for place in left)
        left.remove(ready[0])
        placed.append(ready[0])
        missing.difference_update(recorded[ready[0]].outputs)
    if placed == sorted(placed):  # the partition kept the recorded order
        unsure.clear()
    return PartitionOrder(tuple(recorded[place] for place in placed), frozenset(unsure))


def kind_of(name: str) -> str:
    """Return the name of a node without its number among those of its operator."""
    stem, _, number = name.rpartition("_")
    return stem if stem and number.isdecimal() else name
