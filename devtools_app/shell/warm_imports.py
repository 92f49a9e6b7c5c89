"""Imports modules in a thread after the window is shown."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.jobs.imports import Imports
from devtools_app.views import VIEWS

READERS = (  # what the window itself needs for a session
    "inspector.files.load",
    "inspector.findings.session",
    "devtools_app.viewmodels.status",
    "devtools_app.viewmodels.data_colours",
    "devtools_app.appearance.colour_maps",
)
_LATER = (  # imported where a view first draws with them
    "devtools_app.widgets.chart",
    "devtools_app.viewmodels.python_tokens",
    "inspector.memory.logged",
)


class Warming(QObject):
    """Begins to import modules as soon as a window is on the screen."""

    def __init__(self, imports: Imports, window: QWidget) -> None:
        super().__init__(window)
        self._imports = imports
        self._window = window

    def start_after_first_paint(self) -> None:
        """Wait for the window."""
        self._window.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            watched.removeEventFilter(self)
            QTimer.singleShot(0, self._start)  # this event comes before the paint itself
        return False

    def _start(self) -> None:
        views = tuple(f"devtools_app.views.{view.name}" for view in VIEWS)
        self._imports.start((*READERS, *views, *_LATER))
