"""All keys on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
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

_GAP, _KEY_GAP = 28, 14
_LETTERS = 25  # of a description, before it wraps
_MOST = 4  # columns
_EDGE = 48  # of the window that stays visible around the page
_LEAST = 320


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
            keys.horizontalAdvance(key) for lines in sections.values() for key, _ in lines
        )
        letters = QFontMetrics(theme.sans()).averageCharWidth() * _LETTERS
        self._column_width = self._key_width + _KEY_GAP + letters
        self._sections = [
            _section(theme, title, lines, self._key_width) for title, lines in sections.items()
        ]
        self._weights = [len(lines) + 2 for lines in sections.values()]
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
        self._arrange(self._fitting(self._area.viewport().width()))

    def _fitting(self, room: int) -> int:
        return max(1, min(_MOST, (room + _GAP) // (self._column_width + _GAP)))

    def _size_for(self, parent: QWidget) -> None:
        """Take the size that shows all keys, as far as the window has it."""
        bar = self._area.verticalScrollBar().sizeHint().width()
        room = max(parent.window().width() - _EDGE, _LEAST)
        count = self._fitting(room - 2 * bar)
        self._arrange(count)
        width = min(room, count * (self._column_width + _GAP) + 4 * bar)
        height = self._row.totalHeightForWidth(width) if self._row.hasHeightForWidth() else 0
        height = max(height, self._page.sizeHint().height()) + 6 * bar
        self.resize(width, min(height, max(parent.window().height() - _EDGE, _LEAST)))

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
        used, share = 0.0, sum(self._weights) / count
        for section, weight in zip(self._sections, self._weights, strict=True):
            # a section begins the next column where more than half of it would be beyond this one
            if not self._columns or used + weight / 2 > share * len(self._columns):
                self._columns.append(QVBoxLayout())
                self._columns[-1].setSpacing(12)
                self._row.addLayout(self._columns[-1], 1)
            self._columns[-1].addWidget(section)
            used += weight
        for column in self._columns:
            column.addStretch(1)


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
        label = QLabel(key)
        label.setFont(theme.mono())
        set_role(label, "role", "accent")
        label.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        meaning = QLabel(text)
        meaning.setWordWrap(True)
        grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(meaning, row, 1)
    grid.setColumnMinimumWidth(0, key_width)
    grid.setColumnStretch(1, 1)
    return box
