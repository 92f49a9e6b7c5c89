"""Source code to read: line numbers, quiet colours, marked lines."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QSyntaxHighlighter,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget
from typing_extensions import override

from devtools_app.shell.theme import Theme
from devtools_app.viewmodels.python_tokens import line_tokens

_STATES = {"": 0, '"""': 1, "'''": 2}
_OPEN = {state: quote for quote, state in _STATES.items()}
_MARGIN = 10


class _Colours(QSyntaxHighlighter):
    def __init__(self, document: QTextDocument, theme: Theme) -> None:
        super().__init__(document)
        self._theme = theme

    @override
    def highlightBlock(self, text: str) -> None:
        tokens, inside = line_tokens(text, _OPEN.get(self.previousBlockState(), ""))
        for token in tokens:
            self.setFormat(token.start, token.length, self._format(token.kind))
        self.setCurrentBlockState(_STATES[inside])

    def _format(self, kind: str) -> QTextCharFormat:
        palette = self._theme.palette
        colours = {
            "comment": palette.muted,
            "text": palette.good,
            "number": palette.warn,
            "constant": palette.warn,
            "keyword": palette.accent,
            "decorator": palette.warn,
            "name": palette.text,
        }
        result = QTextCharFormat()
        result.setForeground(QColor(colours[kind]))
        return result


class _Numbers(QWidget):
    def __init__(self, view: CodeView) -> None:
        super().__init__(view)
        self._view = view

    @override
    def sizeHint(self) -> QSize:
        return QSize(self._view.number_width(), 0)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self._view.paint_numbers(painter)


class CodeView(QPlainTextEdit):
    """Read-only code; an excerpt starts at the number of its first line."""

    def __init__(self, theme: Theme, name: str = "Source") -> None:
        super().__init__()
        self._theme = theme
        self._first = 1
        self._marked: tuple[int, ...] = ()
        self._numbers = _Numbers(self)
        self._colours = _Colours(self.document(), theme)
        self.setObjectName("code")
        self.setReadOnly(True)
        self.setAccessibleName(name)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByKeyboard
            | Qt.TextInteractionFlag.TextSelectableByMouse
        )
        self.updateRequest.connect(self._scrolled)
        self.blockCountChanged.connect(self._fit_numbers)
        theme.changed.connect(self._restyle)
        self._restyle()

    def show_code(self, lines: Sequence[str], first: int = 1, marked: Sequence[int] = ()) -> None:
        """Show lines, the first of which has a number; the marked ones are lit up.

        Args:
            lines: without their ends
            first: number of the first line
            marked: line numbers; the view scrolls to the first of them
        """
        self._first = first
        self.setPlainText("\n".join(lines))
        self.mark(marked)

    def mark(self, marked: Sequence[int]) -> None:
        """Light up other lines and scroll to the first of them."""
        self._marked = tuple(marked)
        self.setExtraSelections([found for line in marked if (found := self._lit(line))])
        if marked:
            self.setTextCursor(QTextCursor(self._block(marked[0])))
            self.centerCursor()

    def _block(self, line: int) -> QTextBlock:
        return self.document().findBlockByNumber(line - self._first)

    def _lit(self, line: int) -> QTextEdit.ExtraSelection | None:
        block = self._block(line)
        if not block.isValid():
            return None
        found = QTextEdit.ExtraSelection()
        look = QTextCharFormat()
        look.setBackground(QColor(self._theme.palette.selection))
        look.setProperty(QTextFormat.Property.FullWidthSelection, True)
        found.format = look
        found.cursor = QTextCursor(block)
        return found

    def number_width(self) -> int:
        """Return how wide the column of line numbers is."""
        digits = len(str(self._first + self.blockCount()))
        return QFontMetrics(self.font()).horizontalAdvance("0") * digits + 2 * _MARGIN

    def paint_numbers(self, painter: QPainter) -> None:
        """Draw the numbers of the visible lines."""
        palette = self._theme.palette
        painter.fillRect(self._numbers.rect(), QColor(palette.surface))
        painter.setFont(self.font())
        block = self.firstVisibleBlock()
        right = self._numbers.width() - _MARGIN
        bottom = self.viewport().height()
        while block.isValid():
            box = self.blockBoundingGeometry(block).translated(self.contentOffset())
            if box.top() > bottom:
                return
            number = self._first + block.blockNumber()
            painter.setPen(QColor(palette.text if number in self._marked else palette.muted))
            rect = QRect(0, int(box.top()), right, int(box.height()))
            painter.drawText(rect, int(Qt.AlignmentFlag.AlignRight), str(number))
            block = block.next()

    def _scrolled(self, rect: QRect, dy: int) -> None:
        if dy:
            self._numbers.scroll(0, dy)
        else:
            self._numbers.update(0, rect.y(), self._numbers.width(), rect.height())

    def _fit_numbers(self) -> None:
        self.setViewportMargins(self.number_width(), 0, 0, 0)
        inside = self.contentsRect()
        self._numbers.setGeometry(inside.left(), inside.top(), self.number_width(), inside.height())

    def _restyle(self) -> None:
        self.setFont(self._theme.mono())
        self._colours.rehighlight()
        self._fit_numbers()
        self.mark(self._marked)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_numbers()
