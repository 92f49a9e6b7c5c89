"""The toolbar: session, method, group of tabs and overlay, and the search field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolBar, QWidget, QWidgetAction
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.shell.edit_chip import EditChip
from devtools_app.shell.group_switch import GroupSwitch
from devtools_app.state.state import OVERLAYS, State
from devtools_app.state.tab_groups import TabGroup
from devtools_app.widgets.badge import key_width, paint_key
from devtools_app.widgets.fields import PushButton
from devtools_app.widgets.push_button import FittingButton
from devtools_app.widgets.toolbar_combo import ToolbarCombo

if TYPE_CHECKING:
    from inspector.files.session import Session

_FIND, _KEY = "Find node, operator, module …", "Ctrl P"
_ROOM = 28  # around the words
_RECOMPILE = ("Recompile and run   Ctrl R", "Recompile and run", "Recompile")


def _data_overlays(session: Session | None) -> tuple[tuple[str, str], ...]:
    if session is None:
        return ()
    from devtools_app.viewmodels.data_colours import data_overlays  # not before: it imports readers

    return data_overlays(session)


def _shown_overlay(state: State) -> str:
    if state.session is None:
        return state.overlay
    from devtools_app.viewmodels.data_colours import shown_overlay

    return shown_overlay(state)


class GotoButton(PushButton):
    """Looks like a field; opens the Go to palette."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(_FIND)
        self._theme = theme
        self._wanted = 0
        self.setObjectName("goto")
        self.setAccessibleName("Find node, operator, module")
        theme.follow(self._fit)
        self._fit()

    def _fit(self) -> None:
        self.setFont(self._theme.sans())
        metrics, key = QFontMetrics(self._theme.sans()), key_width(_KEY, self._theme)
        self._wanted = max(270, metrics.horizontalAdvance(_FIND) + key + _ROOM)
        self.setMinimumWidth(metrics.horizontalAdvance(_FIND[:4]) + key + _ROOM)
        self._elide()
        self.updateGeometry()

    def _elide(self) -> None:
        room = self.width() - key_width(_KEY, self._theme) - _ROOM
        metrics = QFontMetrics(self._theme.sans())
        self.setText(metrics.elidedText(_FIND, Qt.TextElideMode.ElideRight, max(0, room)))

    @override
    def sizeHint(self) -> QSize:
        return QSize(self._wanted, super().sizeHint().height())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        with QPainter(self) as painter:
            paint_key(painter, self.rect().toRectF(), _KEY, self._theme)


class RecompileButton(FittingButton):
    """The most important button of the window."""

    def __init__(self) -> None:
        tip = "Recompile by the recipe, run and compare  (Ctrl+R)"
        super().__init__(_RECOMPILE, "Recompile and run, then compare", tip)
        set_role(self, "primary", "true")


class TopBar(QToolBar):
    """Shows the state and emits the user's choices.

    Signals:
        session_chosen(id), method_chosen(name), overlay_chosen(name): from the three lists
        group_chosen(group): the user chose a group of tabs
        find_pressed(): the user opens the palette
        recompile_pressed(): the user recompiles
        edits_pressed(): the user looks at the edits of the recipe
    """

    session_chosen = Signal(str)
    method_chosen = Signal(str)
    overlay_chosen = Signal(str)
    group_chosen = Signal(object)
    find_pressed = Signal()
    recompile_pressed = Signal()
    edits_pressed = Signal()

    def __init__(self, theme: Theme, groups: Iterable[TabGroup] = TabGroup) -> None:
        super().__init__("Session and method")
        self.setObjectName("top_bar")
        self.setMovable(False)
        self.setFloatable(False)
        self.toggleViewAction().setVisible(False)
        self._session = ToolbarCombo(theme, "session", "Session")
        self._method = ToolbarCombo(theme, "method", "Method")
        self._overlay = ToolbarCombo(theme, "colour by", "Colour nodes by")
        self.groups = GroupSwitch(theme, groups)
        self._find = GotoButton(theme)
        self._recompile = RecompileButton()
        space = QWidget()
        space.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        for part in (self._session, self._method, self.groups, self._overlay, space, self._find):
            self.addWidget(part)
        self.edits = EditChip(theme)
        for part in (self.edits, self._recompile):
            self.addWidget(part)
        self._session.activated.connect(
            lambda: self.session_chosen.emit(str(self._session.currentData()))
        )
        self._method.activated.connect(
            lambda: self.method_chosen.emit(str(self._method.currentData()))
        )
        self._overlay.activated.connect(
            lambda: self.overlay_chosen.emit(str(self._overlay.currentData()))
        )
        self.groups.chosen.connect(self.group_chosen)
        self._find.clicked.connect(self.find_pressed)
        self._recompile.clicked.connect(self.recompile_pressed)
        self.edits.clicked.connect(self.edits_pressed)

    @property
    def overlay_choice(self) -> ToolbarCombo:
        """Return the list of meanings of colour."""
        return self._overlay

    def show_state(self, state: State) -> None:
        """Show open sessions and the selection."""
        sessions = [(f"{one.id}  {one.session.name}", one.id) for one in state.sessions]
        self._session.show_choices(sessions, state.current)
        session = state.session
        methods = session.methods if session is not None else ()
        self._method.show_choices([(name, name) for name in methods], state.method)
        choices = [(text, name) for name, text in (*OVERLAYS, *_data_overlays(session))]
        self._overlay.show_choices(choices, _shown_overlay(state))
        self._overlay.setEnabled(session is not None)
        self.groups.show_group(state.group)
        self._find.setEnabled(session is not None)
        self._set_visible(self.edits, on=self.edits.show_state(state) > 0)
        known = state.history.of_session(state.current) is not None
        self._set_visible(self._recompile, on=known)

    def _set_visible(self, part: QWidget, *, on: bool) -> None:
        """Show or hide a part; a tool bar does that by the action of the widget.

        The action is looked up each time: one that was kept was called deleted once (the binding's
        own object for it, while action and widget were there).
        """
        for action in self.actions():
            if isinstance(action, QWidgetAction) and action.defaultWidget() is part:
                action.setVisible(on)
