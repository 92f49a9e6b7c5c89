"""Calls from a thread to the GUI thread, whatever has become of who is called."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from functools import cache, partial

from PySide6.QtCore import QObject, Qt, Signal, Slot
from shiboken6 import isValid


class GuiThread(QObject):
    """Makes calls on the thread it was made on; lives as long as the program.

    A thread that emitted a signal of the object it works for would end the process where that
    object is destroyed meanwhile, as with a dialog that is closed.
    """

    _posted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._posted.connect(self._call, Qt.ConnectionType.QueuedConnection)
        self._lock = threading.RLock()
        self._ended = False
        atexit.register(self._end)  # before Qt's own end, during which threads still run

    def post(self, owner: QObject, call: Callable[..., object], *values: object) -> None:
        """Make a call from the event loop, unless its owner is destroyed until then."""
        with self._lock:
            if not self._ended:
                self._posted.emit((owner, partial(call, *values)))

    def _end(self) -> None:
        with self._lock:
            self._ended = True

    @Slot(object)
    def _call(self, posted: tuple[QObject, Callable[[], object]]) -> None:
        owner, call = posted
        if isValid(owner):
            call()


@cache
def gui_thread() -> GuiThread:
    """Return the one of the program; called on the GUI thread first."""
    return GuiThread()
