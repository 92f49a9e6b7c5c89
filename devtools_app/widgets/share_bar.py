"""A fraction of one as a bar with its percentage."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.qtmodels.roles import SHARE
from devtools_app.widgets.cell_delegate import Index, ThemedDelegate

_PAD = 8
_BAR_HEIGHT = 10
_TEXT_SAMPLE = "100.0 %"


def paint_share(painter: QPainter, box: QRectF, share: float, theme: Theme, strong: bool) -> None:
    """Draw a bar over its track; a share above 100 % fills the track."""
    palette = theme.palette
    painter.fillRect(box, QColor(palette.hover))
    filled = QRectF(box)
    filled.setWidth(box.width() * min(1.0, max(0.0, share)))
    painter.fillRect(filled, QColor(palette.accent if strong else palette.accent_soft))


class ShareDelegate(ThemedDelegate):
    """Draws the cells of a share column; the bar of a selected row is strong."""

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        text = self.draw_ground(painter, option, index)
        rect = QRectF(option.rect).adjusted(_PAD, 0, -_PAD, 0)
        painter.save()
        painter.setFont(self._theme.mono())
        text_width = QFontMetrics(self._theme.mono()).horizontalAdvance(_TEXT_SAMPLE) + _PAD
        share = index.data(SHARE)
        if share is not None and rect.width() > text_width + 16:
            top = rect.y() + (rect.height() - _BAR_HEIGHT) / 2
            box = QRectF(rect.x(), top, rect.width() - text_width, _BAR_HEIGHT)
            strong = bool(option.state & QStyle.StateFlag.State_Selected)
            paint_share(painter, box, float(share), self._theme, strong)
        painter.setPen(QColor(self._theme.palette.text if share is not None else self._muted()))
        align = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(rect, int(align), text)
        painter.restore()

    def _muted(self) -> str:
        return self._theme.palette.muted
