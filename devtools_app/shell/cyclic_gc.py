"""Cyclic garbage is collected on the GUI thread between events, and nowhere else."""

from __future__ import annotations

import gc
import time

from PySide6.QtCore import QObject, QTimerEvent
from typing_extensions import override

_INTERVAL_MS = 1000
_YOUNG = 700  # new containers; Python's own threshold
_ROUNDS = 10  # collections of one generation before the next older one is due; Python's own
# A full collection looks at every object of every open session: at most 1 % of the time.
_FULL_SHARE = 0.01


class GarbageCollector(QObject):
    """Replaces Python's cyclic collector while it exists.

    Python collects wherever an object happens to be created. Inside an event that Qt sends to all
    widgets in turn (a new style sheet, palette or font) this deletes widgets which Qt is about
    to visit, and in a worker thread it deletes widgets that the GUI thread is using: both end the
    process. A timer of the GUI thread runs when no widget is being visited.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._was_on = gc.isenabled()
        self._full_not_before = 0.0
        gc.disable()
        self.startTimer(_INTERVAL_MS)

    @override
    def timerEvent(self, event: QTimerEvent) -> None:
        """Collect the generations that are due."""
        self.collect_due()

    def collect_due(self) -> int:
        """Collect the generations that are due; return the objects found."""
        young, middle, old = gc.get_count()
        if young < _YOUNG:
            return 0
        if middle < _ROUNDS:
            return gc.collect(0)
        start = time.monotonic()
        if old < _ROUNDS or start < self._full_not_before:
            return gc.collect(1)
        found = gc.collect()
        end = time.monotonic()
        self._full_not_before = end + (end - start) / _FULL_SHARE
        return found

    def stop(self) -> None:
        """Restore Python's collector."""
        if self._was_on:
            gc.enable()
