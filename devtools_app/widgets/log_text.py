"""Lines of a log with a filter by words and by level, to select and copy."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from PySide6.QtGui import QColor, QGuiApplication, QTextCharFormat, QTextCursor, QTextOption
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from devtools_app.appearance.theme import Theme
from devtools_app.viewmodels.log_lines import LEVELS, LogFilter, LogLine
from devtools_app.widgets.filter_box import FilterBox
from devtools_app.widgets.toolbar_combo import ToolbarCombo

_EMPTY = "No messages yet. Warnings, errors and what jobs print appear here."
_LEFT_OUT = "No message matches the search, the level and the job."
KEPT_LINES = 2000  # a module that warns endlessly must not fill the memory
_HELP = "Words must all occur in a line; /conv|gelu/ is a regular expression."


class LogText(QWidget):
    """Shows lines; the level is shown as a colour and as a word."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._lines: list[LogLine] = []
        self._filter = LogFilter()
        self._matches = self._filter.matcher()
        self.box = FilterBox(f"Search in {name}")
        self.box.setPlaceholderText("search")
        self.box.setToolTip(_HELP)
        self.levels = ToolbarCombo(theme, "level", f"Least level in {name}")
        self.levels.show_choices(list(LEVELS), LEVELS[0][1])
        self.text = QPlainTextEdit()
        self.text.setObjectName("plain")
        self.text.setReadOnly(True)
        self.text.setMaximumBlockCount(KEPT_LINES)
        self.text.setAccessibleName(f"{name[:1].upper()}{name[1:]}")
        self.text.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.bar = QHBoxLayout()
        self.bar.setContentsMargins(8, 5, 8, 5)
        self.bar.setSpacing(8)
        self.bar.addWidget(self.box, 1)
        self.bar.addWidget(self.levels)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(self.bar)
        layout.addWidget(self.text, 1)
        self.box.filter_changed.connect(lambda _text: self._filter_edited())
        self.box.left.connect(self.text.setFocus)
        self.levels.activated.connect(lambda _index: self._filter_edited())
        theme.follow(self._show_all)
        self._show_all()

    @property
    def lines(self) -> Sequence[LogLine]:
        """Return all lines, also those that the filter leaves out."""
        return self._lines

    @property
    def shown(self) -> str:
        """Return the lines that are shown."""
        return self.text.toPlainText()

    def show_lines(self, lines: Iterable[LogLine]) -> None:
        """Replace all lines."""
        self._lines = list(lines)[-KEPT_LINES:]
        self._show_all()

    def add(self, lines: Iterable[LogLine]) -> None:
        """Add lines at the end."""
        added = list(lines)
        self._lines = [*self._lines, *added][-KEPT_LINES:]
        for line in added:
            if self._matches(line):
                self._append(line)
        self._explain()

    def show_job(self, job: str) -> None:
        """Show only the lines of a job, or of any."""
        self._filter = replace(self._filter, job=job)
        self._filter_edited()

    def copy_all(self) -> None:
        """Copy the lines that are shown."""
        shown = (line.text for line in self._lines if self._matches(line))
        QGuiApplication.clipboard().setText("\n".join(shown))

    def start_find(self) -> None:
        """Focus the field of the search."""
        self.box.setFocus()
        self.box.selectAll()

    def _filter_edited(self) -> None:
        level = int(str(self.levels.currentData()))
        self._filter = replace(self._filter, text=self.box.text(), level=level)
        try:
            self._matches = self._filter.matcher()
        except re.error as error:
            self.box.show_error(f"not a regular expression: {error}")
            return
        self.box.show_error("")
        self.box.setToolTip(_HELP)
        self._show_all()

    def _show_all(self) -> None:
        self.text.setFont(self._theme.mono())
        self.text.clear()
        for line in self._lines:
            if self._matches(line):
                self._append(line)
        self._explain()

    def _explain(self) -> None:
        """Word why no line is shown."""
        self.text.setPlaceholderText(_LEFT_OUT if self._lines else _EMPTY)

    def _append(self, line: LogLine) -> None:
        palette = self._theme.palette
        colour = palette.text
        if line.level >= logging.ERROR:
            colour = palette.bad
        elif line.level >= logging.WARNING:
            colour = palette.warn
        elif line.level < logging.INFO:
            colour = palette.muted
        look = QTextCharFormat()
        look.setForeground(QColor(colour))
        bar = self.text.verticalScrollBar()
        follows = bar.value() >= bar.maximum() - 2  # who reads further up stays there
        cursor = QTextCursor(self.text.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(line.text + "\n", look)
        if follows:
            bar.setValue(bar.maximum())
