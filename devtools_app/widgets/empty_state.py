"""The empty state of a view: the reason, and how to fill it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme, set_role
from devtools_app.widgets.command_text import CommandText
from devtools_app.widgets.fields import PushButton
from devtools_app.widgets.text_label import plain_label

_WIDTH = 520


@dataclass(frozen=True, slots=True)
class Need:
    """An empty state and its remedy.

    Attributes:
        title: what is missing
        text: the file that would fill it, in one or two sentences
        command: code that creates that file, may be empty
    """

    title: str
    text: str = ""
    command: str = ""


class EmptyState(QWidget):
    """A centred message; text can be selected, a command can be copied."""

    def __init__(self, theme: Theme, need: Need | None = None) -> None:
        super().__init__()
        self._theme = theme
        self._need = Need("")
        self._title = _label()
        self._text = _label()
        self._title.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        set_role(self._text, "role", "muted")
        self._command: CommandText | None = None  # most never have one, and it is slow to make
        self._copy = PushButton("Copy")
        self._copy.setAccessibleName("Copy the command")
        self._copy.clicked.connect(self._copy_command)
        self._buttons = QHBoxLayout()
        self._buttons.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._buttons.addWidget(self._copy)  # last: what is done here comes before the code
        self._lay_out()
        theme.follow(self._restyle)
        self._restyle()
        self.show_need(need or Need(""))

    def show_need(self, need: Need) -> None:
        """Replace the message."""
        self._title.setText(need.title)
        self._title.setToolTip(need.title)  # a panel may be too low for all of it
        self._text.setText(need.text)
        self._text.setVisible(bool(need.text))
        self._show_command(need.command)
        self._copy.setVisible(bool(need.command))
        self._need = need
        if self.isVisible():  # most never are: it takes several layouts
            self._fit()
        self.setAccessibleName(f"{need.title}. {need.text}".strip())

    def _show_command(self, code: str) -> None:
        if self._command is None:
            if not code:
                return
            self._command = CommandText()
            self._command.setFont(self._theme.mono(FontSize.SMALL))
            self._command_line.insertWidget(1, self._command, 1000)
        self._command.show_text(code)
        self._command.setMaximumWidth(self._command.sizeHint().width())
        self._command.setVisible(bool(code))

    def add_button(self, text: str, pressed: Callable[[], object]) -> QPushButton:
        """Add an action of the user."""
        button = PushButton(text)
        button.setAccessibleName(text)
        button.clicked.connect(lambda: pressed())
        self._buttons.insertWidget(self._buttons.indexOf(self._copy), button)
        self.setTabOrder(button, self._copy)
        return button

    def _mark_action(self) -> None:
        """Make the first button the most prominent one: which are offered may change."""
        action = self.action
        for button in self.findChildren(QPushButton):
            wanted = "true" if button is action else ""
            if (button.property("primary") or "") != wanted:
                set_role(button, "primary", wanted)

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Show):
            self._mark_action()
        if event.type() == QEvent.Type.Show:
            self._fit()
        return super().event(event)

    @property
    def action(self) -> QPushButton | None:
        """Return the first button that does something here, None without one."""
        others = (one for one in self.findChildren(QPushButton) if one is not self._copy)
        return next((one for one in others if one.isVisible()), None)

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.setAlignment(Qt.AlignmentFlag.AlignCenter)
        layout.setSpacing(8)
        layout.addStretch(2)
        for part in (self._title, self._text):
            layout.addLayout(_centred(part))
        self._command_line = QHBoxLayout()
        self._command_line.addStretch(1)
        self._command_line.addStretch(1)
        layout.addLayout(self._command_line)
        layout.addLayout(self._buttons)
        layout.addStretch(3)

    def _fit(self) -> None:
        """Show as much as fits the height: title and remedies take precedence."""
        layout, need = self.layout(), self._need
        assert layout is not None
        for text, command in ((True, True), (True, False), (False, False)):
            self._text.setVisible(text and bool(need.text))
            self._copy.setVisible(command and bool(need.command))
            if self._command is not None:
                self._command.setVisible(command and bool(need.command))
            if layout.totalHeightForWidth(self.width()) <= self.height():
                break
        self.setToolTip("" if text else need.text)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _restyle(self) -> None:
        self._title.setFont(self._theme.sans(FontSize.LARGE, strong=True))
        self._text.setFont(self._theme.sans())
        for label in (self._title, self._text):
            label.setMaximumWidth(round(_WIDTH * self._theme.scale))
        if self._command is not None:
            self._command.setFont(self._theme.mono(FontSize.SMALL))
            self._command.setMaximumWidth(self._command.sizeHint().width())

    def _copy_command(self) -> None:
        if self._command is not None:
            QGuiApplication.clipboard().setText(self._command.toPlainText())


def _centred(label: QLabel) -> QHBoxLayout:
    """Return a row in which a wrapping label is wide, but not wider than is readable."""
    line = QHBoxLayout()
    line.addStretch(1)
    line.addWidget(label, 1000)
    line.addStretch(1)
    return line


def _label() -> QLabel:
    label = plain_label()
    label.setAlignment(Qt.AlignmentFlag.AlignCenter)
    return label
