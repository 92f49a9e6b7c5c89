"""Watches the files and folders of open sessions; tolerates programs that replace them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from mmap import mmap

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

from devtools_app.sessions.watched_tree import Listing, listing
from devtools_app.state.state import State

_SETTLE_MS = 400  # a file that is still being written changes many times
_GONE_MS = 4000  # a build deletes a program before it writes the next one
_MOST_SETTLING = 25  # times to wait for a folder that never comes to rest

Stamp = tuple[int, int, int]  # inode, time of change in ns, size in bytes


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def _nearest_folder(path: str) -> str:
    """Return a folder, or of one that is not there the nearest above it."""
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


class Watcher(QObject):
    """Watches while enabled; mapped files are always watched.

    Signals:
        changed(ids): tuple of the ids of sessions whose files changed, or are gone
        rewritten(ids): the same while disabled, for mapped files, whose displayed content
            may have changed
        appeared(folders): tuple of awaited folders that have files now
    """

    changed = Signal(object)
    rewritten = Signal(object)
    appeared = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._on = False
        self._files: dict[str, set[str]] = {}
        self._mapped: set[str] = set()
        self._dirty: set[str] = set()
        self._reported: dict[str, Stamp | None] = {}  # of each file, when it was last read
        self._inodes: dict[str, int] = {}  # of the watched paths
        self._trees: dict[str, set[str]] = {}  # folders that were opened, and their sessions
        self._awaited: set[str] = set()  # those of them without a session
        self._listed: dict[str, Listing] = {}
        self._tried: dict[str, Listing] = {}  # what awaited folders had when they were read last
        self._touched_trees: set[str] = set()
        self._seen: dict[str, Listing] = {}  # since they were touched
        self._settling = 0
        self._watcher = QFileSystemWatcher(self)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_SETTLE_MS)
        self._timer.timeout.connect(self._reload_ready)
        self._missing: set[str] = set()  # files that are gone
        self._patience = QTimer(self, singleShot=True, interval=_GONE_MS)
        self._patience.timeout.connect(self._report_missing)
        self._watcher.fileChanged.connect(self._touched)
        self._watcher.directoryChanged.connect(self._folder_touched)

    def set_on(self, on: bool) -> None:
        """Switch watching on or off."""
        self._on = on
        self._dirty.clear()
        self._touched_trees.clear()
        self._reported.clear()
        self._list_trees()
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
        trees: dict[str, set[str]] = {folder: set() for folder in self._awaited}
        for one in state.sessions:
            for path in one.paths:
                if os.path.isdir(path):
                    trees.setdefault(os.path.abspath(path), set()).add(one.id)
        if files != self._files or mapped != self._mapped or trees != self._trees:
            self._files, self._mapped, self._trees = files, mapped, trees
            self._list_trees()
            self._rewatch()

    def wait_for(self, folders: Iterable[str]) -> None:
        """Watch folders from which nothing could be opened yet, until they have files."""
        self._awaited.update(folders)
        self._trees = {**{folder: set() for folder in self._awaited}, **self._trees}
        self._list_trees()
        self._rewatch()
        for folder in self._awaited & set(self._listed):
            if self._listed[folder] != self._tried.get(folder, {}):  # came while it was read
                self._tried[folder] = self._listed[folder]
                self._touched_trees.add(folder)
                self._timer.start()

    def _list_trees(self) -> None:
        """Remember the current contents of the folders; a folder that was known keeps its state."""
        trees = self._trees if self._on else {}
        self._listed = {one: self._listed.get(one) or listing(one)[0] for one in trees}

    def _rewatch(self) -> None:
        old = [*self._watcher.files(), *self._watcher.directories()]
        requested = {path for path in self._mapped if os.path.exists(path)}
        if self._on:
            requested |= {path for path in self._files if os.path.exists(path)}
            for folder in {*self._trees, *map(os.path.dirname, self._files)}:
                requested.add(_nearest_folder(folder))  # what a build deleted, it makes again
            for tree in self._trees:
                requested.update(listing(tree)[1])
        stamps = {path: _stamp(path) for path in requested}
        inodes = {path: stamp[0] for path, stamp in stamps.items() if stamp}
        # a watch is of an inode: Qt may still list a path whose file was replaced by another
        gone = [path for path in old if inodes.get(path) != self._inodes.get(path)]
        new = [path for path in inodes if path not in old or path in gone]
        if gone:
            self._watcher.removePaths(gone)
        if new:
            self._watcher.addPaths(new)
        self._inodes = inodes
        self._reported = {path: self._reported.get(path, _stamp(path)) for path in self._files}

    def _touched(self, path: str) -> None:
        if path in self._files:
            self._dirty.add(path)
            self._timer.start()

    def _folder_touched(self, folder: str) -> None:
        for tree in self._trees:
            if _is_in(folder, tree) or (_is_in(tree, folder) and os.path.isdir(tree)):
                self._touched_trees.add(tree)
                self._timer.start()
        if any(_is_in(path, folder) for path in self._replaced()):
            self._timer.start()

    def _replaced(self) -> set[str]:
        """Return files that are others than were read: such a file has no watch of its own."""
        stamps = {path: _stamp(path) for path in self._files}
        return {path for path, one in stamps.items() if one not in (None, self._reported.get(path))}

    def _report_missing(self) -> None:
        """Report the sessions with files that have not come back, once for each file."""
        gone = {path for path in self._missing & set(self._files) if not os.path.exists(path)}
        self._missing.clear()
        self._reported.update(dict.fromkeys(gone))  # also read again where it is moved back
        ids = sorted({one for path in gone for one in self._files[path]})
        if ids and self._on:
            self.changed.emit(tuple(ids))

    def _changed_trees(self) -> tuple[set[str], bool]:
        """Return the sessions whose folder has other files, and whether any is still written to."""
        ids: set[str] = set()
        for tree in self._touched_trees & set(self._trees):
            now, before = listing(tree)[0], self._listed.get(tree, {})
            if now != self._seen.get(tree):
                self._seen[tree] = now
                if self._settling < _MOST_SETTLING:
                    return set(), True
            if {path for path, (size, _) in now.items() if size} - set(before):
                ids |= self._trees[tree]
        return ids, False

    def _take_awaited(self) -> tuple[str, ...]:
        """Return the touched folders that were waited for; they are not from now on."""
        found = sorted(self._touched_trees & self._awaited)
        self._awaited.difference_update(found)
        for tree in found:
            self._tried[tree] = self._listed.get(tree, {})
            if not self._trees.get(tree):
                self._trees.pop(tree, None)
        return tuple(found)

    def _reload_ready(self) -> None:
        new, moving = self._changed_trees()
        if moving:  # look again: what is half written is not read
            self._settling += 1
            self._rewatch()
            self._timer.start()
            return
        self._settling = 0
        if self._on:
            self._dirty |= self._replaced()
        for tree in self._touched_trees & set(self._trees):
            self._listed[tree] = self._seen.pop(tree, None) or listing(tree)[0]
        appeared = self._take_awaited()
        self._touched_trees.clear()
        ready = {path for path in self._dirty if os.path.exists(path)}
        if self._on and self._dirty - ready:
            self._missing |= self._dirty - ready
            self._patience.start()
        self._dirty.clear()
        self._reported.update({path: _stamp(path) for path in ready})
        self._rewatch()
        ids = sorted(new | {one for path in ready for one in self._files.get(path, ())})
        if ids and self._on:
            self.changed.emit(tuple(ids))
        elif ids:
            self.rewritten.emit(tuple(ids))
        if appeared and self._on:
            self.appeared.emit(appeared)
