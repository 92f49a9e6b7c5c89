"""Cells of tables and trees: drawn here, as the style sheet has them.

Qt's style takes 150 us for a cell, of which a window of tables shows a hundred. What is rare is
left to it: cells with an icon, with the keyboard, or disabled.
"""

from __future__ import annotations

from typing import Protocol

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPointF, QRect, Qt
from PySide6.QtGui import QColor, QFontMetrics, QHelpEvent, QPainter, QStaticText
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QToolTip,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.qtmodels.cells import DrawnCell, Looks
from devtools_app.qtmodels.roles import TOOLTIP
from devtools_app.widgets.elision import elided

Index = QModelIndex | QPersistentModelIndex
_SELECTED = QStyle.StateFlag.State_Selected.value
_HOVERED = QStyle.StateFlag.State_MouseOver.value
_ENABLED = QStyle.StateFlag.State_Enabled.value
_FOCUSED = QStyle.StateFlag.State_HasFocus.value
_END = Qt.TextElideMode.ElideRight
_MOST_TEXTS = 2000  # that are remembered as they were cut


class DrawsCells(Protocol):
    """A model whose cells are drawn here."""

    looks: Looks | None

    def drawn(self, index: Index) -> DrawnCell:
        """Return what a cell shows; the looks are set before."""
        ...


class CellDelegate(QStyledItemDelegate):
    """Draws cells; the full text of one that is cut off is shown on hover."""

    def __init__(self, model: DrawsCells, parent: QWidget) -> None:
        super().__init__(parent)
        self._model = model
        self._looks: Looks | None = None  # of what is remembered
        self._cut: dict[tuple[str, int, int], tuple[QStaticText, float]] = {}
        self._insets = (0, 0, 0, 0)  # of the text in a cell: left, top, right, bottom

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        drawn = self._model.drawn(index)
        state = option.state.value
        if _is_plain(drawn, state):
            rect = option.rect
            self._draw_ground(painter, option, rect, state, drawn)
            if drawn.text:
                self._draw_text(painter, rect, state, drawn)
            return
        found = QStyleOptionViewItem(option)
        self.initStyleOption(found, index)
        found.text = self.fitted(found.text, found.fontMetrics, _room(found))
        _draw_by_style(painter, found, drawn.ground)

    def draw_ground(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> str:
        """Draw a cell without its text; return the text."""
        drawn = self._model.drawn(index)
        state = option.state.value
        if _is_plain(drawn, state):
            self._draw_ground(painter, option, option.rect, state, drawn)
            return drawn.text
        self.initStyleOption(option, index)
        text, option.text = option.text, ""
        _draw_by_style(painter, option, drawn.ground)
        return text

    def fitted(self, text: str, metrics: QFontMetrics, room: int) -> str:
        """Return what of a text fits."""
        return metrics.elidedText(text, _END, room)

    def _draw_ground(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        rect: QRect,
        state: int,
        drawn: DrawnCell,
    ) -> None:
        looks = self._model.looks
        assert looks is not None
        if looks is not self._looks:
            self._cut.clear()
            self._insets = _insets(option)
            self._looks = looks
        if state & _SELECTED:
            painter.fillRect(rect, looks.selected)
        elif state & _HOVERED:
            painter.fillRect(rect, looks.hovered)
        elif drawn.ground is not None:
            painter.fillRect(rect, drawn.ground)
        if isinstance(option.widget, QTableView):
            painter.fillRect(rect.x(), rect.bottom(), rect.width(), 1, looks.line)

    def _draw_text(self, painter: QPainter, rect: QRect, state: int, drawn: DrawnCell) -> None:
        left, top, right, bottom = self._insets
        face, room = drawn.face, rect.width() - left - right
        key = drawn.text, room, id(face)
        found = self._cut.get(key)
        if found is None:
            shown = self.fitted(drawn.text, face.metrics, room)
            laid_out = QStaticText(shown)
            laid_out.setTextFormat(Qt.TextFormat.PlainText)
            laid_out.prepare(font=face.font)
            found = laid_out, face.exact.horizontalAdvance(shown)
            if len(self._cut) >= _MOST_TEXTS:
                self._cut.clear()
            self._cut[key] = found
        shown, width = found
        x = rect.x() + left + (room - width if drawn.is_right else 0)
        y = rect.y() + top + (rect.height() - top - bottom) // 2 - face.height // 2
        painter.setFont(face.font)
        painter.setPen(self._looks.text if state & _SELECTED and self._looks else drawn.ink)
        painter.drawStaticText(QPointF(x, y), shown)

    @override
    def helpEvent(
        self,
        event: QHelpEvent,
        view: QAbstractItemView,
        option: QStyleOptionViewItem,
        index: Index,
    ) -> bool:
        if event.type() == QEvent.Type.ToolTip and not index.data(TOOLTIP):
            text = self.left_out(option, index)
            QToolTip.showText(event.globalPos(), text, view)
            return bool(text)
        return super().helpEvent(event, view, option, index)

    def left_out(self, option: QStyleOptionViewItem, index: Index) -> str:
        """Return the text of a cell that does not fit into its rectangle, else nothing."""
        found = QStyleOptionViewItem(option)
        self.initStyleOption(found, index)
        room = _room(found)
        return found.text if found.fontMetrics.horizontalAdvance(found.text) > room else ""


class ThemedDelegate(CellDelegate):
    """Draws cells in the fonts and colours of a theme."""

    def __init__(self, theme: Theme, model: DrawsCells, parent: QWidget) -> None:
        super().__init__(model, parent)
        self._theme = theme


class NameDelegate(CellDelegate):
    """Draws names that differ at their ends."""

    @override
    def fitted(self, text: str, metrics: QFontMetrics, room: int) -> str:
        return elided(text, metrics, room - 1)  # advances are rounded: else Qt would cut it again


def _is_plain(drawn: DrawnCell, state: int) -> bool:
    """Return whether a cell is drawn without the style."""
    return drawn.icon is None and state & (_ENABLED | _FOCUSED) == _ENABLED


def _draw_by_style(painter: QPainter, option: QStyleOptionViewItem, ground: QColor | None) -> None:
    if ground is not None:  # a style sheet that draws borders leaves it out
        painter.fillRect(option.rect, ground)
    style = option.widget.style()
    style.drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, option.widget)


def _text_box(option: QStyleOptionViewItem) -> tuple[QRect, int]:
    """Return the rectangle that the style has for the text of a cell, and its margin in that."""
    style = option.widget.style()
    box = style.subElementRect(QStyle.SubElement.SE_ItemViewItemText, option, option.widget)
    metric = QStyle.PixelMetric.PM_FocusFrameHMargin
    return box, style.pixelMetric(metric, option, option.widget) + 1


def _room(option: QStyleOptionViewItem) -> int:
    """Return the width that the style has for the text of a cell, by its own margins."""
    box, margin = _text_box(option)
    return box.width() - 2 * margin


def _insets(option: QStyleOptionViewItem) -> tuple[int, int, int, int]:
    """Return how far the text of a cell is from its left, upper, right and lower edge."""
    found = QStyleOptionViewItem(option)
    found.features |= QStyleOptionViewItem.ViewItemFeature.HasDisplay
    found.text = "0" * 200  # more than fits: the box has the room that there is
    rect = found.rect
    box, margin = _text_box(found)
    left, right = box.left() - rect.left() + margin, rect.right() - box.right() + margin
    return left, box.top() - rect.top(), right, rect.bottom() - box.bottom()
