"""Files may be dropped anywhere on the window, on its text fields too."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QDragMoveEvent, QDropEvent, QWindow
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.jobs.latest import Latest
from devtools_app.sessions.open_kind import FileContent, content_of
from devtools_app.shell.drop_words import DropWords, drop_words, opening_words
from devtools_app.state.store import Store
from devtools_app.widgets.drop_cover import DropCover


class Dropping(QObject):
    """Handles dragged data before the widget below the pointer, and shows what a drop would do.

    A text field would insert the address of a file: as a filter that matches nothing, or in the
    middle of the notes. Dropped text is left to the field, and refused in words elsewhere.

    Args:
        window: with the same lifetime
        theme: look of the cover
        store: of the state, which decides what dropped files become
        take: called with the dropped paths

    Attributes:
        cover: shown while something is dragged over the window
    """

    def __init__(
        self,
        window: QWidget,
        theme: Theme,
        store: Store,
        take: Callable[[tuple[str, ...]], object],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._store = store
        self._take = take
        self._watched: QWindow | None = None
        self._words: DropWords | None = None  # of what is dragged over the window now
        self._reading = Latest("reading dragged files", self)
        self._reading.ready.connect(self._read)
        self.cover = DropCover(theme, window)

    def shut_down(self) -> None:
        """Stop reading dragged files."""
        self._reading.close()

    def watch(self, window: QWindow | None) -> None:
        """Filter drag and drop events of a window before its widgets."""
        if window is not None and window is not self._watched:
            self._watched = window
            window.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.DragLeave:
            self._end()
            return False
        if not isinstance(event, QDropEvent):  # entering and moving are kinds of dropping in Qt
            return False
        if event.source() is not None:  # something of the window itself
            return False
        words = self._words
        if kind == QEvent.Type.DragEnter or words is None:
            words = self._begin(drop_words(event.mimeData(), self._store.state))
        if kind == QEvent.Type.Drop:
            self._end()
        if words.paths:
            event.acceptProposedAction()
            if kind == QEvent.Type.Drop:
                self._take(words.paths)
            else:
                self._show(words)
            return True
        if event.mimeData().hasText() and not event.mimeData().hasUrls() and self._is_field(event):
            self.cover.hide()
            return False
        if isinstance(event, QDragMoveEvent):
            self._show(words)
        event.ignore()
        return kind != QEvent.Type.DragEnter  # a field needs it to know of the drag

    def _is_field(self, event: QDropEvent) -> bool:
        """Return whether the widget below the pointer takes what is dropped."""
        below = self._window.childAt(event.position().toPoint())
        return below is not None and below.acceptDrops()

    def _begin(self, words: DropWords) -> DropWords:
        self._words = words
        if words.unread:
            self._reading.submit(lambda token: content_of(words.paths, token.check))
        return words

    def _read(self, content: FileContent) -> None:
        """Announce what a drop does, now that the dragged files were read."""
        if self._words is None:
            return
        self._words = opening_words(self._words.paths, self._store.state, content)
        if not self.cover.isHidden():
            self.cover.hide()
            self._show(self._words)

    def _show(self, words: DropWords) -> None:
        if self.cover.isHidden():
            self.cover.show_words(words.title, words.text, taken=bool(words.paths))

    def _end(self) -> None:
        self._reading.cancel()
        self._words = None
        self.cover.hide()
