"""Maps from a delegate's own identifiers to debug handles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

Identifier = int | str


class DelegateMappingBuilder:
    """Collects identifiers a delegate will log, and the handles of the nodes behind them."""

    def __init__(self, generated_identifiers: bool = False) -> None:
        """Begin empty.

        Args:
            generated_identifiers: number the entries from 0 instead of accepting identifiers
        """
        self._generated = generated_identifiers
        self._handles: dict[Identifier, tuple[int, ...]] = {}

    def get_delegate_mapping(self) -> dict[Identifier, tuple[int, ...]]:
        """Return the sorted, unique handles by identifier."""
        return dict(self._handles)

    def insert_delegate_mapping_entry(
        self,
        nodes: torch.fx.Node | Sequence[torch.fx.Node] | None = None,
        handles: int | Sequence[int | None] | None = None,
        identifier: Identifier | None = None,
    ) -> Identifier:
        """Add an entry and return its identifier.

        Args:
            nodes: nodes it represents; or ``handles``, never both
            handles: debug handles; None entries are skipped
            identifier: name logged by the delegate; omitted if they are generated

        Raises: ValueError if arguments are missing, redundant or duplicate, or no handle remains
        """
        identifier = self._identifier(identifier)
        if (nodes is None) == (handles is None):
            raise ValueError(
                "Only one of nodes or handles must be provided. Either both were provided or "
                "neither were provided. Failed to add or update entry."
            )
        found = {handle for handle in _handles_of(nodes, handles) if handle is not None}
        if not found:
            raise ValueError("No valid debug handles found. Failed to add entry.")
        self._handles[identifier] = tuple(sorted(found))
        return identifier

    def _identifier(self, given: Identifier | None) -> Identifier:
        if self._generated and given is not None:
            raise ValueError(
                "Builders using generated identifiers can't manually add identifiers: "
                f"{given}. Failed to add or update entry"
            )
        if given is not None and given in self._handles:
            raise ValueError(
                "This delegate debug identifier was already inserted. Duplicate delegate debug "
                "identifiers are not allowed."
            )
        if given is not None:
            return given
        if not self._generated:
            raise ValueError("No identifier provided. Failed to add or update entry.")
        return len(self._handles)


def _handles_of(nodes: Any, handles: Any) -> list[int | None]:  # noqa: ANN401
    if nodes is None:
        return list(handles) if isinstance(handles, Sequence) else [handles]  # pyright: ignore[reportUnknownArgumentType]
    given = [nodes] if isinstance(nodes, torch.fx.Node) else list(nodes)
    return [node.meta.get("debug_handle") for node in given]
