"""All keys on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
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

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.widgets.dialog_buttons import dialog_buttons


class KeySheet(QDialog):
    """A page of keys in two columns; any of Escape, Return and ? closes it."""

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
        page = QWidget()
        page.setObjectName("page")
        columns = QHBoxLayout(page)
        columns.setSpacing(32)
        total = sum(len(lines) + 2 for lines in sections.values())
        column, used = _column(columns), 0
        for title, lines in sections.items():
            if used > total / 2:
                column.addStretch(1)
                column, used = _column(columns), 0
            column.addWidget(_section(theme, title, lines))
            used += len(lines) + 2
        column.addStretch(1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setWidget(page)
        area.setAccessibleName("List of keys")
        buttons = dialog_buttons(self, QDialogButtonBox.StandardButton.Close)
        layout = QVBoxLayout(self)
        layout.addWidget(area)
        layout.addWidget(buttons)
        self.resize(820, 700)


def _column(columns: QHBoxLayout) -> QVBoxLayout:
    column = QVBoxLayout()
    column.setSpacing(12)
    columns.addLayout(column, 1)
    return column


def _section(theme: Theme, title: str, lines: Sequence[tuple[str, str]]) -> QWidget:
    box = QWidget()
    grid = QGridLayout(box)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(16)
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
    grid.setColumnMinimumWidth(0, 140)
    grid.setColumnStretch(1, 1)
    return box
