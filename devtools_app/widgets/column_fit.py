"""Widths of the columns of a table or tree: names are shortened before numbers are hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtWidgets import QApplication, QHeaderView, QTableView, QTreeView
from typing_extensions import override

from inspector.tables.table import Table

_ROOMY = 2.3
_NAMES = 4  # names of a quarter of the room are whole before another column comes
_LEAST_NAME = 0.4  # of the room; a name that is shorter says too little
_HEADING_PAD = 22  # of the style sheet at both sides, and what Qt leaves beside the label


@dataclass(frozen=True, slots=True)
class ColumnWidth:
    """Limits of the width of a column.

    Attributes:
        least: minimum useful width
        usual: preferred width
        most: width that shows every cell completely
        is_number: whether its cells are numbers, which stay beside their neighbours
        is_empty: whether no cell has a value; where others are cut, it is hidden
        short: width that shows as much where others are cut, 0 for none: bars, operators whose
            library and overload are left out
        roomy: minimum useful width where that is a smaller part of the view, 0 for none

    Units: pixels
    """

    least: int
    usual: int
    most: int
    is_number: bool = False
    is_empty: bool = False
    short: int = 0
    roomy: int = 0

    def within(self, room: int) -> ColumnWidth:
        """Return the limits in a view of a width."""
        enough = self.roomy >= self.least and room >= _ROOMY * self.roomy
        least = max(self.roomy, min(self.shortest, room // _NAMES))
        return replace(self, least=least) if enough else self

    def scaled(self, scale: float) -> ColumnWidth:
        """Return the limits for text of another size."""
        widths = (self.least, self.usual, self.most, self.short)
        least, usual, most, short = (round(one * scale) for one in widths)
        return replace(self, least=least, usual=usual, most=most, short=short)

    @property
    def shortest(self) -> int:
        """The width above which it does not grow before others are whole."""
        return min(self.short or self.usual, self.usual)


def has_no_value(table: Table, index: int) -> bool:
    """Return whether every cell of a column is empty or missing."""
    column = table.columns[index]
    return all(value is None or value != value or not column.text(value) for value in column.values)


def fitted(columns: Sequence[ColumnWidth], room: int) -> list[int]:
    """Return widths that fill the available width as far as possible.

    Bars shrink, and operators lose their library, before anything else does. Then the widest
    columns shrink first and the narrowest grow first, so that a short name is whole beside a long
    sentence. If even the minimum widths exceed it, the first columns fill the width and the
    others need scrolling.
    """
    seen = _that_fit(columns, room)
    if seen < len(columns):
        rest = [column.usual for column in columns[seen:]]
        return [*fitted(columns[:seen], room), *rest]
    if sum(column.usual for column in columns) > room:
        enough = sum(column.shortest for column in columns) <= room
        limits = [
            (one.shortest, one.usual) if enough else (one.least, one.shortest) for one in columns
        ]
        return _levelled(limits, room)
    return _levelled([(column.usual, max(column.usual, column.most)) for column in columns], room)


def _levelled(limits: Sequence[tuple[int, int]], room: int) -> list[int]:
    """Return widths as near to one level as their limits allow, within a width."""
    low, high = 0, max(most for _, most in limits)
    while low < high:  # the highest level that fits
        level = (low + high + 1) // 2
        if sum(_at_level(limits, level)) <= room:
            low = level
        else:
            high = level - 1
    return _at_level(limits, low)


def _at_level(limits: Sequence[tuple[int, int]], level: int) -> list[int]:
    return [min(max(level, least), most) for least, most in limits]


def _with_a_second(columns: Sequence[ColumnWidth], room: int) -> Sequence[ColumnWidth]:
    """Return the limits with a name short enough for the column behind it.

    A list of names alone, as in a narrow pane with large text, shows nothing about them.
    """
    if len(columns) < 2:
        return columns
    name, second, *others = columns
    rest = room - second.least
    if name.least <= rest or rest < _LEAST_NAME * room:
        return columns
    return [replace(name, least=rest), second, *others]


def _that_fit(columns: Sequence[ColumnWidth], room: int) -> int:
    """Return how many of the first columns fit at their minimum width; at least one."""
    taken = 0
    for number, column in enumerate(columns):
        taken += column.least
        if taken > room:
            return max(number, 1)
    return len(columns)


class ColumnFit(QObject):
    """Keeps the columns of a view fitted until the user sets a width.

    Signals:
        folded(count): another number of columns is hidden for lack of room
    """

    folded = Signal(int)

    def __init__(self, view: QTreeView | QTableView) -> None:
        super().__init__(view)
        self._view = view
        self._columns: tuple[ColumnWidth, ...] = ()
        self._by_hand = False
        self._fitting = False
        self._folds = False
        self._chosen: dict[int, bool] = {}  # by the user: whether a column is shown
        self._count = 0
        view.viewport().installEventFilter(self)
        self._head.sectionResized.connect(self._resized)
        self._head.sectionHandleDoubleClicked.connect(self._fit_one)

    @property
    def _head(self) -> QHeaderView:
        """Return the headings, asked for each time.

        Python's object of a part that Qt itself made may lose it while the part lives on; seen
        after thousands of random clicks.
        """
        view = self._view
        return view.header() if isinstance(view, QTreeView) else view.horizontalHeader()

    def heading_width(self, heading: str) -> int:
        """Return the width that a heading needs with the mark of a sorted column."""
        metrics = self._head.fontMetrics()
        return metrics.horizontalAdvance(f"{heading} ▾") + _HEADING_PAD

    def fold(self, *, on: bool = True) -> None:
        """Hide the last columns where there is no room, instead of a scroll bar."""
        self._folds = on
        self.fit()

    def is_hidden(self, index: int) -> bool:
        """Return whether a column is hidden."""
        return self._head.isSectionHidden(index)

    def show_column(self, index: int, shown: bool) -> None:
        """Show or hide a column whether there is room or not."""
        self._chosen[index] = shown
        self._head.setSectionHidden(index, not shown)
        self.fit()

    def set_columns(self, columns: Sequence[ColumnWidth]) -> None:
        """Refit the columns; manual widths are kept while the number of columns is the same."""
        if len(columns) != len(self._columns):
            self._by_hand = False
            for index in self._chosen:
                self._head.setSectionHidden(index, False)
            self._chosen = {}
        self._columns = tuple(columns)
        self.fit()

    def fit(self) -> None:
        """Set the width of every column for the available width."""
        if self._by_hand or self._fitting or not self._columns:
            return
        self._fitting = True
        try:
            room = self._view.viewport().width()
            columns = _with_a_second([one.within(room) for one in self._columns], room)
            shown = self._shown(columns, room)
            self._hide_others(shown)
            widths = fitted([columns[index] for index in shown], room)
            for index, width in zip(shown, widths, strict=True):
                self._head.resizeSection(index, width)
        finally:
            self._fitting = False

    def _shown(self, columns: Sequence[ColumnWidth], room: int) -> list[int]:
        """Return the columns to show: those that were chosen, and as many others as fit."""
        every = range(len(columns))
        if not self._folds:
            return [index for index in every if self._chosen.get(index, True)]
        taken = sum(columns[index].least for index in every if self._chosen.get(index))
        scarce = sum(column.most for column in columns) > room
        shown, full = list[int](), False
        for index in every:
            if index in self._chosen:
                shown += [index] if self._chosen[index] else []
                continue
            if scarce and columns[index].is_empty:
                continue
            taken += columns[index].least
            full = full or (taken > room and bool(shown))
            shown += [] if full else [index]
        return shown

    def _hide_others(self, shown: list[int]) -> None:
        if not self._folds:
            return
        for index in range(len(self._columns)):
            if self._head.isSectionHidden(index) != (index not in shown):
                self._head.setSectionHidden(index, index not in shown)
                self._head.length()  # laid out at once: else Qt counts hidden columns in the sum
        if shown:
            # a number far from the others, at the other end of the window, is not read with them
            self._head.setStretchLastSection(not self._columns[shown[-1]].is_number)
        count = len(self._columns) - len(shown)
        if count != self._count:
            self._count = count
            self.folded.emit(count)

    def _fit_one(self, index: int) -> None:
        """Show every cell of a column completely, from then on by hand."""
        if index < len(self._columns):
            self._by_hand = True
            self._head.resizeSection(index, self._columns[index].most)

    def _resized(self, _index: int, _old: int, _new: int) -> None:
        pressed = QApplication.mouseButtons() & Qt.MouseButton.LeftButton
        if pressed and not self._fitting and self._head.underMouse():
            self._by_hand = True

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kinds = (QEvent.Type.Resize, QEvent.Type.Show)  # Qt tells no size that changed unseen
        if event.type() in kinds and watched is self._view.viewport():
            self.fit()
        return super().eventFilter(watched, event)
