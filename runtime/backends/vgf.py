"""VGF payloads: the TOSA operators of their SPIR-V modules."""

from __future__ import annotations

from runtime.backends.tosa import TosaBackend


class VgfBackend(TosaBackend):
    """Runs VGF containers whose segments are graphs, one after the other."""

    id = "VgfBackend"
