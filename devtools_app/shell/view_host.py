"""Holds one view: created when first shown, refreshed only while visible."""

from __future__ import annotations

import logging
import time
import traceback
from functools import cached_property

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QGuiApplication, QShowEvent
from PySide6.QtWidgets import QApplication, QStackedWidget, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.jobs.gui_thread import gui_thread
from devtools_app.state.requests import ChooseFiles
from devtools_app.state.state import OpenSession, State
from devtools_app.views.spec import CanBegin, CanClose, CanTakeFocus, View, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import EmptyState, Need
from devtools_app.widgets.first_focus import first_focus

_LOG = logging.getLogger(__name__)
FRAME_SECONDS = 0.016  # one frame at 60 Hz; slower views are logged
_SMALLEST = (120, 60)
_IMPORTING = Need("Preparing the view", "Its parts are being loaded.")
_NO_SESSION = Need("Nothing is open", "Open a program, a record or a trace to fill this.")


class ViewHost(QWidget):
    """A place for a view, with its empty state and, if it fails, its error.

    Attributes:
        spec: which view it is
    """

    def __init__(self, spec: ViewSpec, context: ViewContext) -> None:
        super().__init__()
        self.spec = spec
        self._context = context
        self._view: QWidget | None = None
        self._hint: QSize | None = None
        self._postponed = False
        self._shown: State | None = None
        self._failed_for: State | None = None
        self._details = ""
        self._begins: OpenSession | None = None  # session whose job starts in the view
        self._focus_meanwhile: QWidget | None = None  # has the keyboard until there is a view
        context.imports.arrived.connect(self._arrived)
        self._stack = QStackedWidget()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._stack)
        self._stack.addWidget(QWidget())  # is in front while a view is made
        self.setObjectName("panel")
        # a view with many tools is cut off in a narrow window rather than making it wide
        self.setMinimumSize(*_SMALLEST)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(*_SMALLEST)

    @override
    def sizeHint(self) -> QSize:
        """Return the size of the view, computed once: Qt asks all tabs when a part appears in one.

        With all views made, and their heights for a width, a message took 61 ms instead of 8.
        """
        if self._hint is None:
            self._hint = super().sizeHint()
        return self._hint

    @override
    def hasHeightForWidth(self) -> bool:
        return False  # a view fills what there is

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._hint = None
        return super().event(event)

    @property
    def view(self) -> QWidget | None:
        """Return the view, None before it is first shown."""
        return self._view

    # Both pages are made when first shown: most views never need them, and those of 34 views took
    # two thirds of the time to make a window (0.50 s of CPU with them, 0.18 without).
    @cached_property
    def _empty(self) -> EmptyState:
        empty = EmptyState(self._context.theme)
        self._stack.addWidget(empty)
        return empty

    @cached_property
    def _opener(self) -> QWidget:
        return self._empty.add_button(
            "Open files…", lambda: self._context.ask(ChooseFiles(beside=True))
        )

    @cached_property
    def _error(self) -> EmptyState:
        error = EmptyState(self._context.theme)
        error.add_button("Copy details", self._copy_details)
        error.add_button("Try again", self.retry)
        self._stack.addWidget(error)
        return error

    def refresh(self) -> None:
        """Show the current state if visible and changed."""
        state = self._context.store.state
        if not self.isVisible() or self._postponed:
            return
        if state is self._shown or state is self._failed_for:
            return
        need = self._need(state)
        if need is not None:
            is_final = need is not _IMPORTING
            self._shown = state if is_final else None
            self._show_need(need, opens=is_final and state.session is not None)
            self._stack.setCurrentWidget(self._empty)
            return
        try:
            self._show(state)
        except Exception as error:  # noqa: BLE001 - one view's bug must not take the window along
            self._fail(state, error)
        self._start_job()

    def postpone(self) -> None:
        """Show the state after the events there are: views that appear together take turns."""
        if not self._postponed:
            self._postponed = True
            gui_thread().post(self, self._make)

    def postpone_first(self) -> None:
        """Postpone a view that the user chose, if it has not been made yet."""
        if self._view is None:
            self.postpone()

    def _make(self) -> None:
        """Make the view; it takes its place, and is filled, after the events that come of that."""
        is_wanted = self._postponed and self._view is None and self.isVisible()
        if is_wanted and self._need(self._context.store.state) is None:
            try:
                self._create_view()
            except Exception as error:  # noqa: BLE001 - as in `refresh`
                self._postponed = False
                self._fail(self._context.store.state, error)
                return
            gui_thread().post(self, self._place)
            return
        self.resume()

    def _place(self) -> None:
        self._placed_view()
        gui_thread().post(self, self.resume)

    def resume(self) -> None:
        """Show the state now, if that was postponed."""
        if self._postponed:
            self._postponed = False
            self._refresh_with_focus()

    def _show_need(self, need: Need, *, opens: bool) -> None:
        """Show what is missing; with a session open its file can be opened beside the others."""
        self._opener.setVisible(opens)
        self._empty.show_need(need)

    def _arrived(self, module: str) -> None:
        if module == self.spec.module:
            self.postpone_first()

    def _refresh_with_focus(self) -> None:
        """Show the state; the view has the keyboard if it waited for the view."""
        focus = QApplication.focusWidget()
        here = focus is not None and self.isAncestorOf(focus)
        waiting = here or (focus is not None and focus is self._focus_meanwhile)
        self.refresh()
        if waiting:
            self.give_focus()

    def retry(self) -> None:
        """Show the state again after a failure."""
        self._failed_for = self._shown = None
        self.refresh()

    def set_in_front(self, on: bool) -> None:
        """Set whether the place is visible; behind another tab it is not in the tab order."""
        self._stack.setVisible(on)

    def give_focus(self) -> None:
        """Focus the view, or its placeholder; once it is there if it is postponed."""
        if self._postponed:
            self._focus_meanwhile = QApplication.focusWidget()
            return
        target = self._stack.currentWidget() or self
        if isinstance(target, CanTakeFocus):
            target.take_focus()
            return
        found = first_focus(target)
        if found is not None:
            found.setFocus(Qt.FocusReason.OtherFocusReason)
        self._focus_meanwhile = QApplication.focusWidget() if found is None else None

    def begin(self) -> None:
        """Start the job of the view for the current session, once the view is there."""
        self._begins = self._context.store.state.open_session
        self._start_job()

    def _start_job(self) -> None:
        view, wanted = self._view, self._begins
        if wanted is None or self._stack.currentWidget() is not view:
            return
        self._begins = None
        if wanted is self._context.store.state.open_session and isinstance(view, CanBegin):
            view.begin()

    def shut_down(self) -> None:
        """Stop the threads of the view."""
        if isinstance(self._view, CanClose):
            self._view.shut_down()

    def _need(self, state: State) -> Need | None:
        """Return what is shown instead of the view, None if the view can be shown."""
        if self.spec.module and not self._context.imports.ready(self.spec.module):
            return _IMPORTING
        session = state.session
        if session is None:
            return None if self.spec.without_session else _NO_SESSION
        return self.spec.needs(session)

    def _show(self, state: State) -> None:
        started = time.perf_counter()
        result = self._view is None
        view = self._placed_view()
        # Filled before it is seen: each part that is shown in a visible view lays out all of it up
        # to the window, 3 ms each.
        if isinstance(view, View):
            view.show_state(state)
        self._stack.setCurrentWidget(view)
        self._shown = state
        taken = time.perf_counter() - started
        if taken > FRAME_SECONDS and not result:
            _LOG.debug("%s took %.0f ms to show a state", self.spec.title, taken * 1e3)

    def _create_view(self) -> QWidget:
        if self._view is None:
            self._view = self.spec.make(self._context)
        return self._view

    def _placed_view(self) -> QWidget:
        """Return the view in its place, where its widgets take their style."""
        view = self._create_view()
        if self._stack.indexOf(view) < 0:
            self._stack.addWidget(view)
        return view

    def _fail(self, state: State, error: Exception) -> None:
        _LOG.error("%s cannot show this", self.spec.title, exc_info=error)
        self._failed_for = state
        self._details = "".join(traceback.format_exception(error))
        text = f"{type(error).__name__}: {error}. This is a bug in ETScope, not in your files."
        self._error.show_need(Need(f"{self.spec.title} cannot be shown", text))
        self._stack.setCurrentWidget(self._error)

    def _copy_details(self) -> None:
        QGuiApplication.clipboard().setText(self._details)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()
