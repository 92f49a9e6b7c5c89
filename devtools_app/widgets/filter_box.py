"""A field that filters the rows below it: words, /expression/ or name>number."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QLineEdit, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import set_role
from devtools_app.widgets.accessible import add_clear_button

_LETTERS = 11  # that a narrow panel shows
_INSET = 14  # room for the frame and the clear button
_WAIT_MS = 120  # between two keys of somebody who knows what to type
HELP = (
    "Words must all occur in a row.\n"
    "/conv|gelu/ is a regular expression; ^ and $ are the ends of a cell.\n"
    "mean>0.1 compares a number column, in its unit or in one you type: bytes>=4KiB."
)


class FilterBox(QLineEdit):
    """Emits the filter after a pause in typing.

    Signals:
        filter_changed(text): the filter; not emitted for strings set by ``show_text``
        left(): Escape in an empty field, or Down: move to the rows
    """

    filter_changed = Signal(str)
    left = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._reported = ""
        self._own_hint = False
        self._example = ""
        self.set_example("")
        self.setAccessibleName(name)
        self.setToolTip(HELP)
        add_clear_button(self)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_WAIT_MS)
        self._timer.timeout.connect(self._report)
        self.textEdited.connect(self._edited)
        self.textChanged.connect(self._cleared)

    def set_example(self, condition: str) -> None:
        """Show an example of a condition on a numeric column, as in ``mean>0.1``."""
        self._example = condition
        self._show_hint()

    def _show_hint(self) -> None:
        """Show as much of the hint as fits the width."""
        hints = ["filter", "filter   /regex/"]
        if self._example:
            hints.append(f"{hints[-1]}   {self._example}")
        room = self.width() - 2 * _INSET
        metrics = QFontMetrics(self.font())
        fitting = [one for one in hints if metrics.horizontalAdvance(one) <= room]
        if not self._own_hint:
            super().setPlaceholderText(fitting[-1] if fitting else hints[0])

    @override
    def setPlaceholderText(self, text: str) -> None:
        self._own_hint = True
        super().setPlaceholderText(text)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_hint()

    @override
    def minimumSizeHint(self) -> QSize:
        """Return a width that follows the text, so that a filter of a few letters is seen whole."""
        wide = _LETTERS * self.fontMetrics().averageCharWidth() + 2 * _INSET
        return QSize(wide, super().minimumSizeHint().height())

    def show_text(self, text: str) -> None:
        """Show a filter that was set elsewhere."""
        self._timer.stop()
        self._reported = text
        if text != self.text():
            self.setText(text)

    def show_error(self, message: str) -> None:
        """Show the error of the filter; an empty message clears it."""
        set_role(self, "wrong", "true" if message else None)
        self.setToolTip(message or HELP)
        self.setAccessibleDescription(message)

    def _edited(self) -> None:
        self._timer.start()

    def _cleared(self, text: str) -> None:
        if not text and self._reported:
            self._report()

    def _report(self) -> None:
        self._timer.stop()
        if self.text() != self._reported:
            self._reported = self.text()
            self.filter_changed.emit(self._reported)

    @override
    def event(self, event: QEvent) -> bool:
        # Escape belongs to the field while the cursor is in it, not to the window's Clear
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and event.key() == Qt.Key.Key_Escape
        ):
            event.accept()
            return True
        return super().event(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._report()
            self.left.emit()
        elif key == Qt.Key.Key_Escape and self.text():
            self.clear()
        elif key in (Qt.Key.Key_Escape, Qt.Key.Key_Down):
            self._report()
            self.left.emit()
        else:
            super().keyPressEvent(event)
