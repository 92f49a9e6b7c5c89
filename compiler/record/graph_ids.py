"""Deterministic identifiers of graphs in a record."""

from __future__ import annotations

import hashlib

import torch


class GraphIds:
    """Replaces the addresses by which torch identifies graphs, which differ from run to run.

    An id is derived from the exported graph's nodes and the order in which graphs are encountered,
    so
    that records of different programs rarely share one.
    """

    def __init__(
        self, exported: torch.fx.Graph | None, address: int | None = None, *, kept: bool = False
    ) -> None:
        """Begin with the exported graph.

        Args:
            exported: the graph, None if the record has none
            address: by which nodes refer to it, if different from its own
            kept: keep the addresses unchanged
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
