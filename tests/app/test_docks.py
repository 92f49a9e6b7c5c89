"""The panels: one row of tabs a place, whatever is hidden, shown or put back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTabBar

from devtools_app.shell.window import MainWindow
from devtools_app.views.spec import Area
from tests.app.window_views import SAMPLE_FILES, open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]

# A process of its own: with the theme set before the window, as the program does.
START = """
import json, sys
from devtools_app.screenshots import window as shots
shots.use_no_screen()
from tests.app.test_docks import rows_of_panels, show_all
with shots.open_window(sys.argv[1:]) as window:
    show_all(window)
    shots.settle(window)
    print(json.dumps(rows_of_panels(window)))
"""


def show_all(window: MainWindow) -> None:
    """Show every panel at the sides; by default those at the right are hidden."""
    for dock in window.docks.by_name.values():
        if dock.host.spec.area is not Area.BOTTOM:
            dock.show()


def rows_of_panels(window: MainWindow) -> list[list[str]]:
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    rows = [bar for bar in window.findChildren(QTabBar, options=direct) if bar.isVisible()]
    return [[row.tabText(tab) for tab in range(row.count())] for row in rows if row.count()]


def assert_each_panel_is_in_one_row(rows: list[list[str]]) -> None:
    counted = Counter(title for row in rows for title in row)
    assert counted, "panels share places"
    assert {title: count for title, count in counted.items() if count > 1} == {}


def test_docks_of_the_program_have_one_row_of_tabs_each() -> None:
    command = [sys.executable, "-c", START, *SAMPLE_FILES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert_each_panel_is_in_one_row(json.loads(done.stdout))


def test_the_command_of_a_panel_behind_another_tab_brings_it_up(make_window, qtbot) -> None:
    window = make_window()
    open_sample(window, qtbot)
    recipe, notes = (window.docks.by_name[name] for name in ("recipe", "notes"))
    recipe.bring_up()
    notes.bring_up()
    assert notes in window.tabifiedDockWidgets(recipe)
    qtbot.waitUntil(lambda: notes.in_front and not recipe.in_front)
    command = next(one for one in window.all_actions() if one.parent() is recipe)
    assert not command.isChecked()
    command.trigger()
    qtbot.waitUntil(lambda: recipe.in_front)
    command = next(one for one in window.all_actions() if one.parent() is recipe)
    assert command.isChecked()
    command.trigger()
    assert recipe.isHidden()
    command.trigger()
    qtbot.waitUntil(lambda: recipe.in_front)


def test_docks_put_back_have_one_row_of_tabs_each(make_window, qtbot) -> None:
    window = make_window()
    open_sample(window, qtbot)
    for _ in range(2):
        window.bound["reset_layout"].trigger()
        show_all(window)
        qtbot.wait(20)
        assert_each_panel_is_in_one_row(rows_of_panels(window))
