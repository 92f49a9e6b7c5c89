"""A button with words, a name for screen readers and a callback."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy
from typing_extensions import override

from devtools_app.widgets.accessible import spoken_name
from devtools_app.widgets.fields import PushButton


class FittingButton(PushButton):
    """A button whose words are fewer where there is little room."""

    def __init__(self, words: tuple[str, ...], name: str, tip: str) -> None:
        """Show the first words until there is less room.

        Args:
            words: the same in fewer and fewer letters
            name: action, for screen readers
            tip: shown on hover
        """
        super().__init__(words[0])
        self._words = words
        self.setAccessibleName(name)
        self.setToolTip(tip)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)  # may shrink

    def _size(self, words: str) -> QSize:
        metrics, now = self.fontMetrics(), super().sizeHint()
        more = metrics.horizontalAdvance(words) - metrics.horizontalAdvance(self.text())
        return QSize(now.width() + more, now.height())

    @override
    def sizeHint(self) -> QSize:
        return self._size(self._words[0])

    @override
    def minimumSizeHint(self) -> QSize:
        return self._size(self._words[-1])

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @override
    def changeEvent(self, e: QEvent) -> None:
        super().changeEvent(e)
        if e.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit()

    def _fit(self) -> None:
        fitting = (one for one in self._words if self._size(one).width() <= self.width())
        self.setText(next(fitting, self._words[-1]))


def push_button(text: str, name: str, pressed: Callable[[], object]) -> QPushButton:
    """Return a button.

    Args:
        text: label
        name: action, as a tip and for screen readers
        pressed: called when the button is pressed
    """
    button = PushButton(text)
    button.setAccessibleName(spoken_name(text, name))
    button.setToolTip(name)
    button.clicked.connect(lambda: pressed())
    return button
