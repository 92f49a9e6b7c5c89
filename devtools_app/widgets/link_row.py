"""A finding or verdict as a selectable line: a coloured dot, a title that wraps, a detail."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme, set_role
from devtools_app.viewmodels.entries import ListEntry
from devtools_app.widgets.sign import draw_sign
from devtools_app.widgets.text_label import breakable, text_label
from inspector.findings.finding import SEVERITIES

_LEFT, _DOT, _PAD = 24, 8, 5
_WORD_GAP = 12


class LinkRow(QAbstractButton):
    """One entry; activated by the mouse, Space or Return. Without a target it is plain text.

    Args:
        theme: of the window
        entry: title, detail and colour
        leads: whether it can be chosen
        word: what the sign means, in its colour before the title; empty where the title has it
    """

    def __init__(
        self, theme: Theme, entry: ListEntry, *, leads: bool = True, word: str = ""
    ) -> None:
        super().__init__()
        self._theme = theme
        self._entry = entry
        self._leads = leads
        parts = (entry.accessible_text or word, entry.title, entry.detail)
        self.setAccessibleName(", ".join(part for part in parts if part))
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        if leads:
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            self.setCursor(Qt.CursorShape.PointingHandCursor)
        else:
            self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._in = 14 * entry.depth
        line = QHBoxLayout(self)
        line.setContentsMargins(_LEFT + self._in, _PAD, _PAD + 2, _PAD)
        line.setSpacing(_WORD_GAP)
        if word:
            line.addWidget(self._word(word), 0, Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout()
        layout.setSpacing(1)
        line.addLayout(layout, 1)
        layout.addWidget(_label(entry.title, theme, FontSize.NORMAL, strong=entry.strong))
        if entry.detail:
            detail = _label(entry.detail, theme, FontSize.SMALL)
            set_role(detail, "role", "muted")
            layout.addWidget(detail)

    def _word(self, word: str) -> QWidget:
        label = _label(word, self._theme, FontSize.NORMAL)
        set_role(label, "role", self._entry.tone)
        widest = max(QFontMetrics(self._theme.sans()).horizontalAdvance(one) for one in SEVERITIES)
        label.setFixedWidth(widest + 2)
        return label

    @override
    def sizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(max(200, self.width())))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
            return
        super().keyPressEvent(event)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
            if self._leads and self.underMouse():
                painter.setBrush(QColor(palette.hover))
                painter.drawRoundedRect(box, 4, 4)
            if self.hasFocus():
                painter.setPen(QPen(QColor(palette.accent), 1.0))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(box, 4, 4)
            line = self.fontMetrics().height()
            sign = QRectF(8 + self._in, _PAD + (line - _DOT) / 2, _DOT, _DOT)
            draw_sign(painter, self._theme, self._entry.tone, sign)


def _label(text: str, theme: Theme, size: FontSize, *, strong: bool = False) -> QWidget:
    label = text_label(theme, breakable(text), size, strong=strong)
    label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    return label
