"""Text of 150 % and 200 %: nothing is cut without a sign at 1280x720, panels and dialogs work."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF, QGuiApplication
from PySide6.QtWidgets import QAbstractItemView, QDialog, QLabel, QScrollArea, QTableView

from devtools_app.actions.keys import sheet_sections
from devtools_app.appearance.look import BASE_SIZE
from devtools_app.appearance.slices import Slices
from devtools_app.appearance.theme import Theme
from devtools_app.dialogs.key_sheet import KeySheet
from devtools_app.jobs.latest import Latest
from devtools_app.sample_data import LOOP
from devtools_app.shell.toolbar import RecompileButton
from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import Select
from devtools_app.state.transitions import add_session
from devtools_app.views import VIEWS
from devtools_app.views.compare import ComparePane
from devtools_app.widgets.empty_state import EmptyState
from devtools_app.widgets.fact_panel import FactPanel
from devtools_app.widgets.filter_box import FilterBox
from devtools_app.widgets.form_scroll import FormScroll
from devtools_app.widgets.table_view import _PLAIN_PAD, TableView
from devtools_app.widgets.value_label import ValueLabel
from inspector.files.load import load_session
from inspector.graph.model_graph import COMPILED, model_graph
from inspector.tables.facts import Fact, FactGroup, FactSheet
from inspector.tables.files import file_table
from inspector.tables.selection import Selection, SelectionKind
from tests.app.clipped import cut_texts
from tests.app.sessions import DATA
from tests.app.window_views import host_of, open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]
DOUBLE = 2 * BASE_SIZE


def still(window: MainWindow, qtbot) -> None:
    for kind in (Latest, Slices):
        qtbot.waitUntil(lambda kind=kind: not any(one.busy for one in window.findChildren(kind)))
    qtbot.waitUntil(lambda: not window.theme.busy)
    qtbot.wait(60)


def test_no_words_are_cut_at_twice_the_size_in_a_small_window(make_window, qtbot) -> None:
    window = make_window()
    window.resize(1280, 720)
    open_sample(window, qtbot, LOOP)
    window.commands.set_font_size(DOUBLE)
    found: dict[str, list[str]] = {}
    for spec in VIEWS:
        window.show_view(spec.name)
        still(window, qtbot)
        cut = cut_texts(host_of(window, spec.name))
        if cut:
            found[spec.name] = cut
    around = [
        one for one in (window.top_bar, window.fold_bar, window.status) for one in cut_texts(one)
    ]
    assert (found, around) == ({}, [])
    assert window.width() <= 1280
    assert window.height() <= 720


@pytest.mark.parametrize("size", [BASE_SIZE, 20, DOUBLE])
def test_main_action_and_the_fields_of_a_run_stay_in_sight(make_window, qtbot, size: int) -> None:
    window = make_window()
    window.resize(1280, 720)
    open_sample(window, qtbot, LOOP)
    window.commands.set_font_size(size)
    window.show_view("run")
    still(window, qtbot)
    action = window.top_bar.findChild(RecompileButton)
    assert action.isVisible()
    right = action.mapTo(window.top_bar, action.rect().topRight()).x()
    assert right < window.top_bar.width()
    assert action.width() >= action.minimumSizeHint().width()
    assert action.text().startswith("Recompile")
    for scroll in host_of(window, "run").findChildren(FormScroll):
        assert scroll.widget().width() <= scroll.viewport().width()
        assert scroll.widget().minimumSizeHint().width() <= scroll.viewport().width()
    window.commands.set_font_size(BASE_SIZE)


@pytest.mark.parametrize("size", [20, DOUBLE])
def test_no_words_of_the_start_page_are_cut(make_window, qtbot, size: int) -> None:
    window = make_window()
    window.resize(1280, 720)
    window.commands.set_font_size(size)
    still(window, qtbot)
    assert cut_texts(window._start_page) == []


def _wait_for_facts(qtbot, panel: FactPanel) -> None:
    """Wait until all facts are there and have found their places."""
    filling = panel.findChild(Slices)
    qtbot.waitUntil(lambda: not filling.busy)
    qtbot.wait(30)


@pytest.mark.parametrize("size", [20, DOUBLE])
def test_values_of_the_node_panel_wrap(qtbot, theme: Theme, size: int) -> None:
    theme.set_size(size)
    panel = FactPanel(theme, "Node")
    qtbot.addWidget(panel)
    facts = (
        Fact("partitioner", "XnnpackPartitioner: no_rule_for_this_operator", badge="measured"),
        Fact("rule", "XnnpackPartitioner"),
        Fact("in 0", "f32 [1, 12, 1024, 1024] 48 MiB", link="x"),
    )
    panel.show_sheet(FactSheet("aten.topk", "head", (FactGroup("Why", facts),)))
    panel.resize(300, 500)
    panel.show()
    _wait_for_facts(qtbot, panel)
    assert cut_texts(panel) == []
    assert panel.horizontalScrollBar().maximum() == 0


@pytest.mark.parametrize("size", [BASE_SIZE, 20, DOUBLE])
@pytest.mark.parametrize("width", [260, 300, 400])
@pytest.mark.parametrize(
    "label", ["together", "Batch Matrix Multiply (NC, F32) GEMM #1", "aten_view_copy_default_10"]
)
def test_long_labels_leave_room_for_their_values(
    qtbot, theme: Theme, label: str, width: int, size: int
) -> None:
    theme.set_size(size)
    panel = FactPanel(theme, "Node")
    qtbot.addWidget(panel)
    facts = (Fact(label, "12.34 µs"), Fact(label, "7.1 µs", badge="inferred"))
    panel.show_sheet(FactSheet("aten.bmm", "attn", (FactGroup("Time", facts),)))
    panel.resize(width, 500)
    panel.show()
    qtbot.waitUntil(lambda: not theme.busy)
    _wait_for_facts(qtbot, panel)
    values = panel.findChildren(ValueLabel)
    assert len(values) == 2
    for value in values:
        shown = value.visibleRegion().boundingRect().width()
        assert shown >= value.fontMetrics().horizontalAdvance("12.34"), (value.text(), shown)
    assert panel.horizontalScrollBar().maximum() == 0


def test_units_of_rates_are_not_broken(qtbot, theme: Theme) -> None:
    label = ValueLabel("220.4 MFLOP/s, 265 MB/s")
    qtbot.addWidget(label)
    theme.set_size(BASE_SIZE)
    label.setFont(theme.mono())
    one_line = label.fontMetrics().height()
    unit = ValueLabel("MB/s")
    qtbot.addWidget(unit)
    unit.setFont(theme.mono())
    assert unit.heightForWidth(unit.fontMetrics().horizontalAdvance("MB/") + 1) < 2 * one_line
    label.setSelection(0, len(label.text()))
    label.copy()
    assert QGuiApplication.clipboard().text() == "220.4 MFLOP/s, 265 MB/s"


@pytest.mark.parametrize("size", [BASE_SIZE, 20, DOUBLE])
@pytest.mark.parametrize("room", [(1278, 692), (1280, 720), (1280, 800), (1440, 900)])
def test_keys_fit_their_window(qtbot, theme: Theme, size: int, room: tuple[int, int]) -> None:
    theme.set_size(size)
    parent = QDialog()
    qtbot.addWidget(parent)
    parent.resize(*room)
    sheet = KeySheet(theme, parent, sheet_sections())
    sheet.show()
    qtbot.wait(30)
    area = sheet.findChild(QScrollArea)
    assert sheet.width() <= room[0]
    assert sheet.height() <= room[1]
    assert area.horizontalScrollBar().maximum() == 0
    assert cut_texts(sheet) == []
    if size == BASE_SIZE:
        assert sheet.columns >= 3
        assert area.verticalScrollBar().maximum() == 0
    sheet.close()


@pytest.mark.parametrize(("size", "hidden"), [(BASE_SIZE, False), (DOUBLE, True)])
def test_files_keep_their_names_before_their_sizes(make_window, qtbot, size, hidden) -> None:
    window = make_window()
    window.resize(1280, 720)
    open_sample(window, qtbot, LOOP[:2])
    window.commands.set_font_size(size)
    still(window, qtbot)
    grid = host_of(window, "files").findChild(QTableView)
    assert grid.isColumnHidden(1) is hidden
    assert grid.columnWidth(0) > 80


@pytest.mark.parametrize("sizes", [(BASE_SIZE, 20), (20, BASE_SIZE)])
def test_operators_have_room_beside_the_node_panel(make_window, qtbot, sizes) -> None:
    """The runs of a row give way to the columns, which are fitted to the text again."""
    window = make_window()
    window.resize(1280, 800)
    open_sample(window, qtbot, LOOP)
    state = window.store.state
    graph = model_graph(state.session, state.method)
    node = graph.nodes[len(graph.nodes) // 2]
    where = (state.method, COMPILED, node.name)
    window.router(Select(Selection(SelectionKind.NODE, *where, instruction=node.instruction)))
    window.show_view("operators")
    for size in sizes:
        window.commands.set_font_size(size)
        still(window, qtbot)
        pane = host_of(window, "operators").view
        assert pane._has_samples
        assert pane.plot.isVisible() is (size == BASE_SIZE)
        rows = next(one for one in pane.panel.findChildren(QAbstractItemView) if one.isVisible())
        assert rows.horizontalScrollBar().maximum() == 0
        box = pane.panel.findChild(FilterBox)
        assert box.width() >= box.fontMetrics().horizontalAdvance("mean>0.1")


@pytest.mark.parametrize("is_shown", [True, False])
def test_side_columns_of_a_wide_window_grow_with_the_text(make_window, qtbot, is_shown) -> None:
    window = make_window()
    window.resize(2560, 1440)
    open_sample(window, qtbot, LOOP)
    state = window.store.state
    node = model_graph(state.session, state.method).nodes[3]
    where = (state.method, COMPILED, node.name)
    if is_shown:
        window.router(Select(Selection(SelectionKind.NODE, *where, instruction=node.instruction)))
        still(window, qtbot)
    window.commands.set_font_size(DOUBLE)
    still(window, qtbot)
    window.router(Select(Selection(SelectionKind.NODE, *where, instruction=node.instruction)))
    still(window, qtbot)
    assert window.docks.by_name["node"].isVisible()
    assert cut_texts(host_of(window, "node")) == []
    assert window.docks.by_name["node"].width() >= 1.8 * 294
    assert window.docks.by_name["files"].width() >= 1.8 * 216


@pytest.mark.parametrize("size", range(10, 31))
def test_sizes_of_files_are_never_cut(qtbot, theme: Theme, size: int) -> None:
    table = TableView(theme, "files")
    qtbot.addWidget(table)
    table.set_plain()
    files = file_table(load_session([str(DATA / "corpus/v1.5.1/convnet_xnnpack")]))
    table.show_table(replace(files, columns=(files.columns[0], files.columns[2])))
    table.resize(500, 200)
    table.show()
    theme.set_size(size)
    qtbot.waitUntil(lambda: not theme.busy)
    metrics = QFontMetricsF(theme.mono())
    room = table._grid.columnWidth(1) - _PLAIN_PAD
    texts = [table.rows.text(row, 1) for row in range(table.rows.length)]
    assert [metrics.elidedText(one, Qt.TextElideMode.ElideRight, room) for one in texts] == texts


@pytest.mark.parametrize("view", ["calls", "gates", "compile"])
def test_an_empty_page_keeps_its_text_at_twice_the_size(make_window, qtbot, view: str) -> None:
    window = make_window()
    window.resize(1280, 720)
    open_sample(window, qtbot, LOOP)
    window.commands.set_font_size(DOUBLE)
    window.show_view(view)
    still(window, qtbot)
    shown = next(one for one in host_of(window, view).findChildren(EmptyState) if one.isVisible())
    texts = [one.text() for one in shown.findChildren(QLabel) if one.isVisible() and one.text()]
    assert len(texts) > 1  # the title and what would fill the page


@pytest.mark.parametrize("size", [BASE_SIZE, DOUBLE])
def test_both_tables_of_a_comparison_have_rows_below_its_verdict(
    make_window, qtbot, size: int
) -> None:
    window = make_window()
    window.resize(1280, 720)
    open_sample(window, qtbot, LOOP)
    copied = tuple(window.store.state.sessions[0].paths)
    window.store.put(add_session(window.store.state, load_session(list(copied)), copied))
    window.commands.set_font_size(size)
    window.show_view("compare")
    still(window, qtbot)
    pane = host_of(window, "compare").findChild(ComparePane)
    assert pane is not None
    assert pane.headline.font().pixelSize() > pane.about.font().pixelSize()
    for table in (pane.summary, pane.details):
        grid = table.findChild(QTableView)
        assert grid is not None
        assert grid.viewport().height() >= 2 * grid.rowHeight(0)
