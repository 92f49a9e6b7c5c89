"""What is left of a name that does not fit: the part by which it differs from its neighbours."""

from __future__ import annotations

import re

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QFontMetrics, QFontMetricsF, QHelpEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolTip,
)
from typing_extensions import override

from devtools_app.qtmodels.roles import TOOLTIP

_DOTS = "…"
_NUMBERED = re.compile(r"\w*?(?P<number>_\d+)")
_PATH = re.compile(r"[^\s.:]+(\.[^\s.:]+)+")
# of operators the overload, which is last, tells the least
_OPERATOR = re.compile(r"(aten|dim_order_ops|quantized_decomposed)\.")
_MARGIN = 6  # of a cell, at both sides


def elided(text: str, metrics: QFontMetrics | QFontMetricsF, room: float) -> str:
    """Return a name within a width.

    A dotted path keeps its last parts, a numbered name its number, other names beginning and end.
    """
    if metrics.horizontalAdvance(text) <= room:
        return text
    if " " in text or _OPERATOR.match(text):
        return metrics.elidedText(text, Qt.TextElideMode.ElideRight, int(room))
    if _PATH.fullmatch(text):
        return _last_parts(text, metrics, room)
    numbered = _NUMBERED.fullmatch(text)
    if numbered is None:
        return metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, int(room))
    number = numbered["number"]
    head, left = text[: -len(number)], room - metrics.horizontalAdvance(_DOTS + number)
    while head and metrics.horizontalAdvance(head) > left:
        head = head[:-1]
    shown = f"{head}{_DOTS}{number}"
    fits = metrics.horizontalAdvance(shown) <= room
    return shown if fits else metrics.elidedText(text, Qt.TextElideMode.ElideLeft, int(room))


def _last_parts(text: str, metrics: QFontMetrics | QFontMetricsF, room: float) -> str:
    """Return as many of the last parts of a path as fit, at least some of the last one."""
    parts = text.split(".")
    for first in range(1, len(parts)):
        shown = f"{_DOTS}.{'.'.join(parts[first:])}"
        if metrics.horizontalAdvance(shown) <= room:
            return shown
    return elided(parts[-1], metrics, room)


class CellDelegate(QStyledItemDelegate):
    """Draws cells; the full text of one that is cut off is shown on hover."""

    def draw_ground(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> str:
        """Draw a cell without its text; return the text."""
        self.initStyleOption(option, index)
        text, option.text = option.text, ""
        style = option.widget.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, option.widget)
        return text

    @override
    def helpEvent(
        self,
        event: QHelpEvent,
        view: QAbstractItemView,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> bool:
        if event.type() == QEvent.Type.ToolTip and not index.data(TOOLTIP):
            text = self.left_out(option, index)
            QToolTip.showText(event.globalPos(), text, view)
            return bool(text)
        return super().helpEvent(event, view, option, index)

    def left_out(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> str:
        """Return the text of a cell that does not fit into its rectangle, else nothing."""
        found = QStyleOptionViewItem(option)
        self.initStyleOption(found, index)
        room = found.rect.width() - 2 * _MARGIN
        return found.text if found.fontMetrics.horizontalAdvance(found.text) > room else ""


class NameDelegate(CellDelegate):
    """Draws names that differ at their ends."""

    @override
    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        found = QStyleOptionViewItem(option)
        self.initStyleOption(found, index)
        room = found.rect.width() - 2 * _MARGIN
        found.text = elided(found.text, found.fontMetrics, room)
        style = found.widget.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, found, painter, found.widget)
