"""Calls from a thread to the GUI thread, whatever has become of who is called."""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import cache, partial

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer, Signal, Slot
from shiboken6 import isValid
from typing_extensions import override

_SLICE_SECONDS = 0.010  # of calls in a row; the user's events come before further ones


class _Question(QEvent):
    """Asks whether the events before it are done."""

    KIND = QEvent.Type(QEvent.registerEventType())

    def __init__(self) -> None:
        super().__init__(self.KIND)
        self.answered = threading.Event()


class GuiThread(QObject):
    """Makes calls on the thread it was made on, in order; lives as long as the program.

    A thread that emitted a signal of the object it works for would end the process where that
    object is destroyed meanwhile, as with a dialog that is closed.
    """

    _posted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._posted.connect(self._make_calls, Qt.ConnectionType.QueuedConnection)
        self._lock = threading.RLock()
        self._calls: deque[tuple[QObject, Callable[[], object]]] = deque()
        self._scheduled = False
        self._ended = False
        atexit.register(self._end)  # before Qt's own end, during which threads still run

    @property
    def busy(self) -> bool:
        """Return whether calls are waiting to be made."""
        return self._scheduled

    def post(self, owner: QObject, call: Callable[..., object], *values: object) -> None:
        """Make a call from the event loop, unless its owner is destroyed until then."""
        with self._lock:
            if self._ended:
                return
            self._calls.append((owner, partial(call, *values)))
            if not self._scheduled:
                self._scheduled = True
                self._posted.emit()

    def ask(self) -> threading.Event:
        """Return an event that is set once the GUI thread has done the events there are.

        Between two pieces of work a thread leaves the interpreter to the GUI thread like this:
        each function of ours that Qt calls while it lays out and paints has to have it.
        """
        question = _Question()
        answered = question.answered
        with self._lock:
            if self._ended:
                answered.set()
            else:
                low = Qt.EventPriority.LowEventPriority.value
                QCoreApplication.postEvent(self, question, low)
        return answered

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, _Question):
            event.answered.set()
            return True
        return super().event(event)

    def _end(self) -> None:
        with self._lock:
            self._ended = True

    @Slot()
    def _make_calls(self) -> None:
        end = time.perf_counter() + _SLICE_SECONDS
        try:
            while self._calls:
                owner, call = self._calls.popleft()
                if isValid(owner):
                    call()
                if time.perf_counter() > end:
                    break
        finally:  # also after a call that failed
            with self._lock:
                self._scheduled = bool(self._calls)
            if self._scheduled:
                QTimer.singleShot(0, self, self._make_calls)


@cache
def gui_thread() -> GuiThread:
    """Return the one of the program; called on the GUI thread first."""
    return GuiThread()
