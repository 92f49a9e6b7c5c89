"""The graph that a command stream was compiled from, which runs where its hardware is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schema import payloads
from schema.payloads.model import Payload

_TOSA, _GRAPH = "TOSABackend", ".tosa"


def executed_graph(
    kept: Mapping[str, bytes], compile_specs: Sequence[tuple[str, bytes]]
) -> Payload | None:
    """Return the TOSA graph among the files that the compile kept, None if there is none.

    Args:
        kept: files that the vendor's tools left for the payload, by name
        compile_specs: of the delegate
    """
    graphs = sorted(name for name in kept if name.endswith(_GRAPH))
    if not graphs:
        return None
    return payloads.decode(_TOSA, memoryview(kept[graphs[0]]), {}, compile_specs)
