"""Imports modules in a thread after the window is shown."""

from __future__ import annotations

import importlib
import logging
import threading

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.views import VIEWS

_LOG = logging.getLogger(__name__)
_READERS = ("inspector.files.load", "inspector.findings.session", "devtools_app.viewmodels.status")
_LATER = (  # imported where a view first draws with them
    "devtools_app.widgets.chart",
    "devtools_app.viewmodels.python_tokens",
)


class Warming(QObject):
    """One thread that imports modules, one after the other, until it is stopped."""

    def __init__(self, modules: tuple[str, ...] | None = None) -> None:
        super().__init__()
        views = tuple(f"devtools_app.views.{view.name}" for view in VIEWS)
        self._modules = (*_READERS, *views, *_LATER) if modules is None else modules
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="importing", daemon=True)

    def start_after_first_paint(self, window: QWidget) -> None:
        """Begin to import as soon as a window is on the screen."""
        window.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            watched.removeEventFilter(self)
            QTimer.singleShot(0, self.start)  # this event comes before the paint itself
        return False

    def start(self) -> None:
        """Begin to import."""
        self._thread.start()

    def stop(self) -> None:
        """Wait for the current module; skip the others."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def _run(self) -> None:
        for name in self._modules:
            if self._stop.is_set():
                return
            try:
                importlib.import_module(name)
            except Exception:  # noqa: BLE001 - the view that needs the module reports it
                _LOG.exception("%s cannot be imported", name)
