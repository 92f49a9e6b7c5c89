"""Bytes of a file beside their characters; any size, because only visible rows are painted."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.viewmodels.hexdump import WIDTH, HexRow, hex_rows, row_count, selected_hex

_PAD = 8
_MAX_ROWS = 1 << 30  # of a scroll bar, which counts in 32 bits


class HexView(QAbstractScrollArea):
    """Shows bytes with a marked range (a field of a table) and a cursor.

    Keys: arrows, Page Up/Down, Home/End move; with Shift they select; Ctrl+C copies as hex.

    Signals:
        moved(offset): the user moved the cursor
    """

    moved = Signal(object)  # an int that may need 64 bits

    def __init__(self, theme: Theme, name: str = "Bytes") -> None:
        super().__init__()
        self._theme = theme
        self._data = memoryview(b"")
        self._base = 0
        self._width = WIDTH  # bytes in a row: a half or quarter of sixteen where they do not fit
        self._cursor = 0
        self._anchor = 0
        self._marked = range(0)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        theme.follow(self._restyle)
        self._restyle()

    @property
    def cursor_offset(self) -> int:
        """Return the offset of the cursor in the file."""
        return self._base + self._cursor

    def show_data(self, data: memoryview, base: int = 0) -> None:
        """Show other bytes; ``base`` is the offset of the first byte in the file."""
        self._data, self._base = data.cast("B"), base
        self._cursor = self._anchor = 0
        self._marked = range(0)
        self._fit_bars()
        self.verticalScrollBar().setValue(0)
        self.viewport().update()

    def mark(self, start: int, size: int) -> None:
        """Mark a range of the file and scroll to it."""
        self._marked = range(start - self._base, start - self._base + size)
        self._set_cursor(start - self._base, select=False, tell=False)
        self._describe()

    def go_to(self, offset: int) -> None:
        """Put the cursor on an offset of the file."""
        self._set_cursor(offset - self._base, select=False, tell=False)

    def copy(self) -> None:
        """Copy the selected bytes, or the marked ones, as hexadecimal."""
        start, end = sorted((self._anchor, self._cursor))
        if start == end and self._marked:
            start, end = self._marked.start, self._marked.stop - 1
        QGuiApplication.clipboard().setText(selected_hex(self._data, max(0, start), end + 1))

    def _restyle(self) -> None:
        metrics = QFontMetricsF(self._theme.mono())
        self._char = metrics.horizontalAdvance("0")
        self._line = metrics.height() + 3
        self._ascent = metrics.ascent() + 1.5
        self._fit_bars()
        self.viewport().update()

    def _digits(self) -> int:
        return max(6, len(f"{self._base + len(self._data):x}"))

    def _hex_x(self, column: int) -> float:
        gap = 1 if column >= self._width // 2 else 0
        return _PAD + self._char * (self._digits() + 2 + column * 3 + gap)

    def _text_x(self) -> float:
        return self._hex_x(self._width) + self._char

    def _visible_rows(self) -> int:
        return max(1, int(self.viewport().height() / self._line))

    def _fit_bars(self) -> None:
        bar = self.verticalScrollBar()
        top, self._width = bar.value() * self._width, self._fitting_width()
        rows = row_count(len(self._data), self._width)
        bar.setRange(0, min(_MAX_ROWS, max(0, rows - self._visible_rows())))
        bar.setPageStep(self._visible_rows())
        bar.setValue(top // self._width)
        wide = int(self._text_x() + self._char * self._width + _PAD)
        self.horizontalScrollBar().setRange(0, max(0, wide - self.viewport().width()))

    def _fitting_width(self) -> int:
        """Return the number of bytes per row for the current width."""
        room = (self.viewport().width() - 2 * _PAD) / self._char
        few = WIDTH // 4
        return next((n for n in (WIDTH, WIDTH // 2) if self._digits() + 4 * n + 4 <= room), few)

    def _set_cursor(self, at: int, *, select: bool, tell: bool = True) -> None:
        if not len(self._data):
            return
        self._cursor = min(len(self._data) - 1, max(0, at))
        if not select:
            self._anchor = self._cursor
        row, bar = self._cursor // self._width, self.verticalScrollBar()
        if row < bar.value():
            bar.setValue(row)
        elif row >= bar.value() + self._visible_rows():
            bar.setValue(row - self._visible_rows() + 1)
        self.viewport().update()
        if tell:
            self._describe()
            self.moved.emit(self.cursor_offset)

    def _describe(self) -> None:
        if not len(self._data):
            self.setAccessibleDescription("no bytes")
            return
        self.setAccessibleDescription(
            f"offset {self.cursor_offset:#x}, byte {self._data[self._cursor]:#04x}"
        )

    @override
    def sizeHint(self) -> QSize:
        characters = self._digits() + 2 + 4 * WIDTH + 2
        return QSize(int(self._char * characters + 4 * _PAD), int(self._line * 16))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_bars()

    @override
    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint and isinstance(event, QPaintEvent):
            with QPainter(self.viewport()) as painter:
                self._paint(painter)
            return True
        return super().viewportEvent(event)

    def _paint(self, painter: QPainter) -> None:
        palette = self._theme.palette
        painter.fillRect(self.viewport().rect(), QColor(palette.surface))
        painter.translate(-self.horizontalScrollBar().value(), 0)
        painter.setFont(self._theme.mono())
        first = self.verticalScrollBar().value()
        for line, row in enumerate(
            hex_rows(self._data, first, self._visible_rows() + 1, self._width)
        ):
            self._paint_row(painter, row, line * self._line)

    def _paint_row(self, painter: QPainter, row: HexRow, y: float) -> None:
        palette = self._theme.palette
        low, high = sorted((self._anchor, self._cursor))
        base = y + self._ascent
        painter.setPen(QColor(palette.muted))
        address = f"{self._base + row.offset:0{self._digits()}x}"
        painter.drawText(QPoint(_PAD, int(base)), address)
        for column, cell in enumerate(row.cells):
            at = row.offset + column
            x = self._hex_x(column)
            text_x = self._text_x() + column * self._char
            ground = self._ground(at, low, high)
            if ground:
                painter.fillRect(QRectF(x - 2, y, self._char * 2 + 4, self._line), QColor(ground))
                painter.fillRect(QRectF(text_x, y, self._char, self._line), QColor(ground))
            painter.setPen(QColor(palette.muted if cell == "00" else palette.text))
            painter.drawText(QPoint(int(x), int(base)), cell)
            painter.drawText(QPoint(int(text_x), int(base)), row.text[column])

    def _ground(self, at: int, low: int, high: int) -> str:
        if low <= at <= high and (low != high or self.hasFocus()):
            return self._theme.palette.accent_soft
        return self._theme.palette.selection if at in self._marked else ""

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
            return
        page = self._visible_rows() * self._width
        ctrl = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        start = self._cursor - self._cursor % self._width
        steps = {
            int(Qt.Key.Key_Left): self._cursor - 1,
            int(Qt.Key.Key_Right): self._cursor + 1,
            int(Qt.Key.Key_Up): self._cursor - self._width,
            int(Qt.Key.Key_Down): self._cursor + self._width,
            int(Qt.Key.Key_PageUp): self._cursor - page,
            int(Qt.Key.Key_PageDown): self._cursor + page,
            int(Qt.Key.Key_Home): 0 if ctrl else start,
            int(Qt.Key.Key_End): len(self._data) - 1 if ctrl else start + self._width - 1,
        }
        at = steps.get(int(event.key()))
        if at is None:
            super().keyPressEvent(event)
            return
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._set_cursor(at, select=shift)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = self._at(event.position().toPoint())
        if at is not None:
            shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._set_cursor(at, select=shift)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = self._at(event.position().toPoint())
        if at is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self._set_cursor(at, select=True)

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def _at(self, point: QPoint) -> int | None:
        x = point.x() + self.horizontalScrollBar().value()
        row = self.verticalScrollBar().value() + int(point.y() / self._line)
        if x >= self._text_x():
            column = int((x - self._text_x()) / self._char)
        else:
            column = sum(x >= self._hex_x(n) - self._char / 2 for n in range(1, self._width))
        at = row * self._width + min(self._width - 1, max(0, column))
        return at if 0 <= at < len(self._data) else None
