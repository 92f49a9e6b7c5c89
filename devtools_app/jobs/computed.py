"""A heavy view-model of a view: computed in a thread, cached while its inputs are unchanged."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, Signal

from devtools_app.jobs.latest import Latest, Token

Made = TypeVar("Made")
_KEPT = 6  # going back and forth between a few methods and sessions costs nothing


class Computed(QObject, Generic[Made]):
    """Request a view-model by key; returned immediately if known, else announced by `ready`.

    Signals:
        ready(key): the value for a key is available; request it again
        failed(error): computing the newest key raised
        busy_changed(on): work began or ended
    """

    ready = Signal(object)
    failed = Signal(object)
    busy_changed = Signal(bool)

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._latest = Latest(name, self)
        self._known: OrderedDict[Hashable, Made] = OrderedDict()
        self._requested: Hashable | None = None
        self._latest.ready.connect(self._keep)
        self._latest.failed.connect(self._fail)
        self._latest.started.connect(lambda: self.busy_changed.emit(True))
        self._latest.ended.connect(lambda: self.busy_changed.emit(False))

    @property
    def busy(self) -> bool:
        """Return whether a value is being computed."""
        return self._latest.busy

    def ask(self, key: Hashable, work: Callable[[Token], Made]) -> Made | None:
        """Return the value for a key, or None and compute it in a thread.

        A newer key replaces a running computation. ``work`` is a pure function of captured values
        and checks its token in loops.
        """
        if key in self._known:
            self._known.move_to_end(key)
            self._drop_work()
            return self._known[key]
        if key != self._requested:
            self._requested = key
            self._latest.submit(work)
        return None

    def forget(self) -> None:
        """Drop all values and the work in progress, when a session closes."""
        self._known.clear()
        self._drop_work()

    def close(self) -> None:
        """Stop and wait for the thread to end."""
        self.forget()
        self._latest.close()

    def _drop_work(self) -> None:
        self._requested = None
        self._latest.cancel()

    def _keep(self, value: Made) -> None:
        key, self._requested = self._requested, None
        self._known[key] = value
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        self.ready.emit(key)

    def _fail(self, error: BaseException) -> None:
        # the key stays wanted: asking for it again must not fail again at every repaint
        self.failed.emit(error)
