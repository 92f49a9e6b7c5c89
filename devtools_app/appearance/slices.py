"""Work that has to be done on the GUI thread, in slices between the user's events."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PySide6.QtCore import QObject, QTimer

_SECONDS = 0.004


class Slices(QObject):
    """Does the steps of an iterator one after the other; new ones replace those that are left."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._steps: Iterator[object] = iter(())
        self._timer = QTimer(self)  # without an interval: after the events that wait
        self._timer.timeout.connect(self._go_on)

    @property
    def busy(self) -> bool:
        """Return whether steps are left."""
        return self._timer.isActive()

    def start(self, steps: Iterator[object], *, at_once: bool = False) -> None:
        """Do steps from the next event on, the first ones at once if asked for."""
        self._steps = steps
        self._timer.start()
        if at_once:
            self._go_on()

    def stop(self) -> None:
        """Leave out the steps that are left."""
        self._steps = iter(())
        self._timer.stop()

    def _go_on(self) -> None:
        steps, end = self._steps, time.perf_counter() + _SECONDS
        for _ in steps:  # one that fails is reported by Qt, the others follow
            if time.perf_counter() > end:
                return
        if steps is self._steps:  # the last one may have started others
            self.stop()
