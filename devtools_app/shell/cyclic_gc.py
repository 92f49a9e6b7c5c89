"""Cyclic garbage is collected on the GUI thread between events, and nowhere else."""

from __future__ import annotations

import gc
import time

from PySide6.QtCore import QObject, Qt, QTimerEvent
from PySide6.QtGui import QGuiApplication
from typing_extensions import override

_INTERVAL_MS = 1000
_YOUNG = 700  # new containers; Python's own threshold
_ROUNDS = 10  # collections of one generation before the next older one is due; Python's own
_FULL_SHARE = 0.01  # of the time for full collections
# Objects that are looked at within a frame: 100,000 took 34 ms. More of them are modules or the
# models of a session, which are kept: they are frozen instead.
_MOST = 30_000


class GarbageCollector(QObject):
    """Replaces Python's cyclic collector while it exists.

    Python collects wherever an object happens to be created. Inside an event that Qt sends to all
    widgets in turn (a new style sheet, palette or font) this deletes widgets which Qt is about
    to visit, and in a worker thread it deletes widgets that the GUI thread is using: both end the
    process. A timer of the GUI thread runs when no widget is being visited.

    Generations that would take longer than a frame are frozen. After `thaw` everything is looked at
    once while the user is in another window: it takes 110 to 140 ms with a small session.
    What the sessions themselves hold is in no cycles and is freed without it.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._was_on = gc.isenabled()
        self._full_not_before = 0.0
        self._thaws = False
        gc.disable()
        self.startTimer(_INTERVAL_MS)

    @override
    def timerEvent(self, event: QTimerEvent) -> None:
        """Collect the generations that are due."""
        self.collect_due()

    def collect_due(self) -> int:
        """Collect the generations that are due; return the objects found."""
        young, middle, old = gc.get_count()
        if self._thaws and _unattended():
            gc.unfreeze()
            self._thaws = False
            return gc.collect()
        if young < _YOUNG:
            return 0
        if young > _MOST:
            gc.freeze()
            return 0
        if middle < _ROUNDS:
            return gc.collect(0)
        start = time.monotonic()
        full = start >= self._full_not_before and old >= _ROUNDS
        generation = 2 if full else 1
        if _objects(generation) > _MOST:
            gc.freeze()
            return 0
        found = gc.collect(generation)
        if full:
            end = time.monotonic()
            self._full_not_before = end + (end - start) / _FULL_SHARE
        return found

    def thaw(self) -> None:
        """Collect frozen objects, too, once no one waits for it: a session was closed."""
        self._thaws = True

    def stop(self) -> None:
        """Restore Python's collector."""
        if self._was_on:
            gc.enable()
        gc.unfreeze()


def _objects(generation: int) -> int:
    """Return how many objects a collection looks at."""
    return sum(len(gc.get_objects(generation=one)) for one in range(generation + 1))


def _unattended() -> bool:
    """Return whether the user is in another program's window, or in none."""
    return QGuiApplication.applicationState() != Qt.ApplicationState.ApplicationActive
