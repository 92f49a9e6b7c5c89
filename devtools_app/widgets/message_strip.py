"""A line over the views for errors, notices and questions; it moves nothing below it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QWidget,
)
from shiboken6 import isValid
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.widgets.accessible import announce
from devtools_app.widgets.fields import PushButton, ToolButton
from devtools_app.widgets.text_label import plain_label

Offer = tuple[str, Callable[[], object]]
LEGEND_LINE = "legendLine"  # name of the widgets that it leaves in sight
_EDGE = 10  # pixels around it
_MOVES = (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.Show, QEvent.Type.Hide)


class MessageStrip(QFrame):
    """Shows one message until it is dismissed; only a question takes the focus.

    Signals:
        dismissed(): the user closed it, or chose an offer
    """

    dismissed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._details = ""
        self._tone = ""
        self._before: QWidget | None = None  # that had the keyboard
        self.setObjectName("notice")
        self._icon = QLabel()
        self._text = plain_label()
        self._offers = QHBoxLayout()
        self._copy = PushButton("Copy")
        self._copy.setAccessibleName("Copy the message")
        self._copy.clicked.connect(self.copy)
        self._close = ToolButton()
        self._close.setAccessibleName("Dismiss the message")
        self._close.setToolTip("Dismiss the message")
        self._close.clicked.connect(self._dismiss)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 6, 8, 6)
        layout.addWidget(self._icon)
        layout.addWidget(self._text, 1)
        layout.addLayout(self._offers)
        layout.addWidget(self._copy)
        layout.addWidget(self._close)
        theme.follow(self._restyle)
        self._restyle()
        self.hide()

    def float_over(self, page: QWidget) -> None:
        """Lie over the lower end of a page from now on, above the line of its legends."""
        self.setParent(page)
        page.installEventFilter(self)
        self.hide()

    @property
    def text(self) -> str:
        """Return the message, or empty."""
        return self._text.text() if not self.isHidden() else ""

    def show_message(
        self,
        text: str,
        tone: str = "info",
        details: str = "",
        offers: Sequence[Offer] = (),
        decline: str = "",
    ) -> None:
        """Show a message, replacing the former one.

        Args:
            text: one or two sentences
            tone: info, warning or error
            details: further text to copy, such as a traceback
            offers: actions offered as buttons
            decline: of a question the label of the button that does nothing, which gets the focus
        """
        self._details, self._tone = details, tone
        self._text.setText(text)
        self.setAccessibleName(f"{tone}: {text}")
        self._copy.setVisible(tone != "info" and not decline)
        while (item := self._offers.takeAt(0)) is not None:
            found = item.widget()
            if found is not None:
                found.deleteLater()
        safe = [(decline, lambda: None)] if decline else []
        buttons = [self._button(label, pressed) for label, pressed in (*safe, *offers)]
        for button in buttons:
            self._offers.addWidget(button)
        for one, following in pairwise((self._copy, *buttons, self._close)):
            self.setTabOrder(one, following)
        self._restyle()
        focus = QApplication.focusWidget()
        if focus is not None and not self.isAncestorOf(focus):
            self._before = focus
        self.show()
        self.place()
        announce(self, self.accessibleName())
        if decline:
            buttons[0].setFocus(Qt.FocusReason.OtherFocusReason)

    def put_away(self) -> None:
        """Hide, and restore the focus that a button in the strip had taken."""
        focus, before = QApplication.focusWidget(), self._before
        inside = focus is not None and self.isAncestorOf(focus)
        self._before = None
        self.hide()
        if inside and before is not None and isValid(before) and before.isVisible():
            before.setFocus(Qt.FocusReason.OtherFocusReason)

    def copy(self) -> None:
        """Copy message and details."""
        parts = [self._text.text(), self._details]
        QGuiApplication.clipboard().setText("\n\n".join(part for part in parts if part))

    def _button(self, label: str, pressed: Callable[[], object]) -> QWidget:
        button = PushButton(label)
        button.setAccessibleName(label)
        button.clicked.connect(lambda: (self._dismiss(), pressed()))
        return button

    def _dismiss(self) -> None:
        self.put_away()
        self.dismissed.emit()

    def place(self) -> None:
        """Take its place again, after what it lies over has changed."""
        page = self.parentWidget()
        if page is None or self.isHidden():
            return
        layout = self.layout()
        assert layout is not None
        layout.activate()
        most = max(page.width() - 2 * _EDGE, self.minimumSizeHint().width())
        width = min(most, self._whole_width(layout))
        height = max(layout.heightForWidth(width), layout.sizeHint().height())
        self.raise_()
        # at the right: what a view explains in its last line begins at the left
        left = max(page.width() - _EDGE - width, _EDGE)
        self.setGeometry(left, self._lowest(page) - height - _EDGE, width, height)

    def _lowest(self, page: QWidget) -> int:
        """Return the height of a page without the legends at its lower end."""
        lines = page.findChildren(QWidget, LEGEND_LINE)
        for one in lines:
            one.installEventFilter(self)  # views show theirs once they have data
        tops = [one.mapTo(page, QPoint()).y() for one in lines if one.isVisible()]
        return min((top for top in tops if top > page.height() / 2), default=page.height())

    def _whole_width(self, layout: QLayout) -> int:
        """Return the width with the message in one line."""
        metrics = self._text.fontMetrics()
        words = max(map(metrics.horizontalAdvance, self._text.text().splitlines()), default=0)
        around = layout.sizeHint().width() - self._text.sizeHint().width()
        return around + words + metrics.averageCharWidth()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not self.isHidden() and event.type() in _MOVES:
            if watched is self.parentWidget():
                self.place()
            QTimer.singleShot(0, self, self.place)  # after layouts have placed the others
        return super().eventFilter(watched, event)

    def _restyle(self) -> None:
        tone = {"error": "bad", "warning": "warn"}.get(self._tone, "accent")
        names = {"error": "error", "warning": "warning"}
        icon = self._theme.icon(names.get(self._tone, "info"), tone)
        self._icon.setPixmap(icon.pixmap(16, 16))
        self._close.setIcon(self._theme.icon("close", "muted"))
        set_role(self, "tone", self._tone)
