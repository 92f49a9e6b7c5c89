"""Watches the files of open sessions; tolerates programs that replace them."""

from __future__ import annotations

import os
from mmap import mmap

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

from devtools_app.state.state import State

_SETTLE_MS = 400  # a file that is still being written changes many times


class Watcher(QObject):
    """Watches while enabled; mapped files are always watched.

    Signals:
        changed(ids): tuple of the ids of sessions whose files changed and can be read again
        rewritten(ids): the same while disabled, for mapped files, whose displayed content
            may have changed
    """

    changed = Signal(object)
    rewritten = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._on = False
        self._files: dict[str, set[str]] = {}
        self._mapped: set[str] = set()
        self._dirty: set[str] = set()
        self._watcher = QFileSystemWatcher(self)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_SETTLE_MS)
        self._timer.timeout.connect(self._reload_ready)
        self._watcher.fileChanged.connect(self._touched)
        self._watcher.directoryChanged.connect(self._folder_touched)

    def set_on(self, on: bool) -> None:
        """Switch watching on or off."""
        self._on = on
        self._dirty.clear()
        self._rewatch()

    def show_state(self, state: State) -> None:
        """Watch the files of the open sessions."""
        files: dict[str, set[str]] = {}
        for one in state.sessions:
            for file in one.session.files:
                files.setdefault(os.path.abspath(file.path), set()).add(one.id)
        mapped = {
            os.path.abspath(file.path)
            for one in state.sessions
            for file in one.session.files
            if isinstance(file.data.obj, mmap)
        }
        if files != self._files or mapped != self._mapped:
            self._files, self._mapped = files, mapped
            self._rewatch()

    def _rewatch(self) -> None:
        old = [*self._watcher.files(), *self._watcher.directories()]
        requested = {path for path in self._mapped if os.path.exists(path)}
        if self._on:
            requested |= {path for path in self._files if os.path.exists(path)}
            requested |= {os.path.dirname(path) for path in self._files}
        gone = [path for path in old if path not in requested]
        new = [path for path in requested if path not in old and os.path.exists(path)]
        if gone:
            self._watcher.removePaths(gone)
        if new:
            self._watcher.addPaths(new)

    def _touched(self, path: str) -> None:
        if path in self._files:
            self._dirty.add(path)
            self._timer.start()

    def _folder_touched(self, folder: str) -> None:
        # a file that was replaced is no longer watched; it comes back through its folder
        watched = set(self._watcher.files())
        for path in self._files:
            if os.path.dirname(path) == folder and path not in watched and os.path.exists(path):
                self._dirty.add(path)
                self._timer.start()

    def _reload_ready(self) -> None:
        ready = {path for path in self._dirty if os.path.exists(path)}
        self._dirty.clear()
        self._rewatch()
        ids = sorted({one for path in ready for one in self._files.get(path, ())})
        if ids and self._on:
            self.changed.emit(tuple(ids))
        elif ids:
            self.rewritten.emit(tuple(ids))
