"""All keys on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QMargins, Qt
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.widgets.dialog_buttons import dialog_buttons

_GAP, _KEY_GAP = 24, 12
_BETWEEN = "  "  # keys for the same thing
_LETTERS = 19  # of a description, before it wraps
_MOST = 4  # columns
_EDGE, _ABOVE = 48, 32  # of the window that stays visible beside the page, and above and below it
_LEAST = 320
_BELOW = 5  # lines of text that the button and the margins take


class KeySheet(QDialog):
    """A page of keys in as many columns as fit; Escape and Return close it."""

    def __init__(
        self, theme: Theme, parent: QWidget, sections: Mapping[str, Sequence[tuple[str, str]]]
    ) -> None:
        """Fill the page.

        Args:
            theme: the look
            parent: of the dialog
            sections: (key, description) by heading
        """
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Keys")
        self.setAccessibleName("Keys")
        keys = QFontMetrics(theme.mono())
        self._key_width = max(
            keys.horizontalAdvance(one)
            for lines in sections.values()
            for key, _ in lines
            for one in key.split(_BETWEEN)
        )
        letters = QFontMetrics(theme.sans()).averageCharWidth() * _LETTERS
        self._column_width = self._key_width + _KEY_GAP + letters
        self._sections = [
            _section(theme, title, lines, self._key_width) for title, lines in sections.items()
        ]
        self._weights = [sum(map(_lines, lines)) + 2 for lines in sections.values()]
        self._columns: list[QVBoxLayout] = []
        self._page = QWidget()
        self._page.setObjectName("page")
        self._row = QHBoxLayout(self._page)
        self._row.setSpacing(_GAP)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setWidget(self._page)
        self._area.setAccessibleName("List of keys")
        layout = QVBoxLayout(self)
        layout.addWidget(self._area)
        layout.addWidget(dialog_buttons(self, QDialogButtonBox.StandardButton.Close))
        self._size_for(parent)

    @property
    def columns(self) -> int:
        """Return the number of columns."""
        return len(self._columns)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(self._fitting(event.size().width() - self._around()))

    def _around(self) -> int:
        """Return the width of margins and of the scroll bar."""
        bar = self._area.verticalScrollBar().sizeHint().width()
        layout = self.layout()
        edges = layout.contentsMargins() if layout is not None else QMargins()
        inner = self._row.contentsMargins()
        return bar + edges.left() + edges.right() + inner.left() + inner.right() + 2

    def _fitting(self, room: int) -> int:
        return max(1, min(_MOST, (room + _GAP) // (self._column_width + _GAP)))

    def _size_for(self, parent: QWidget) -> None:
        """Take the size that shows all keys, as far as the window has it."""
        room = max(parent.window().width() - _EDGE, _LEAST)
        count = self._fitting(room - self._around())
        self._arrange(count)
        high = max(parent.window().height() - _ABOVE, _LEAST)
        width = min(room, count * (self._column_width + _GAP) - _GAP + self._around())
        height = self._height_for(width)
        if height > high:  # wider columns have fewer lines
            width = room
            height = self._height_for(width)
        self.resize(width, min(height, high))

    def _height_for(self, width: int) -> int:
        """Return the height that shows all keys in the columns there are."""
        inside = width - self._around()
        rows = self._row.heightForWidth(inside) if self._row.hasHeightForWidth() else 0
        return (rows or self._row.sizeHint().height()) + _BELOW * self.fontMetrics().height()

    def _arrange(self, count: int) -> None:
        """Distribute the sections over columns of about one length, in their order."""
        if count == len(self._columns):
            return
        for column in self._columns:
            while column.takeAt(0) is not None:
                pass
            self._row.removeItem(column)
            column.deleteLater()
        self._columns = []
        for number, section in zip(_columns(self._weights, count), self._sections, strict=True):
            if number == len(self._columns):
                self._columns.append(QVBoxLayout())
                self._columns[-1].setSpacing(12)
                self._row.addLayout(self._columns[-1], 1)
            self._columns[-1].addWidget(section)
        for column in self._columns:
            column.addStretch(1)


def _columns(weights: Sequence[int], count: int) -> list[int]:
    """Return the column of each section, in their order, so that the longest column is shortest."""
    longest = max(weights)
    while True:
        columns, used = [0], weights[0]
        for weight in weights[1:]:
            full = used + weight > longest
            columns.append(columns[-1] + full)
            used = weight if full else used + weight
        if columns[-1] < count:
            return columns
        longest += 1


def _lines(line: tuple[str, str]) -> int:
    """Return about how many lines of text a key and its description take."""
    key, text = line
    return max(key.count(_BETWEEN) + 1, -(-len(text) // _LETTERS))


def _section(theme: Theme, title: str, lines: Sequence[tuple[str, str]], key_width: int) -> QWidget:
    box = QWidget()
    grid = QGridLayout(box)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(_KEY_GAP)
    grid.setVerticalSpacing(3)
    head = QLabel(title)
    head.setFont(theme.sans(strong=True))
    grid.addWidget(head, 0, 0, 1, 2)
    for row, (key, text) in enumerate(lines, 1):
        label = QLabel(key.replace(_BETWEEN, "\n"))
        label.setFont(theme.mono())
        set_role(label, "role", "accent")
        label.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        meaning = QLabel(text)
        meaning.setWordWrap(True)
        grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(meaning, row, 1, Qt.AlignmentFlag.AlignTop)
    grid.setColumnMinimumWidth(0, key_width)
    grid.setColumnStretch(1, 1)
    return box
