"""A window's worth of surroundings for one view: store, theme, and a list of what it asked."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from devtools_app.appearance.look import ThemeMode
from devtools_app.appearance.slices import Slices
from devtools_app.appearance.theme import Theme
from devtools_app.state.requests import Request, Select
from devtools_app.state.store import Store
from devtools_app.state.transitions import add_session, select
from devtools_app.views.pane import Pane
from devtools_app.views.spec import ViewContext
from devtools_app.widgets.log_panel import LogStore
from inspector.files.session import Session
from inspector.tables.selection import Selection


class Bench:
    """Shows one view and does what the window would: selects, and shows every new state."""

    def __init__(self, qtbot: QtBot, make: Callable[[ViewContext], QWidget]) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        self.qtbot = qtbot
        self.asked: list[Request] = []
        self.store = Store()
        self.theme = Theme(app, ThemeMode.LIGHT)
        self.context = ViewContext(self.store, self.theme, self._take, LogStore())
        made = make(self.context)
        assert isinstance(made, Pane)
        self.pane = made
        self.pane.resize(900, 600)
        qtbot.addWidget(self.pane, before_close_func=lambda _widget: self.pane.shut_down())
        self.store.changed.connect(lambda _old, new: self.pane.show_state(new))
        self.pane.show()
        self.pane.show_state(self.store.state)

    def _take(self, request: Request) -> None:
        self.asked.append(request)
        if isinstance(request, Select):
            self.store.put(select(self.store.state, request.selection))

    def open(self, session: Session) -> None:
        """Show a session and wait for it."""
        self.store.put(add_session(self.store.state, session, ()))
        self.settle()

    def select(self, selection: Selection) -> None:
        """Select as another view would."""
        self.store.put(select(self.store.state, selection))
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is being computed and what was made has found its size."""
        self.qtbot.waitUntil(lambda: not self.pane.working, timeout=20_000)
        slices = self.pane.findChildren(Slices)
        self.qtbot.waitUntil(lambda: not any(one.busy for one in slices))
        self.qtbot.wait(0)  # layouts and resizes that the result has posted, and what these post

    @property
    def empty(self) -> bool:
        """Return whether the view says what is missing."""
        return self.pane.stack.currentWidget() is self.pane.empty
