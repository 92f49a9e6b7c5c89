"""Files may be dropped anywhere on the window, on its text fields too."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QMimeData, QObject
from PySide6.QtGui import QDropEvent, QWindow
from typing_extensions import override


class Dropping(QObject):
    """Takes dropped files before the field below the pointer does.

    A text field would insert the address of a file: as a filter that matches nothing, or in the
    middle of the notes. Text that is dropped stays the field's business.

    Args:
        owner: lives as long as this
        take: is given the paths that were dropped
    """

    def __init__(self, owner: QObject, take: Callable[[tuple[str, ...]], object]) -> None:
        super().__init__(owner)
        self._take = take
        self._watched: QWindow | None = None

    def watch(self, window: QWindow | None) -> None:
        """Look at what the system drops on a window, before its widgets see it."""
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
    """Return the files and folders of this machine in what is dragged."""
    return tuple(url.toLocalFile() for url in data.urls() if url.isLocalFile())
