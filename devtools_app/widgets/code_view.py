"""Read-only source code: line numbers, syntax colours, marked lines."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QRect, QSize, Qt, QTimer
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
    QTextLayout,
)
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.jobs.imports import import_later

if TYPE_CHECKING:
    from devtools_app.viewmodels.python_tokens import CodeToken

_MARGIN = 10
_TOKENS = "devtools_app.viewmodels.python_tokens"  # not imported at start
_RETRY = 15  # ms between two looks whether it is there
_AT_ONCE = 800  # lines; the others of a long text follow while the window is idle
_SLICE = 0.004  # seconds of lexing between two looks at the user's events


class _Colours(QObject):
    """Colours the lines that are seen: the first ones immediately, others once they are lexed.

    A QSyntaxHighlighter would visit every line of a new text at once, and keep the formats and the
    layout of all of them: half a kilobyte a line. Lines are lexed in order, while the window is
    idle, no further than to the last one seen; what is kept of each is the state of the lexer.

    Args:
        view: with the text
        theme: of the colours
        seen: returns the numbers of the first line seen and of the one after the last
    """

    def __init__(
        self, view: QPlainTextEdit, theme: Theme, seen: Callable[[], tuple[int, int]]
    ) -> None:
        super().__init__(view)
        self._view = view
        self._theme = theme
        self._seen = seen
        self._states: list[tuple[str, ...]] = []  # at the start of each line, and of the next
        self._alike: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._coloured: set[int] = set()
        self._formats: dict[str, QTextCharFormat] = {}
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._colour_some)

    def forget(self) -> None:
        """Stop colouring; called when the text has been replaced."""
        self._timer.stop()
        self._states.clear()
        self._coloured.clear()

    def follow(self) -> None:
        """Colour the lines that are seen now: after a new text, scrolling, a new size."""
        first, end = self._seen()
        if not self._timer.isActive() and not self._coloured.issuperset(range(first, end)):
            self._timer.start(0)

    def restyle(self) -> None:
        """Use the colours of the palette as it is now."""
        palette = self._theme.palette
        colours = {
            "comment": palette.muted,
            "string": palette.good,
            "number": palette.warn,
            "constant": palette.warn,
            "keyword": palette.accent,
            "decorator": palette.warn,
            "definition": palette.text,
        }
        for kind, colour in colours.items():
            self._formats[kind] = QTextCharFormat()
            self._formats[kind].setForeground(QColor(colour))
        self._coloured.clear()
        self.follow()

    def _colour_some(self) -> None:
        there = import_later(_TOKENS)
        self._timer.setInterval(0 if there else _RETRY)
        if not there:
            return
        first, end = self._seen()
        if self._lex(end):
            self._timer.stop()
        for line in range(first, min(end, len(self._states) - 1)):
            if line not in self._coloured:
                self._colour(line)

    def _lex(self, end: int) -> bool:
        """Lex lines up to one for as long as a slice lasts; return whether all of them are."""
        from devtools_app.viewmodels.python_tokens import ROOT, line_tokens

        self._states = self._states or [ROOT]
        stop = time.perf_counter() + _SLICE
        block = self._view.document().findBlockByNumber(len(self._states) - 1)
        while len(self._states) <= end and block.isValid():
            if time.perf_counter() > stop:
                return False
            _, states = line_tokens(block.text(), self._states[-1])
            self._states.append(self._alike.setdefault(states, states))
            block = block.next()
        return True

    def _colour(self, line: int) -> None:
        from devtools_app.viewmodels.python_tokens import line_tokens

        self._coloured.add(line)
        block = self._view.document().findBlockByNumber(line)
        tokens, _ = line_tokens(block.text(), self._states[line])
        if tokens:
            block.layout().setFormats([self._range(token) for token in tokens])
            self._view.document().markContentsDirty(block.position(), block.length())

    def _range(self, token: CodeToken) -> QTextLayout.FormatRange:
        found = QTextLayout.FormatRange()
        found.start, found.length = token.start, token.length
        found.format = self._formats[token.kind]
        return found


class _LineNumbers(QWidget):
    def __init__(self, view: CodeView) -> None:
        super().__init__(view)
        self._view = view

    @override
    def sizeHint(self) -> QSize:
        return QSize(self._view.line_number_width(), 0)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self._view.paint_line_numbers(painter)


class CodeView(QPlainTextEdit):
    """Read-only code; an excerpt starts at the number of its first line."""

    def __init__(self, theme: Theme, name: str = "Source") -> None:
        super().__init__()
        self._theme = theme
        self._first = 1
        self._marked: tuple[int, ...] = ()
        self._rest: deque[Sequence[str]] = deque()  # lines that are not there yet
        self._filling = QTimer(self, interval=0)
        self._filling.timeout.connect(self._fill)
        self.setUndoRedoEnabled(False)  # it would keep a long text a second time
        self._line_numbers = _LineNumbers(self)
        self._colours = _Colours(self, theme, self._lines_seen)
        self.setObjectName("code")
        self.setReadOnly(True)
        self.setAccessibleName(name)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByKeyboard
            | Qt.TextInteractionFlag.TextSelectableByMouse
        )
        self.updateRequest.connect(self._scrolled)
        self.blockCountChanged.connect(self._fit_line_numbers)
        theme.follow(self._restyle)
        self._restyle()

    def show_code(self, lines: Sequence[str], first: int = 1, marked: Sequence[int] = ()) -> None:
        """Show lines with their numbers; marked ones are highlighted.

        Args:
            lines: without line endings
            first: number of the first line
            marked: line numbers; the view scrolls to the first of them
        """
        self._first = first
        self._rest = deque(lines[at : at + _AT_ONCE] for at in range(0, len(lines), _AT_ONCE))
        self.setPlainText("\n".join(self._rest.popleft() if self._rest else ()))
        self._colours.forget()
        if self._rest:
            self._filling.start()
        else:
            self._filling.stop()
        self._colours.follow()
        self.mark(marked)

    def _fill(self) -> None:
        """Add some of the lines that a long text still lacks."""
        more = self._rest.popleft()
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText("\n" + "\n".join(more))
        if not self._rest:
            self._filling.stop()
            self._colours.follow()
        arrived = self.document().blockCount() + self._first
        if any(arrived - len(more) <= line < arrived for line in self._marked):
            self.mark(self._marked)

    def mark(self, marked: Sequence[int]) -> None:
        """Change the highlighted lines and scroll to the first of them."""
        self._marked = tuple(marked)
        self._highlight()
        if marked:
            self.setTextCursor(QTextCursor(self._block(marked[0])))
            self.centerCursor()

    def _highlight(self) -> None:
        lines = (self._highlighted(line) for line in self._marked)
        self.setExtraSelections([found for found in lines if found])

    def _block(self, line: int) -> QTextBlock:
        return self.document().findBlockByNumber(line - self._first)

    def _highlighted(self, line: int) -> QTextEdit.ExtraSelection | None:
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

    def line_number_width(self) -> int:
        """Return the width of the column of line numbers."""
        digits = len(str(self._first + self.blockCount()))
        return QFontMetrics(self.font()).horizontalAdvance("0") * digits + 2 * _MARGIN

    def paint_line_numbers(self, painter: QPainter) -> None:
        """Draw the line numbers of the visible lines."""
        palette = self._theme.palette
        painter.fillRect(self._line_numbers.rect(), QColor(palette.surface))
        painter.setFont(self.font())
        block = self.firstVisibleBlock()
        right = self._line_numbers.width() - _MARGIN
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

    def _lines_seen(self) -> tuple[int, int]:
        first = self.firstVisibleBlock().blockNumber()
        seen = self.viewport().height() // max(1, self.fontMetrics().lineSpacing()) + 2
        return max(0, first), min(max(0, first) + seen, self.blockCount())

    def _scrolled(self, rect: QRect, dy: int) -> None:
        self._colours.follow()
        if dy:
            self._line_numbers.scroll(0, dy)
        else:
            self._line_numbers.update(0, rect.y(), self._line_numbers.width(), rect.height())

    def _fit_line_numbers(self) -> None:
        self.setViewportMargins(self.line_number_width(), 0, 0, 0)
        inside = self.contentsRect()
        self._line_numbers.setGeometry(
            inside.left(), inside.top(), self.line_number_width(), inside.height()
        )

    def _restyle(self) -> None:
        self.setFont(self._theme.mono())
        self._colours.restyle()
        self._fit_line_numbers()
        self._highlight()  # without scrolling to it

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_line_numbers()
        self._colours.follow()
