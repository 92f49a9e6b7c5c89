"""Deterministic identifiers of graphs in a record."""

from __future__ import annotations

import hashlib

import torch


class GraphIds:
    """Replaces the addresses that torch names graphs by, which differ from run to run.

    A number is made of the exported graph's nodes and of the order in which graphs are met, so
    that records of different programs rarely share one.
    """

    def __init__(
        self, exported: torch.fx.Graph | None, address: int | None = None, *, kept: bool = False
    ) -> None:
        """Begin with the exported graph.

        Args:
            exported: the graph, None where a record has none
            address: that nodes name it by, where that is another than its own
            kept: leave the addresses as they are
        """
        nodes = exported.nodes if exported is not None else ()
        text = "\n".join(f"{node.name} {node.target}" for node in nodes)
        self._seed = hashlib.blake2b(text.encode(), digest_size=16).digest()
        self._numbers: dict[int, int] = {}
        self._kept = kept
        if exported is not None:
            self.of(address or id(exported))

    def of(self, address: int) -> int:
        """Return the identifier, of up to 48 bits, of the graph at an address."""
        if self._kept:
            return address
        known = self._numbers.get(address)
        if known is None:
            order = len(self._numbers).to_bytes(8, "little")
            digest = hashlib.blake2b(self._seed + order, digest_size=6).digest()
            known = self._numbers[address] = int.from_bytes(digest, "little")
        return known
