"""The middle of the window: the start page, or the views."""

from __future__ import annotations

from PySide6.QtWidgets import QStackedLayout, QWidget

from devtools_app.state.state import State


class MiddlePages(QWidget):
    """Shows the start page while nothing is open, or on request.

    No QStackedWidget: a screen reader finds only the pages of one, and not what lies over them.

    Attributes:
        start_page: for files and the sample
        views: the views in the middle
    """

    def __init__(self, start_page: QWidget, views: QWidget) -> None:
        super().__init__()
        self.start_page = start_page
        self.views = views
        self._start_requested = False
        self._without_session = False
        self._stack = QStackedLayout(self)
        self._stack.addWidget(start_page)
        self._stack.addWidget(views)

    @property
    def at_start(self) -> bool:
        """Return whether the start page is shown."""
        return self._stack.currentWidget() is self.start_page

    def ask_for_start(self) -> None:
        """Show the start page until a view is chosen or something is opened."""
        self._start_requested, self._without_session = True, False

    def ask_for_views(self, *, without_session: bool | None = None) -> None:
        """Show the views where something is open.

        Args:
            without_session: whether the chosen view needs no session; None for no change
        """
        self._start_requested = False
        if without_session is not None:
            self._without_session = without_session

    def show_state(self, state: State, *, has_views: bool) -> None:
        """Show the page of a state."""
        filled = bool(state.sessions or state.sweep or self._without_session) and has_views
        at_start = self._start_requested or not filled
        self._stack.setCurrentWidget(self.start_page if at_start else self.views)
