"""Text twice as large in a small window: what is beside each other, and columns without room."""

from __future__ import annotations

from typing import TypeVar

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QHeaderView, QScrollArea

from devtools_app.appearance.look import BASE_SIZE
from devtools_app.appearance.slices import Slices
from devtools_app.jobs.latest import Latest
from devtools_app.sample_data import LOOP
from devtools_app.shell.window import MainWindow
from devtools_app.views.pane import Pane
from devtools_app.views.size import SizePane
from devtools_app.views.structure import StructurePane
from devtools_app.widgets.folded_columns import FoldedColumns
from tests.app.window_views import open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]


P = TypeVar("P", bound=Pane)


def pane_of(window: MainWindow, qtbot, name: str, kind: type[P]) -> P:
    window.resize(1280, 720)
    open_sample(window, qtbot, LOOP[:2])
    window.show_view(name)
    still(window, qtbot)
    return next(host.view for host in window.hosts if isinstance(host.view, kind))


def still(window: MainWindow, qtbot) -> None:
    for kind in (Latest, Slices):
        qtbot.waitUntil(lambda kind=kind: not any(one.busy for one in window.findChildren(kind)))
    qtbot.waitUntil(lambda: not window.theme.busy)
    qtbot.wait(60)


def test_structure_needs_no_scroll_bar_and_says_which_columns_it_hides(make_window, qtbot) -> None:
    window = make_window()
    found = pane_of(window, qtbot, "structure", StructurePane)
    button = found.findChildren(FoldedColumns)[0]
    for size, hidden in ((BASE_SIZE, 0), (2 * BASE_SIZE, 3), (BASE_SIZE, 0)):
        window.theme.set_size(size)
        still(window, qtbot)
        for view in (found.tree, found.hex):
            assert view.horizontalScrollBar().maximum() == 0, (size, view.accessibleName())
        assert button.isVisible() is bool(hidden)
        assert not hidden or button.text() == f"+{hidden}"


def test_structure_shows_a_hidden_value_above_the_lines_and_on_request(make_window, qtbot) -> None:
    window = make_window()
    found = pane_of(window, qtbot, "structure", StructurePane)
    window.theme.set_size(2 * BASE_SIZE)
    still(window, qtbot)
    top = found.model.index(0, 0)
    row = next(row for row in range(9) if found.model.index(row, 0, top).data() == "header")
    header = found.model.index(row, 0, top)
    found.model.fetchMore(header)
    field = found.model.index(0, 0, header)
    found.tree.setCurrentIndex(field)
    value = field.siblingAtColumn(2).data()
    assert value
    assert value in found.note.text().split(" · ")
    menu = found.findChildren(FoldedColumns)[0].columns_menu()
    assert [one.isChecked() for one in menu.actions()] == [True, True, False, False, False]
    menu.actions()[2].trigger()
    assert not found.tree.isColumnHidden(2)


@pytest.mark.parametrize("factor", [1, 2])
def test_names_of_parts_differ_beside_the_map_of_sizes(make_window, qtbot, factor: int) -> None:
    window = make_window()
    found = pane_of(window, qtbot, "size", SizePane)
    window.theme.set_size(factor * BASE_SIZE)
    still(window, qtbot)
    heads = found.table.findChildren(QHeaderView)
    head = next(one for one in heads if one.orientation() is Qt.Orientation.Horizontal)
    letter = QFontMetrics(window.theme.mono()).horizontalAdvance("m")
    assert head.sectionSize(0) >= 24 * letter
    assert found.canvas.width() >= 0.35 * found.splitter.width()


@pytest.mark.parametrize("name", ["run", "sweep"])
def test_forms_without_room_beside_a_panel_can_be_scrolled_to_their_ends(
    make_window, qtbot, name: str
) -> None:
    window = make_window()
    window.resize(1280, 720)
    open_sample(window, qtbot, LOOP[:2])
    window.show_view("recipe")
    window.theme.set_size(2 * BASE_SIZE)
    window.show_view(name)
    still(window, qtbot)
    page = next(host.view for host in window.hosts if host.spec.name == name)
    assert page is not None
    areas = [one for one in page.findChildren(QScrollArea) if one.isVisible() and one.widget()]
    assert areas
    for area in areas:
        hidden = area.widget().width() > area.viewport().width()
        assert area.horizontalScrollBar().isVisible() is hidden


def test_text_smaller_than_normal_after_larger_leaves_the_columns_as_they_are(
    make_window, qtbot
) -> None:
    window = make_window()
    window.resize(1440, 900)
    open_sample(window, qtbot, LOOP[:2])
    columns = [window.docks.by_name["files"], window.docks.by_name["findings"]]
    for size in (BASE_SIZE, BASE_SIZE + 3, BASE_SIZE):
        window.theme.set_size(size)
        still(window, qtbot)
    before = [one.width() for one in columns]
    window.theme.set_size(BASE_SIZE - 2)  # an exception in it fails the test
    still(window, qtbot)
    assert [one.width() for one in columns] == before
