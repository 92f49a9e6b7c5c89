"""Partitions whose backend is not here, run by the graph they were made from."""

from __future__ import annotations

from runtime.emulation.backend import EmulatedBackend
from runtime.emulation.find import Emulation

__all__ = ["EmulatedBackend", "Emulation"]
