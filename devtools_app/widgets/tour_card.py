"""A card over the lower right corner of a page: one step of a tour, and its buttons."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.widgets.fields import PushButton
from devtools_app.widgets.text_label import text_label

_EDGE, _WIDTH, _LETTERS = 14, 360, 46


class TourCard(QFrame):
    """Shows a step until the next one; it covers a part of the page only.

    Signals:
        stepped(by): one step on (1) or back (-1)
        left(): the user ends the tour
    """

    stepped = Signal(int)
    left = Signal()

    def __init__(self, theme: Theme, page: QWidget) -> None:
        super().__init__(page)
        self._theme = theme
        self._page = page
        self.setObjectName("notice")
        self._title = text_label(theme, "", strong=True)
        self._place = QLabel()
        set_role(self._place, "role", "muted")
        self._text = text_label(theme, "")
        self._back, self.forward, self._leave = (
            self._button(text, name)
            for text, name in (
                ("Back", "Step before"),
                ("Next", "Next step"),
                ("Leave", "Leave the tour  (Esc)"),
            )
        )
        self._back.clicked.connect(lambda: self.stepped.emit(-1))
        self.forward.clicked.connect(lambda: self.stepped.emit(1))
        self._leave.clicked.connect(self.left)
        self._lay_out()
        page.installEventFilter(self)
        theme.follow(self._restyle)
        self.hide()

    @property
    def text(self) -> str:
        """Return the heading and the sentences shown."""
        return f"{self._title.text()}. {self._text.text()}"

    def show_step(self, title: str, text: str, number: int, total: int) -> None:
        """Show a step.

        Args:
            title: its heading
            text: its sentences
            number: of the step, from 1
            total: number of steps
        """
        self._title.setText(title)
        self._text.setText(text)
        self._place.setText(f"{number} of {total}")
        self._back.setEnabled(number > 1)
        self.forward.setText("Done" if number == total else "Next")
        self.setAccessibleName(f"Tour, {number} of {total}: {title}. {text}")
        self.show()
        self._put()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self._title, 1)
        head.addWidget(self._place, 0, Qt.AlignmentFlag.AlignTop)
        buttons = QHBoxLayout()
        buttons.addWidget(self._leave)
        buttons.addStretch(1)
        buttons.addWidget(self._back)
        buttons.addWidget(self.forward)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 10, 12, 10)
        layout.setSpacing(8)
        layout.addLayout(head)
        layout.addWidget(self._text)
        layout.addLayout(buttons)

    def _button(self, text: str, name: str) -> PushButton:
        button = PushButton(text)
        button.setAccessibleName(name)
        button.setToolTip(name)
        return button

    def _put(self) -> None:
        page = self._page.rect()
        letters = self._text.fontMetrics().averageCharWidth() * _LETTERS
        width = min(max(_WIDTH, letters), page.width() - 2 * _EDGE)
        layout = self.layout()
        height = layout.totalHeightForWidth(width) if layout is not None else 0
        height = min(height, page.height() - 2 * _EDGE)
        left, top = page.width() - width - _EDGE, page.height() - height - _EDGE
        self.setGeometry(left, top, width, height)
        self.raise_()

    def _restyle(self) -> None:
        self._title.setFont(self._theme.sans(strong=True))
        self._text.setFont(self._theme.sans())
        if not self.isHidden():
            self._put()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and not self.isHidden():
            self._put()
        return super().eventFilter(watched, event)
