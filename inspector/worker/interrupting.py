"""Jobs that end before their time: the request of the user, and the error that carries it out."""

from __future__ import annotations

import threading
from collections.abc import Callable


class InterruptedTaskError(Exception):
    """A job that ends without a report; its function has handled the reason."""


class StopSignal:
    """The request of the user to end a job with partial results."""

    def __init__(self) -> None:
        self._asked = False
        self._lock = threading.Lock()
        self._action: Callable[[], object] | None = None

    def is_asked(self) -> bool:
        """Return whether to end."""
        return self._asked

    def ask(self) -> None:
        """Request an end; called on any thread."""
        with self._lock:
            self._asked = True
            if self._action is not None:
                self._action()

    def when_asked(self, action: Callable[[], object] | None) -> None:
        """Call back once an end is requested; None forgets the callback."""
        with self._lock:
            self._action = action
            if self._asked and action is not None:
                action()
