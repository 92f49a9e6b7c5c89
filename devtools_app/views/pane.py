"""Base of the drawn views: tools, a canvas or an empty state, work in a thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QHBoxLayout,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid
from typing_extensions import override

from devtools_app.appearance.theme import set_role
from devtools_app.jobs.latest import Latest, Token
from devtools_app.state.requests import Select
from devtools_app.state.state import State
from devtools_app.views.spec import ViewContext
from devtools_app.widgets.accessible import spoken_name
from devtools_app.widgets.busy import Busy
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.empty_state import EmptyState, Need
from devtools_app.widgets.fields import ToolButton
from devtools_app.widgets.first_focus import first_focus
from inspector.files.session import Session
from inspector.tables.selection import Selection

Work = Callable[[], object]
_TOOL_SPACE = 6
_WORD_PAD = 8  # pixels by which a frame around words is wider than that of an icon
_NOTE_ROOM = 180  # for the facts of the view; buttons with icons give way to it
_STOPPED = Need("Stopped", "Cancelled before it was ready.")


class Pane(QWidget):
    """A view with tools above and, below, its content, an empty state, or an error.

    A subclass puts its widgets into ``content``. For each state of an open session it shows that in
    ``show_session``, which calls ``request`` for slow computations, and then its selection in
    ``show_selection`` unless a computation is pending; the newest one reports to ``show_result``.

    Attributes:
        HAS_TOOLS: whether there is a line of tools above the content
    """

    HAS_TOOLS = True

    def __init__(self, context: ViewContext, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.context = context
        self.store = context.store
        self.theme = context.theme
        self._ask = context.ask
        self.empty = EmptyState(context.theme)
        self.stack = QStackedWidget()
        self.busy = Busy()
        self.note = ElidedLabel()
        set_role(self.note, "role", "muted")
        self._what = f"Preparing the {name.lower()}"
        self._key: object = None
        self._focus_meanwhile: QWidget | None = None
        self._worded: list[QToolButton] = []
        self._icons: list[tuple[QToolButton, str]] = []
        self.theme.changed.connect(self._set_icons)  # ends with the view, as a function would not
        self._words = True  # such buttons show their words
        self._latest = Latest(f"view {name}", self)
        self._latest.ready.connect(self._ready)
        self._latest.failed.connect(self._failed)
        self._latest.ended.connect(self.busy.stop)
        self._latest.ended.connect(self.fit_tools)  # without the progress there is more room
        self.busy.cancelled.connect(self._stop)
        self.busy.appeared.connect(self.show_busy)
        self._again = self.empty.add_button("Try again", self._retry)
        self._again.hide()
        self._lay_out()

    def _lay_out(self) -> None:
        self._bar = QWidget()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._bar)
        layout.addWidget(self.stack, 1)
        self._bar_parts = QHBoxLayout(self._bar)
        self._bar_parts.setContentsMargins(12, 6, 12, 6)
        self.tools, self._right_tools = QHBoxLayout(), QHBoxLayout()
        self._bar_parts.addLayout(self.tools, 1)
        self._bar_parts.addLayout(self._right_tools)
        end = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        self._bar_parts.setAlignment(self._right_tools, end)  # else they fill a row of their own
        for part in (self._bar_parts, self.tools, self._right_tools):
            part.setSpacing(_TOOL_SPACE)
        self.tools.addWidget(self.note, 1)
        self.tools.addWidget(self.busy)
        self.stack.addWidget(self.empty)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        """Move the tools of the right end to a second row if one row is too short.

        Buttons that have icons lose their words before that.
        """
        super().resizeEvent(event)
        self.fit_tools()

    def fit_tools(self) -> None:
        """Arrange the tools for the width; called after one of them was shown or hidden."""
        margins = self._bar_parts.contentsMargins()
        room = self.width() - margins.left() - margins.right()
        left, right = (row.minimumSize().width() for row in (self.tools, self._right_tools))
        more = self._width_of_words()
        left += 0 if self._words else more  # with words
        words = not self._worded or self._whole_width() + (0 if self._words else more) <= room
        if words != self._words:
            self._use_words(words=words)
        left -= 0 if words else more
        narrow = self._right_tools.count() > 0 and left + right + _TOOL_SPACE > room
        kinds = QBoxLayout.Direction
        self._bar_parts.setDirection(kinds.TopToBottom if narrow else kinds.LeftToRight)

    def _whole_width(self) -> int:
        """Return the width with choices, search and facts as wide as they like to be."""
        hints = self.tools.sizeHint().width() + self._right_tools.sizeHint().width()
        return hints - self.note.sizeHint().width() + _NOTE_ROOM

    def _width_of_words(self) -> int:
        """Return the additional width of button labels over icons only."""
        shown = (button for button in self._worded if not button.isHidden())
        less = self.theme.icon_side - round(_WORD_PAD * self.theme.scale)
        widths = (one.fontMetrics().horizontalAdvance(one.text()) for one in shown)
        return sum(max(width - less, 0) for width in widths)

    def _use_words(self, *, words: bool) -> None:
        self._words = words
        styles = Qt.ToolButtonStyle
        for button in self._worded:
            button.setToolButtonStyle(
                styles.ToolButtonTextOnly if words else styles.ToolButtonIconOnly
            )
        self._set_icons()

    # -- tools -----------------------------------------------------------------------------

    def add_tool(self, widget: QWidget, *, right: bool = False) -> None:
        """Add a control before the note, or at the right end."""
        if right:
            self._right_tools.addWidget(widget)
        else:
            self.tools.insertWidget(self.tools.indexOf(self.note), widget)

    def add_button(
        self,
        text: str,
        tip: str,
        pressed: Callable[[], object],
        *,
        keys: str = "",
        icon: str = "",
        right: bool = False,
    ) -> QToolButton:
        """Add a button; its keys work while the view has the focus.

        One with words and an icon shows the icon where there is no room for the words.
        """
        button = ToolButton()
        button.setText(text)
        button.setAccessibleName(spoken_name(text, tip))
        button.setToolTip(f"{tip}  ({keys})" if keys else tip)
        button.clicked.connect(lambda: pressed())
        if icon and text:
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
            self._worded.append(button)
        if icon:
            self._keep_icon(button, icon)
        if keys:
            self.add_keys(keys, pressed)
        self.add_tool(button, right=right)
        return button

    def add_keys(self, keys: str, pressed: Callable[[], object]) -> None:
        """Add shortcuts that work while the view has the focus."""
        shortcut = QShortcut(QKeySequence(keys), self)
        shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(lambda: pressed())

    def _keep_icon(self, button: QToolButton, icon: str) -> None:
        self._icons.append((button, icon))
        self._set_icon(button, icon)

    def _set_icons(self) -> None:
        self._icons = [one for one in self._icons if isValid(one[0])]
        for one in self._icons:
            self._set_icon(*one)

    def _set_icon(self, button: QToolButton, icon: str) -> None:
        if not self._words or button not in self._worded:  # 1 ms to draw one that is not seen
            button.setIcon(self.theme.icon(icon))

    # -- content ---------------------------------------------------------------------------

    def set_content(self, widget: QWidget) -> None:
        """Use this widget below the tools."""
        self.stack.addWidget(widget)

    def show_content(self) -> None:
        """Show the content."""
        self._bar.setVisible(self.HAS_TOOLS)
        self.fit_tools()  # what its choices offer has changed
        self.stack.setCurrentIndex(1)

    def show_need(self, need: Need, *, tools: bool = False) -> None:
        """Show an empty state instead, without the tools."""
        self._key = None
        self._latest.cancel()
        self._bar.setVisible(tools)
        self._show_text(need)

    def _show_text(self, need: Need, *, again: bool = False) -> None:
        self.empty.show_need(need)
        self._again.setVisible(again)
        self.stack.setCurrentIndex(0)

    # -- work ------------------------------------------------------------------------------

    def request(self, key: object, work: Work) -> bool:
        """Do work in a thread unless done already for that key; return whether it started."""
        if key == self._key:
            return False
        self._key = key

        def run(token: Token) -> object:
            token.check()
            return work()

        self.busy.start(self._what)
        self._latest.submit(run)
        return True

    def show_busy(self) -> None:
        """Show the progress of a long job."""
        self._bar.setVisible(True)

    def _stop(self) -> None:
        """Cancel the work; it is only restarted by the user."""
        self._latest.cancel()
        self._show_text(_STOPPED, again=True)

    def _retry(self) -> None:
        self._key = None
        self.show_state(self.state)

    def forget(self) -> None:
        """Do the next request even for the same key."""
        self._key = None

    @property
    def working(self) -> bool:
        """Return whether a result is pending."""
        return self._latest.busy

    def show_state(self, state: State) -> None:
        """Show a state: its session and selection, or that nothing is open."""
        if state.session is None:
            self.show_need(NO_SESSION)
            return
        self.show_session(state.session, state)
        if not self.working:
            self.show_selection(state)

    def show_session(self, session: Session, state: State) -> None:
        """Show the session of a state."""
        raise NotImplementedError

    def show_selection(self, state: State) -> None:
        """Show the selection of a state in the content; nothing where a view has none."""

    def show_result(self, result: object) -> None:
        """Show the result of the newest request."""
        raise NotImplementedError

    def _ready(self, result: object) -> None:
        waiting = self.waits()
        self.show_result(result)
        if waiting:
            self.take_focus()

    def waits(self) -> bool:
        """Return whether the keyboard is here because there was nothing to use yet."""
        focus = QApplication.focusWidget()
        if focus is None:
            return False
        if focus is self._focus_meanwhile or self.empty.isAncestorOf(focus):
            return True
        return not focus.isWindow() and focus.isAncestorOf(self)

    # -- keyboard --------------------------------------------------------------------------

    def take_focus(self) -> None:
        """Focus what the keys of the view act on: the drawing or table, not a tool above it."""
        page = self.stack.currentWidget() or self
        # while something is computed not a tool either: keys pressed meanwhile would use it
        waits = page is self.empty and self.working
        found = first_focus(page) or (self if waits else first_focus(self))
        if found is not None:
            found.setFocus(Qt.FocusReason.OtherFocusReason)
        self._focus_meanwhile = QApplication.focusWidget() if page is self.empty else None

    @override
    def focusNextPrevChild(self, next: bool) -> bool:
        """Keep the keyboard in the view when the control that had it is hidden.

        Qt would go on to the next control of the window: the session to show, for the last one.
        """
        focus = QApplication.focusWidget()
        if focus is not None and not focus.isVisible() and self.isAncestorOf(focus):
            self.take_focus()
            if QApplication.focusWidget() is not focus:
                return True
        return super().focusNextPrevChild(next)

    def _failed(self, error: BaseException) -> None:
        self._key = None
        self._show_text(Need("This could not be shown", str(error) or type(error).__name__))

    # -- selection -------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """Return the state of the window."""
        return self.store.state

    def select(self, selection: Selection) -> None:
        """Request a selection in all views."""
        self._ask(Select(selection))

    def select_key(self, key: object) -> bool:
        """Request the selection that the key of a row is; return whether it is one."""
        if isinstance(key, Selection):
            self.select(key)
            return True
        return False

    def shut_down(self) -> None:
        """Stop running threads; called once before the window closes."""
        self._latest.close()


NO_SESSION = Need(
    "Nothing is open",
    "Open a program, an ETRecord, an ETDump or any other ExecuTorch file: drop it on the window"
    " or press Ctrl+O.",
)
