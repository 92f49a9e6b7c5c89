"""Shows a FactSheet: headings, aligned lines, badges, links and a few lines of source."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import (
    QAction,
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.slices import Slices
from devtools_app.appearance.theme import FontSize, Theme, set_role
from devtools_app.widgets.badge import Badge
from devtools_app.widgets.code_view import CodeView
from devtools_app.widgets.first_focus import order_keys
from devtools_app.widgets.link_button import LinkButton
from devtools_app.widgets.text_label import breakable, text_label
from devtools_app.widgets.value_label import ValueLabel, is_step
from inspector.tables.facts import Fact, FactGroup, FactSheet
from inspector.tables.glossary import definition

_LABEL_WIDTH = 88
_LETTERS = 13  # of a value that fit beside its label at least
_LONG = 14  # letters of a word that may be wider than the labels
_FEWER, _BADGE = 8, 26  # letters beside a badge, and what its outline takes
_AROUND = 32  # margins and the space between both


class FactPanel(QScrollArea):
    """A scrolling sheet; every value can be selected and copied.

    Tab stops at the panel, its links and its source; the arrows up and down go from value to value.

    Signals:
        followed(link): the user chose the value of a fact that has a link
    """

    followed = Signal(object)

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._sheet = FactSheet()
        self._filling = Slices(self)
        self._columns: list[tuple[QGridLayout, FactGroup, list[QLabel]]] = []
        self._values: list[QWidget] = []  # in order, links among them
        self._stacked = False  # labels over their values, where there is no room beside them
        self.setObjectName("panel")
        self.setAccessibleName(name)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        copy = QAction("Copy all facts", self)
        copy.setShortcut(QKeySequence(QKeySequence.StandardKey.Copy))
        copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        copy.triggered.connect(self.copy)
        self.addAction(copy)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        theme.follow(self._rebuild, size_only=True)
        self._rebuild()

    @property
    def sheet(self) -> FactSheet:
        """Return the sheet."""
        return self._sheet

    def show_sheet(self, sheet: FactSheet) -> None:
        """Replace the facts."""
        if sheet != self._sheet:
            self._sheet = sheet
            self._rebuild()

    def copy(self) -> None:
        """Copy all facts to the clipboard, unrounded."""
        QGuiApplication.clipboard().setText(self._sheet.as_text())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._is_narrow() != self._stacked:
            self._rebuild()
        else:
            self._fit_labels()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not (is_step(event) and self._step(1 if event.key() == Qt.Key.Key_Down else -1)):
            super().keyPressEvent(event)

    def _step(self, by: int) -> bool:
        """Give the keyboard to the next value or link; return whether there is one."""
        focus = QApplication.focusWidget()
        at = next((at for at, one in enumerate(self._values) if one is focus), None)
        wanted = (0 if by > 0 else -1) if at is None else at + by
        if not 0 <= wanted < len(self._values):
            return False
        self._values[wanted].setFocus(Qt.FocusReason.OtherFocusReason)
        self.ensureWidgetVisible(self._values[wanted])
        return True

    def _is_narrow(self) -> bool:
        """Return whether some letters of a value do not fit beside the labels."""
        letter = QFontMetrics(self._theme.mono()).averageCharWidth()
        badges = QFontMetrics(self._theme.sans(FontSize.SMALL))
        groups = [group for group in self._sheet.groups if group.facts]
        widest = max((self._label_width(group) for group in groups), default=_LABEL_WIDTH)
        needs = [
            letter * _FEWER + badges.horizontalAdvance(fact.badge) + _BADGE
            if fact.badge
            else letter * _LETTERS
            for group in groups
            for fact in group.facts
        ]
        return self.viewport().width() - widest - _AROUND < max(needs, default=0)

    def _rebuild(self) -> None:
        self._stacked = self._is_narrow()
        self._columns, self._values = [], []
        page = QWidget()
        page.setObjectName("page")
        whole, layout = QVBoxLayout(page), QVBoxLayout()
        whole.setContentsMargins(14, 12, 10, 12)
        layout.setSpacing(6)
        whole.addLayout(layout)
        whole.addStretch(1)
        self._add_head(layout)
        self.setWidget(page)
        self.setAccessibleDescription(f"{self._sheet.title}, {self._sheet.subtitle}".strip(", "))
        # thirty facts at once would keep the window for 60 ms, most of it to style their labels
        self._filling.start(self._groups(page, layout), at_once=True)

    def _groups(self, page: QWidget, layout: QVBoxLayout) -> Iterator[object]:
        """Add the groups, one at a time."""
        for number, group in enumerate(self._sheet.groups):
            if number and not group.notice:
                layout.addWidget(_rule())
            self._add_group(layout, group)
            self._fit_labels()
            yield
        order_keys(self, (page,))

    def _add_head(self, layout: QVBoxLayout) -> None:
        if self._sheet.title:
            title = text_label(
                self._theme, breakable(self._sheet.title), FontSize.LARGE, strong=True
            )
            title.setAccessibleName(self._sheet.title)
            title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
            layout.addWidget(title)
        if self._sheet.subtitle:
            subtitle = text_label(self._theme, breakable(self._sheet.subtitle), FontSize.NORMAL)
            subtitle.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
            set_role(subtitle, "role", "muted")
            layout.addWidget(subtitle)

    def _add_group(self, layout: QVBoxLayout, group: FactGroup) -> None:
        if group.notice or group.text:
            layout.addWidget(self._notice(group))
        if group.title:
            title = _label(group.title, self._theme)
            set_role(title, "role", "muted")
            layout.addWidget(title)
        if group.facts:
            grid = QGridLayout()
            grid.setHorizontalSpacing(8)
            grid.setVerticalSpacing(4)
            grid.setColumnStretch(1, 1)
            labels = [self._add_fact(grid, row, fact) for row, fact in enumerate(group.facts)]
            self._columns.append((grid, group, labels))
            layout.addLayout(grid)
        if group.code:
            layout.addWidget(self._code(group))

    def _fit_labels(self) -> None:
        """Bound the labels beside their values: Qt would give a long one all of the room."""
        for grid, group, labels in self._columns if not self._stacked else ():
            width = self._label_width(group)
            grid.setColumnMinimumWidth(0, width)
            for label in labels:
                label.setMaximumWidth(width)

    def _label_width(self, group: FactGroup) -> int:
        """Return the width of the longest label of a group, up to two fifths of the panel."""
        metrics = QFontMetrics(self._theme.sans())
        longest = max(metrics.horizontalAdvance(fact.label) for fact in group.facts) + 4
        return max(_LABEL_WIDTH, min(longest, self.width() * 2 // 5))

    def _notice(self, group: FactGroup) -> QWidget:
        box = QFrame()
        box.setObjectName("notice")
        inner = QVBoxLayout(box)
        inner.setContentsMargins(12, 8, 10, 10)
        inner.setSpacing(4)
        if group.notice:
            inner.addWidget(text_label(self._theme, group.notice, FontSize.NORMAL, strong=True))
        if group.text:
            inner.addWidget(text_label(self._theme, group.text, FontSize.NORMAL))
        return box

    def _add_fact(self, grid: QGridLayout, row: int, fact: Fact) -> QLabel:
        label = _label(_wrapped(fact.label), self._theme)
        label.setAccessibleName(fact.label)
        label.setToolTip(definition(fact.label))
        set_role(label, "role", "muted")
        value = self._value(fact)
        badge = Badge(self._theme, fact.badge, fact.badge_tone, fact.exact) if fact.badge else None
        if self._stacked:
            parts = (label, value) if badge is None else (label, value, badge)
            for number, part in enumerate(parts):
                grid.addWidget(part, 3 * row + number, 0, 1, 2)
            return label
        grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
        line = QHBoxLayout()
        line.setSpacing(6)
        line.addWidget(value, 0 if badge else 1)
        if badge is not None:
            value.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
            line.addWidget(badge)
            line.addStretch(1)
        grid.addLayout(line, row, 1)
        return label

    def _value(self, fact: Fact) -> QWidget:
        if fact.link is None:
            value: QWidget = ValueLabel(fact.value)
        else:
            value = LinkButton(self._theme, fact.value)
            link = fact.link
            value.clicked.connect(lambda: self.followed.emit(link))
        value.setFont(self._theme.mono())
        value.setToolTip(fact.exact)
        value.setAccessibleName(f"{fact.label}: {fact.value}")
        self._values.append(value)
        return value

    def _code(self, group: FactGroup) -> CodeView:
        view = CodeView(self._theme, f"Source of {self._sheet.title}")
        view.show_code(group.code, group.first_line, (group.marked,) if group.marked else ())
        lines = min(len(group.code), 12)
        height = QFontMetrics(self._theme.mono()).lineSpacing() * lines + 20
        view.setFixedHeight(height)
        return view


def _label(text: str, theme: Theme) -> QLabel:
    """Return a label without text selection, which is ten times cheaper to create."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setFont(theme.sans(FontSize.NORMAL))
    return label


def _wrapped(label: str) -> str:
    """Return a label that may break inside of its long names."""
    return breakable(label) if max(map(len, label.split()), default=0) > _LONG else label


def _rule() -> QFrame:
    rule = QFrame()
    rule.setObjectName("rule")
    return rule
