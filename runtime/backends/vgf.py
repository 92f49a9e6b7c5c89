"""VGF payloads: the TOSA operators of their SPIR-V modules."""

from __future__ import annotations

from runtime.backends.graph import GraphBackend
from runtime.backends.tosa import TosaBackend


class VgfBackend(GraphBackend):
    """Runs VGF containers of one graph segment."""

    id = "VgfBackend"
    table = TosaBackend.table
