"""Points by two metrics, with the line of those that nobody beats."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QToolTip, QWidget
from typing_extensions import override

from devtools_app.shell.theme import FontSize, Theme
from inspector.tables.sweep import Dot, Scatter

_TOP, _RIGHT, _BELOW, _GAP = 14, 18, 46, 8
_DOT, _NEAR = 4.0, 14.0
_WORDS = "There are no points with both numbers yet"
_NEXT = (Qt.Key.Key_Right, Qt.Key.Key_Up)
_FORMER = (Qt.Key.Key_Left, Qt.Key.Key_Down)


class ScatterPlot(QWidget):
    """Draws points; a click or an arrow key chooses one, a double click or Return opens it.

    Signals:
        chosen(key): the user chose a point
        activated(key): the user wants to open it
    """

    chosen = Signal(str)
    activated = Signal(str)

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._scatter: Scatter | None = None
        self._current = ""
        self.setMinimumSize(240, 180)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(name)
        theme.changed.connect(self.update)

    def show_scatter(self, scatter: Scatter | None) -> None:
        """Show other points, or say that there are none."""
        self._scatter = scatter
        if scatter is None:
            self.setAccessibleDescription(_WORDS)
        else:
            self.setAccessibleDescription(
                f"{len(scatter.dots)} points by {scatter.across.title} and {scatter.up.title},"
                f" {len(scatter.front())} of them best"
            )
        self.update()

    def show_current(self, key: str) -> None:
        """Mark a point."""
        self._current = key
        self.update()

    @property
    def current(self) -> str:
        """Return the key of the point that is marked, empty for none."""
        return self._current

    def place_of(self, key: str) -> QPointF | None:
        """Return where a point is drawn, None when it is not."""
        scatter = self._scatter
        if scatter is None:
            return None
        dot = next((one for one in scatter.dots if one.key == key), None)
        return None if dot is None else self._at(scatter, dot)

    # ---- places
    def _left(self) -> int:
        metrics = QFontMetrics(self._theme.sans(FontSize.SMALL))
        ticks = self._scatter.up.ticks if self._scatter is not None else ()
        widest = max((metrics.horizontalAdvance(text) for _, text in ticks), default=0)
        return widest + metrics.height() + 3 * _GAP

    def _area(self) -> QRectF:
        left = self._left()
        wide = max(1, self.width() - left - _RIGHT)
        return QRectF(left, _TOP, wide, max(1, self.height() - _TOP - _BELOW))

    def _at(self, scatter: Scatter, dot: Dot) -> QPointF:
        area = self._area()
        x = area.left() + area.width() * scatter.across.share(dot.x)
        return QPointF(x, area.bottom() - area.height() * scatter.up.share(dot.y))

    def _nearest(self, place: QPointF) -> Dot | None:
        scatter = self._scatter
        if scatter is None:
            return None

        def away(dot: Dot) -> float:
            between = self._at(scatter, dot) - place
            return (between.x() ** 2 + between.y() ** 2) ** 0.5

        found = min(scatter.dots, key=away)
        return found if away(found) <= _NEAR else None

    # ---- the user
    @override
    def sizeHint(self) -> QSize:
        return QSize(520, 380)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        dot = self._nearest(event.position())
        if dot is not None and event.button() is Qt.MouseButton.LeftButton:
            self._choose(dot)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        dot = self._nearest(event.position())
        if dot is not None and event.button() is Qt.MouseButton.LeftButton:
            self.activated.emit(dot.key)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        dot = self._nearest(event.position())
        if dot is None:
            QToolTip.hideText()
        else:
            QToolTip.showText(event.globalPosition().toPoint(), dot.words, self)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._current:
            self.activated.emit(self._current)
        elif key not in (*_NEXT, *_FORMER) or not self.step(1 if key in _NEXT else -1):
            super().keyPressEvent(event)

    def step(self, by: int) -> bool:
        """Choose the next point to the right (1) or left (-1); return whether there was one."""
        scatter = self._scatter
        if scatter is None:
            return False
        dots = sorted(scatter.dots, key=lambda dot: (dot.x, dot.y))
        keys = [dot.key for dot in dots]
        place = keys.index(self._current) + by if self._current in keys else 0
        if not 0 <= place < len(dots):
            return False
        self._choose(dots[place])
        return True

    def _choose(self, dot: Dot) -> None:
        self.show_current(dot.key)
        self.chosen.emit(dot.key)

    # ---- painting
    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        palette, scatter = self._theme.palette, self._scatter
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(palette.raised))
            painter.setFont(self._theme.sans(FontSize.SMALL))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if scatter is None:
                painter.setPen(QColor(palette.muted))
                center = int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap)
                painter.drawText(self.rect().adjusted(12, 12, -12, -12), center, _WORDS)
                return
            area = self._area()
            self._paint_across(painter, area, scatter)
            self._paint_up(painter, area, scatter)
            self._paint_front(painter, scatter)
            self._paint_dots(painter, scatter)

    def _paint_across(self, painter: QPainter, area: QRectF, scatter: Scatter) -> None:
        palette, axis = self._theme.palette, scatter.across
        metrics = painter.fontMetrics()
        reach = area.left()
        for value, text in axis.ticks:
            x = area.left() + area.width() * axis.share(value)
            painter.setPen(QPen(QColor(palette.line), 1.0))
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            half = metrics.horizontalAdvance(text) / 2
            if x - half < reach:
                continue  # no two texts touch
            reach = x + half + _GAP
            painter.setPen(QColor(palette.muted))
            painter.drawText(QPointF(x - half, area.bottom() + metrics.ascent() + 4), text)
        painter.setPen(QColor(palette.text))
        line = QRectF(0, self.height() - metrics.height() - 4, area.right(), metrics.height())
        painter.drawText(line, int(Qt.AlignmentFlag.AlignRight), axis.title)

    def _paint_up(self, painter: QPainter, area: QRectF, scatter: Scatter) -> None:
        palette, axis = self._theme.palette, scatter.up
        metrics = painter.fontMetrics()
        align = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        for value, text in axis.ticks:
            y = area.bottom() - area.height() * axis.share(value)
            painter.setPen(QPen(QColor(palette.line), 1.0))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(QColor(palette.muted))
            painter.drawText(QRectF(0, y - 10, area.left() - _GAP, 20), align, text)
        painter.setPen(QColor(palette.text))
        painter.save()
        painter.translate(_GAP + metrics.ascent(), area.top())
        painter.rotate(-90)
        along = QRectF(-area.height(), -metrics.ascent(), area.height(), metrics.height())
        painter.drawText(along, int(Qt.AlignmentFlag.AlignRight), axis.title)
        painter.restore()

    def _paint_front(self, painter: QPainter, scatter: Scatter) -> None:
        painter.setPen(QPen(QColor(self._theme.palette.accent), 1.2, Qt.PenStyle.DashLine))
        painter.drawPolyline([self._at(scatter, dot) for dot in scatter.front()])

    def _paint_dots(self, painter: QPainter, scatter: Scatter) -> None:
        palette = self._theme.palette
        for dot in sorted(scatter.dots, key=lambda one: one.best):
            place = self._at(scatter, dot)
            painter.setPen(QPen(QColor(palette.raised), 1.0))
            painter.setBrush(QColor(palette.accent if dot.best else palette.muted))
            radius = _DOT + 1.0 if dot.best else _DOT
            painter.drawEllipse(place, radius, radius)
            if dot.key == self._current:
                strong = self.hasFocus()
                painter.setPen(QPen(QColor(palette.text), 2.0 if strong else 1.2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawEllipse(place, radius + 4, radius + 4)
