"""A choice in the toolbar: a quiet label, the value in heavier letters, an arrow."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen, QPolygonF
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.widgets.fields import ComboBox

_PAD, _ARROW, _WIDEST = 10, 18, 320
_NARROWEST, _NARROW = 90, 150  # bounds of the least width


class ToolbarCombo(ComboBox):
    """A combo box that shows its label inside; hidden without choices."""

    def __init__(self, theme: Theme, label: str, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._label = label
        self._opened = False
        self.setAccessibleName(name)
        self.setToolTip(name)
        self.currentTextChanged.connect(lambda _text: self.updateGeometry())
        theme.changed.connect(self.updateGeometry)

    def show_choices(self, choices: list[tuple[str, str]], current: str) -> None:
        """Show (text, key) pairs and select one key; no signal is emitted.

        A list that is open is opened again if the pairs are others: it keeps the height it had.
        """
        blocked = self.blockSignals(True)
        now = [(self.itemText(n), str(self.itemData(n))) for n in range(self.count())]
        reopens = now != choices and self._opened and self.view().isVisible()
        if now != choices:
            if reopens:
                self.hidePopup()
            self.clear()
            for text, key in choices:
                self.addItem(text, key)
        self.setCurrentIndex(self.findData(current))
        self.blockSignals(blocked)
        self.setEnabled(len(choices) > 0)
        self.updateGeometry()
        self.update()
        if reopens and choices:
            self.showPopup()

    @override
    def showPopup(self) -> None:
        self._opened = True  # asking Qt for the list of a box would make it
        super().showPopup()

    @override
    def sizeHint(self) -> QSize:
        label = QFontMetrics(self._theme.sans())
        value = QFontMetrics(self._theme.sans(strong=True))
        text = self.currentText() or "—"
        width = label.horizontalAdvance(self._label) + value.horizontalAdvance(text)
        return QSize(min(_WIDEST, width + 3 * _PAD + _ARROW), label.height() + 12)

    @override
    def minimumSizeHint(self) -> QSize:
        """Return a size with room for the value without its label."""
        hint = self.sizeHint()
        value = QFontMetrics(self._theme.sans(strong=True)).horizontalAdvance(self.currentText())
        least = min(max(value + _PAD + _ARROW + 4, _NARROWEST), _NARROW, hint.width())
        return QSize(least, hint.height())

    @override
    def paintEvent(self, e: QPaintEvent) -> None:
        palette = self._theme.palette
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            edge = palette.accent if self.hasFocus() else palette.edge
            painter.setPen(QPen(QColor(edge), 1.0))
            painter.setBrush(QColor(palette.hover if self.underMouse() else palette.surface))
            painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1).toRectF(), 4, 4)
            self._paint_text(painter)
            self._paint_arrow(painter)

    def _paint_text(self, painter: QPainter) -> None:
        palette = self._theme.palette
        align = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
        inner = self.rect().adjusted(_PAD, 0, -_ARROW, 0)
        font = self._theme.sans(strong=True)
        value, box = self.currentText() or "—", inner
        skip = QFontMetrics(self._theme.sans()).horizontalAdvance(self._label) + 7
        if skip + QFontMetrics(font).horizontalAdvance(value) <= inner.width():
            painter.setFont(self._theme.sans())
            painter.setPen(QColor(palette.muted))
            painter.drawText(inner, align, self._label)
            box = QRect(inner.x() + skip, inner.y(), inner.width() - skip, inner.height())
        painter.setFont(font)  # without room for both it is the value that counts
        painter.setPen(QColor(palette.text if self.isEnabled() else palette.muted))
        text = QFontMetrics(font).elidedText(value, Qt.TextElideMode.ElideMiddle, box.width())
        painter.drawText(box, align, text)

    def _paint_arrow(self, painter: QPainter) -> None:
        middle = QPointF(self.width() - 12.0, self.height() / 2.0)
        corners = [QPointF(-3.5, -2.0), QPointF(3.5, -2.0), QPointF(0.0, 2.8)]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.palette.muted))
        painter.drawPolygon(QPolygonF([middle + corner for corner in corners]))
