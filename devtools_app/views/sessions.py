"""The open sessions: one is shown, any can be closed."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QVBoxLayout, QWidget

from devtools_app.state.requests import CloseSession, ShowSession
from devtools_app.state.state import State
from devtools_app.viewmodels.session_list import session_entries
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.dot_list import DotList


class SessionsView(QWidget):
    """A list; Return shows a session, Delete closes it."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._context = context
        self._list = DotList(context.theme, "Sessions")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._list)
        self._list.chosen.connect(self._show)
        close = QAction("Close session", self._list)
        close.setShortcut(QKeySequence(Qt.Key.Key_Delete))
        close.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        close.triggered.connect(self._close)
        self._list.addAction(close)
        self._list.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        context.theme.changed.connect(lambda: self.show_state(context.store.state))

    def show_state(self, state: State) -> None:
        """Show the sessions with the current one marked."""
        unseen = state.unseen - {*state.compared}
        entries = session_entries(state.sessions, self._context.theme.palette, unseen)
        ids = [one.id for one in state.sessions]
        current = ids.index(state.current) if state.current in ids else -1
        self._list.show_entries(entries, current)

    def _show(self, index: int) -> None:
        sessions = self._context.store.state.sessions
        if index < len(sessions):
            self._context.ask(ShowSession(sessions[index].id))

    def _close(self) -> None:
        sessions = self._context.store.state.sessions
        index = self._list.currentIndex().row()
        if 0 <= index < len(sessions):
            self._context.ask(CloseSession(sessions[index].id))


SPEC = ViewSpec(
    "sessions",
    "Sessions",
    Area.LEFT,
    SessionsView,
    "sessions",
    without_session=True,
    action="open",
)
