"""Cells are drawn as Qt's style draws them by the style sheet, pixel by pixel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QItemSelectionModel, QModelIndex
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QTableView, QTreeView

from devtools_app.appearance.look import ThemeMode
from devtools_app.appearance.theme import Theme
from devtools_app.widgets import cell_delegate
from devtools_app.widgets.item_panel import ItemPanel
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.tree_view import TreeView
from inspector.tables.table import Table, badge_column, number_column, share_column, text_column
from inspector.tables.tree import Tree
from inspector.units import Quantity

pytestmark = pytest.mark.gui

Make = Callable[[Theme], tuple[ItemPanel, QAbstractItemView]]
_LIT = (1, 4)
_ROW = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
_NAMES = (
    "encoder.0.layers.3.self_attention.out_proj.weight",
    "aten::convolution.default",
    "a sentence that is longer than the column that it stands in is cut at its end",
    "XNNPACK 2  (14)",
    "",
    "größer × 2 ≤ 3 µs",
)


def _rows() -> Table:
    count = len(_NAMES)
    times = [1.25e6, float("nan"), None, 30.0, 2.5e9, 0.0]
    columns = (
        text_column("name", _NAMES),
        text_column("operator", _NAMES[::-1], mono=True),
        number_column("p50", times, Quantity.TIME),
        share_column("share", [0.5, None, 1.0, 0.25, 0.0, 0.125]),
        badge_column("state", ["better", "", "worse", "same", "exact", "missing"]),
    )
    return Table(columns, count, muted=np.array([False, True] * (count // 2)))


def _table(theme: Theme) -> tuple[ItemPanel, QAbstractItemView]:
    panel = TableView(theme, "cells")
    panel.show_table(_rows())
    panel.highlight(_LIT)
    return panel, panel.findChild(QTableView)


def _tree(theme: Theme) -> tuple[ItemPanel, QAbstractItemView]:
    panel = TreeView(theme, "cells")
    panel.show_tree(Tree(_rows(), np.array([-1, 0, 0, -1, 3, 3])))
    panel.expand_all()
    panel.highlight(_LIT)
    return panel, panel.findChild(QTreeView)


@pytest.mark.parametrize("mode", [ThemeMode.LIGHT, ThemeMode.DARK])
@pytest.mark.parametrize("size", [10, 13, 17, 26])
@pytest.mark.parametrize("width", [420, 900])
@pytest.mark.parametrize("make", [_table, _tree])
def test_cells_are_drawn_as_by_the_style(
    qtbot, theme: Theme, monkeypatch: pytest.MonkeyPatch, make: Make, width: int, size: int, mode
) -> None:
    theme.set_mode(mode)
    theme.set_size(size)
    qtbot.waitUntil(lambda: not theme.busy)
    panel, view = make(theme)
    qtbot.addWidget(panel)
    panel.resize(width, 400)
    panel.show()
    view.selectionModel().select(view.model().index(0, 0), _ROW)
    QTest.mouseMove(view.viewport(), view.visualRect(view.model().index(1, 1)).center())
    ours = view.viewport().grab().toImage()
    assert _colours(ours) > 10
    monkeypatch.setattr(cell_delegate, "_is_plain", lambda *_given: False)
    assert ours == view.viewport().grab().toImage()


def _colours(image: QImage) -> int:
    return len({image.pixel(x, y) for x in range(image.width()) for y in range(0, 40, 3)})


@pytest.mark.parametrize("make", [_table, _tree])
def test_rows_related_to_the_selection_elsewhere_have_a_ground(
    qtbot, theme: Theme, make: Make
) -> None:
    panel, view = make(theme)
    qtbot.addWidget(panel)
    panel.resize(900, 400)
    panel.show()
    image = view.viewport().grab().toImage()
    ground = QColor(theme.palette.selection)
    lit = [
        image.pixelColor(rect.right() - 1, rect.top() + 1) == ground
        for rect in map(view.visualRect, _first_cells(view))
    ]
    assert lit == [row in _LIT for row in range(len(_NAMES))]


def _first_cells(view: QAbstractItemView) -> list[QModelIndex]:
    """Return the first cell of each row, downwards."""
    if isinstance(view, QTreeView):
        found = [view.model().index(0, 0)]
        while (below := view.indexBelow(found[-1])).isValid():
            found.append(below)
        return found
    return [view.model().index(row, 0) for row in range(view.model().rowCount())]


def test_marked_rows_and_the_one_with_the_keyboard_are_drawn_by_the_style(
    qtbot, theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel, view = _table(theme)
    qtbot.addWidget(panel)
    panel.resize(900, 400)
    panel.show()
    before = view.viewport().grab().toImage()
    panel.mark_rows({2: "edited"})
    cell = view.visualRect(view.model().index(2, 0))
    assert view.viewport().grab().toImage().copy(cell) != before.copy(cell)
    drawn: list[bool] = []
    known = cell_delegate._is_plain
    monkeypatch.setattr(
        cell_delegate, "_is_plain", lambda *given: drawn.append(known(*given)) or drawn[-1]
    )
    view.viewport().grab()
    assert drawn.count(False) == 1
