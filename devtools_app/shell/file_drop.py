"""Files may be dropped anywhere on the window, on its text fields too."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QMimeData, QObject
from PySide6.QtGui import QDropEvent, QWindow
from typing_extensions import override


class Dropping(QObject):
    """Handles dropped files before the field below the pointer.

    A text field would insert the address of a file: as a filter that matches nothing, or in the
    middle of the notes. Dropped text is left to the field.

    Args:
        owner: with the same lifetime
        take: called with the dropped paths
    """

    def __init__(self, owner: QObject, take: Callable[[tuple[str, ...]], object]) -> None:
        super().__init__(owner)
        self._take = take
        self._watched: QWindow | None = None

    def watch(self, window: QWindow | None) -> None:
        """Filter drop events of a window before its widgets."""
        if window is not None and window is not self._watched:
            self._watched = window
            window.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QDropEvent):  # entering and moving are kinds of dropping in Qt
            return False
        paths = dropped_files(event.mimeData())
        if not paths:
            return False
        event.acceptProposedAction()
        if event.type() == QEvent.Type.Drop:
            self._take(paths)
        return True


def dropped_files(data: QMimeData) -> tuple[str, ...]:
    """Return the files and folders of this machine in dragged data."""
    return tuple(url.toLocalFile() for url in data.urls() if url.isLocalFile())
