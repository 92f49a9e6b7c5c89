"""The panels: one row of tabs a place, whatever is hidden, shown or put back."""

from __future__ import annotations

from collections import Counter

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTabBar

from devtools_app.window import MainWindow
from tests.app.window_views import open_sample

pytestmark = pytest.mark.gui


def rows_of_panels(window: MainWindow) -> list[list[str]]:
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    rows = [bar for bar in window.findChildren(QTabBar, options=direct) if bar.isVisible()]
    return [[row.tabText(tab) for tab in range(row.count())] for row in rows if row.count()]


def assert_each_panel_is_in_one_row(window: MainWindow) -> None:
    rows = rows_of_panels(window)
    counted = Counter(title for row in rows for title in row)
    assert counted, "panels share places"
    assert {title: count for title, count in counted.items() if count > 1} == {}


def test_docks_have_one_row_of_tabs_each(make_window, qtbot) -> None:
    window = make_window()
    open_sample(window, qtbot)
    assert_each_panel_is_in_one_row(window)


@pytest.mark.parametrize("command", ["reset_layout"])
def test_docks_put_back_have_one_row_of_tabs_each(make_window, qtbot, command: str) -> None:
    window = make_window()
    open_sample(window, qtbot)
    for _ in range(2):
        window.bound[command].trigger()
        qtbot.wait(20)
        assert_each_panel_is_in_one_row(window)
