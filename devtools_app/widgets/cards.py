"""Cards of the overview: a muted title over facts, entries or missing files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics, QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import FontSize, Theme, set_role
from devtools_app.viewmodels.entries import ListEntry
from devtools_app.viewmodels.overview import Missing
from devtools_app.widgets.badge import Badge
from devtools_app.widgets.command_text import CommandText
from devtools_app.widgets.fields import PushButton
from devtools_app.widgets.link_row import LinkRow
from devtools_app.widgets.text_label import text_label
from inspector.tables.facts import Fact
from inspector.tables.glossary import definition

_LABEL_WIDTH, _MOST_LABEL = 92, 220


class Card(QFrame):
    """A frame with a title; widgets are stacked below it."""

    def __init__(self, theme: Theme, title: str) -> None:
        super().__init__()
        self._theme = theme
        self.setObjectName("card")
        self.setAccessibleName(title)
        self._inside = QVBoxLayout(self)
        self._inside.setContentsMargins(14, 10, 14, 12)
        self._inside.setSpacing(4)
        if title:
            heading = card_text(theme, title)
            set_role(heading, "role", "muted")
            self._inside.addWidget(heading)

    def add(self, widget: QWidget, at_end: QWidget | None = None) -> None:
        """Add a widget below the others, with another one at the end of its line."""
        if at_end is None:
            self._inside.addWidget(widget)
            return
        line = QHBoxLayout()
        line.setSpacing(8)
        line.addWidget(widget, 1)
        line.addWidget(at_end, 0, Qt.AlignmentFlag.AlignVCenter)
        self._inside.addLayout(line)

    def add_line(self, widget: QWidget, at_end: QWidget | None = None) -> None:
        """Add a line of a list, with a rule above it."""
        rule = QFrame()
        rule.setObjectName("rule")
        rule.setFixedHeight(1)
        self._inside.addWidget(rule)
        self.add(widget, at_end)

    def add_entries(
        self, entries: Sequence[ListEntry], chosen: Callable[[int], object] | None = None
    ) -> None:
        """Add entries; with ``chosen`` each can be chosen by its number."""
        for number, entry in enumerate(entries):
            row = LinkRow(self._theme, entry, leads=chosen is not None)
            if chosen is not None:
                row.clicked.connect(lambda _on=False, number=number: chosen(number))
            self.add(row)

    def add_facts(self, facts: Sequence[Fact]) -> None:
        """Add lines of label and value, with the exact value on hover."""
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(3)
        metrics = QFontMetrics(self._theme.sans())
        widest = max((metrics.horizontalAdvance(fact.label) for fact in facts), default=0)
        grid.setColumnMinimumWidth(0, min(max(_LABEL_WIDTH, widest + 2), _MOST_LABEL))
        grid.setColumnStretch(1, 1)
        for row, fact in enumerate(facts):
            label = card_text(self._theme, fact.label)
            label.setToolTip(definition(fact.label))
            set_role(label, "role", "muted")
            grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addLayout(self._value(fact), row, 1)
        self._inside.addLayout(grid)

    def _value(self, fact: Fact) -> QHBoxLayout:
        value = card_text(self._theme, fact.value)
        value.setFont(self._theme.mono())
        value.setToolTip(fact.exact)
        value.setAccessibleName(f"{fact.label}: {fact.value}")
        line = QHBoxLayout()
        line.setSpacing(6)
        line.addWidget(value, 1)
        if fact.badge:
            line.addWidget(Badge(self._theme, fact.badge, fact.badge_tone, fact.exact))
        return line

    def add_missing(self, missing: Missing) -> None:
        """Add a missing file, with the code that writes it."""
        title = card_text(self._theme, f"{missing.what} would add {missing.adds}")
        self.add(title)
        line = QHBoxLayout()
        command = CommandText(missing.command)
        command.setFont(self._theme.mono(FontSize.SMALL))
        copy = PushButton("Copy")
        copy.setAccessibleName(f"Copy the command that makes the {missing.what}")
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(missing.command))
        line.addWidget(command, 1)
        line.addWidget(copy, 0, Qt.AlignmentFlag.AlignTop)
        self._inside.addLayout(line)


def card_text(
    theme: Theme, text: str, size: FontSize = FontSize.NORMAL, *, strong: bool = False
) -> QLabel:
    """Return text that wraps and can be copied; a long name never widens the page."""
    label = text_label(theme, text, size, strong=strong)
    label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
    return label
