"""All keys on one page."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
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

from devtools_app.actions.table import ACTIONS, MENUS
from devtools_app.shell.theme import Theme, set_role
from devtools_app.views import VIEWS
from devtools_app.views.spec import Area
from devtools_app.widgets.dialog_buttons import dialog_buttons

# keys that belong to a widget and not to the window; (key, what it does)
LOCAL_KEYS = {
    "Tables and trees": (
        ("↑ ↓", "move; the other views follow"),
        ("Return", "go to the row in its view"),
        ("S", "sort by the column of the cursor; a tree by the next column"),
        ("Shift+S", "reverse the order of a tree"),
        ("Ctrl+C", "copy the selected rows, unrounded"),
        ("← →", "close and open a node of a tree"),
    ),
    "Canvases": (
        ("W A S D", "pan"),
        ("Wheel", "zoom at the pointer"),
        ("F", "go to the selection"),
        ("Space", "fit everything"),
    ),
    "Graph": (
        ("Return", "open or close a box"),
        ("Shift+E  Shift+C", "open all boxes, close all"),
        ("Shift+M", "hide the boxes of modules"),
        ("Shift+R", "open the boxes around the selection"),
        ("F3  Shift+F3", "next and previous match"),
    ),
    "Other views": (
        ("E", "operators: every event of the trace"),
        ("[  ]", "timeline: run before, run after"),
        ("Shift+D", "size: find duplicates"),
        ("Ctrl+Return", "source: open in editor"),
        ("Ctrl+G", "structure: go to an offset"),
    ),
    "Bookmarks": (("Ctrl+1 … Ctrl+0", "go to a bookmark"),),
}


def sheet_sections() -> dict[str, list[tuple[str, str]]]:
    """Return (key, what it does) pairs by heading, generated from the table of actions."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for menu in MENUS:
        lines = [
            ("  ".join(native(key) for key in spec.keys), spec.text.rstrip("…"))
            for spec in ACTIONS
            if spec.menu == menu and spec.keys
        ]
        sections[menu] = lines
    centre = [view for view in VIEWS if view.area is Area.CENTRE][:9]
    sections["Views"] = [(f"Alt+{n}", view.title) for n, view in enumerate(centre, 1)]
    sections.update({title: list(lines) for title, lines in LOCAL_KEYS.items()})
    return {title: lines for title, lines in sections.items() if lines}


def native(key: str) -> str:
    """Return a key as this system writes it."""
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)


class KeySheet(QDialog):
    """A page of keys in two columns; any of Escape, Return and ? closes it."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Keys")
        self.setAccessibleName("Keys")
        page = QWidget()
        page.setObjectName("page")
        columns = QHBoxLayout(page)
        columns.setSpacing(32)
        sections = list(sheet_sections().items())
        total = sum(len(lines) + 2 for _, lines in sections)
        column, used = _column(columns), 0
        for title, lines in sections:
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


def _section(theme: Theme, title: str, lines: list[tuple[str, str]]) -> QWidget:
    box = QWidget()
    grid = QGridLayout(box)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(16)
    head = QLabel(title)
    head.setFont(theme.sans(strong=True))
    grid.addWidget(head, 0, 0, 1, 2)
    for row, (key, words) in enumerate(lines, 1):
        label = QLabel(key)
        label.setFont(theme.mono())
        set_role(label, "role", "accent")
        label.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        meaning = QLabel(words)
        meaning.setWordWrap(True)
        grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(meaning, row, 1)
    grid.setColumnMinimumWidth(0, 130)
    grid.setColumnStretch(1, 1)
    return box
