"""A frame over a whole window with a sentence: what happens to what is dragged over it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.widgets.text_label import text_label

_FRAME = 4  # pixels
_SHADE = 160  # of 255, of what is covered
_LETTERS = 44  # of a line


class DropCover(QWidget):
    """Covers a window while something is dragged over it; it takes no events itself."""

    def __init__(self, theme: Theme, window: QWidget) -> None:
        super().__init__(window)
        self._theme = theme
        self._taken = True
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._card = QFrame(self)
        self._card.setObjectName("card")
        self._title = text_label(theme, "", FontSize.LARGE, strong=True)
        self._text = text_label(theme, "")
        layout = QVBoxLayout(self._card)
        layout.setContentsMargins(20, 16, 20, 16)
        for label in (self._title, self._text):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            layout.addWidget(label)
        window.installEventFilter(self)
        self.hide()

    @property
    def text(self) -> str:
        """Return what is shown, or empty while nothing is dragged."""
        return "" if self.isHidden() else f"{self._title.text()}. {self._text.text()}"

    def show_words(self, title: str, text: str, *, taken: bool) -> None:
        """Cover the window with a frame and a card.

        Args:
            title: what a drop would do
            text: one sentence more
            taken: whether a drop would do anything
        """
        self._taken = taken
        self._title.setText(title)
        self._text.setText(text)
        self._title.setFont(self._theme.sans(FontSize.LARGE, strong=True))
        self._text.setFont(self._theme.sans())
        self.setAccessibleName(f"{title}. {text}")
        self._place()
        self.show()
        self.raise_()
        self.update()

    def _place(self) -> None:
        window = self.parentWidget()
        if window is None:
            return
        self.setGeometry(window.rect())
        letters = self._title.fontMetrics().averageCharWidth() * _LETTERS
        width = min(letters, max(window.width() - 8 * _FRAME, 1))
        layout = self._card.layout()
        height = layout.totalHeightForWidth(width) if layout is not None else 0
        left, top = (window.width() - width) // 2, (window.height() - height) // 2
        self._card.setGeometry(left, top, width, height)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and not self.isHidden():
            self._place()
        return super().eventFilter(watched, event)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        shade = QColor(palette.surface)
        shade.setAlpha(_SHADE)
        painter = QPainter(self)
        painter.fillRect(self.rect(), shade)
        line = Qt.PenStyle.SolidLine if self._taken else Qt.PenStyle.DashLine
        colour = QColor(palette.accent if self._taken else palette.warn)
        painter.setPen(QPen(colour, _FRAME, line))
        half = _FRAME // 2
        painter.drawRect(self.rect().adjusted(half, half, -half, -half))
        painter.end()
