"""The widgets that views are made of, driven by keys and mouse."""

from __future__ import annotations

import logging
import threading

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt, QtMsgType
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QHeaderView,
    QLabel,
    QMenu,
    QPushButton,
    QTableView,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.look import ThemeMode
from devtools_app.shell.focus_areas import stops
from devtools_app.viewmodels.entries import ListEntry
from devtools_app.viewmodels.python_tokens import ROOT, line_tokens
from devtools_app.widgets.badge import Badge
from devtools_app.widgets.busy import Busy
from devtools_app.widgets.code_view import CodeView
from devtools_app.widgets.dot_list import DotList
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.fact_panel import FactPanel
from devtools_app.widgets.filter_box import FilterBox
from devtools_app.widgets.log_panel import LogPanel, LogStore, log_qt_message
from devtools_app.widgets.message_strip import MessageStrip
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.tree_view import TreeView
from devtools_app.widgets.value_label import ValueLabel
from inspector.tables.facts import Fact, FactGroup, FactSheet
from inspector.tables.grouping import GroupKey, group_rows
from inspector.tables.row_order import RowOrder
from inspector.tables.table import Table
from tests.app.conftest import interactive
from tests.app.tables import operators

pytestmark = [pytest.mark.gui, pytest.mark.slow]


@pytest.fixture
def table(qtbot, theme) -> TableView:
    view = TableView(theme, "operators")
    qtbot.addWidget(view)
    view.resize(900, 300)
    view.show_table(operators())
    view.show()
    return view


def grid(view: TableView) -> QTableView:
    return view.findChild(QTableView)


def field(view) -> FilterBox:
    return view.findChild(FilterBox)


def names(view: TableView) -> list[str]:
    return [view.rows.text(row, 0) for row in view.shown_rows()]


def test_table_heading_click_sorts_three_ways(table, qtbot):
    head = grid(table).horizontalHeader()
    at = QPoint(head.sectionViewportPosition(2) + 10, 8)
    for first in ("Erf", "relu", "conv_10"):
        qtbot.mouseClick(head.viewport(), Qt.MouseButton.LeftButton, pos=at)
        assert names(table)[0] == first


def test_table_shift_click_sorts_by_two_columns(table, qtbot):
    head = grid(table).horizontalHeader()
    places = [QPoint(head.sectionViewportPosition(n) + 10, 8) for n in (1, 2)]
    qtbot.mouseClick(head.viewport(), Qt.MouseButton.LeftButton, pos=places[0])
    QTest.keyPress(head, Qt.Key.Key_Shift, Qt.KeyboardModifier.ShiftModifier)
    table.sort_by(2, descending=True, more=True)
    QTest.keyRelease(head, Qt.Key.Key_Shift)
    assert names(table) == ["unattributed", "Erf", "add", "conv_10", "conv_2", "relu"]
    assert "1" in table.model.headerData(1, Qt.Orientation.Horizontal)


def test_table_key_s_sorts_by_column_of_cursor(table, qtbot):
    grid(table).setFocus()
    grid(table).setCurrentIndex(table.model.index(0, 3))
    qtbot.keyClick(grid(table), Qt.Key.Key_S)
    assert names(table)[0] == "unattributed"


def test_table_filter_waits_then_counts_and_tells(table, qtbot):
    with qtbot.waitSignal(table.filter_changed) as told:
        qtbot.keyClicks(field(table), "conv")
        assert len(names(table)) == 6
    assert told.args == ["conv"]
    assert names(table) == ["conv_10", "conv_2"]
    assert "2 of 5 operators" in [label.text() for label in table.findChildren(QLabel)]


def test_table_filter_bad_expression_is_said_and_rows_stay(table, qtbot):
    qtbot.keyClicks(field(table), "/(/")
    qtbot.waitUntil(lambda: "not a regular expression" in table._count.text())
    assert len(names(table)) == 6
    assert field(table).property("wrong")
    qtbot.keyClick(field(table), Qt.Key.Key_Escape)
    assert table._count.text() == "5 operators"
    assert not field(table).property("wrong")


def test_table_filter_without_match_says_so(table):
    table.set_filter_text("zzz")
    assert table._message is not None
    labels = table._message.findChildren(QLabel)
    assert "No row matches the filter" in [one.text() for one in labels]
    table.set_filter_text("")
    assert grid(table).isVisible()


def test_table_filter_from_outside_tells_nobody(table, qtbot):
    with qtbot.assertNotEmitted(table.filter_changed, wait=200):
        table.set_filter_text("relu")
    assert field(table).text() == "relu"
    assert names(table) == ["relu"]


def test_table_cursor_tells_row_of_table_not_of_screen(table, qtbot):
    table.sort_by(2, descending=True)
    grid(table).setFocus()
    grid(table).setCurrentIndex(QModelIndex())
    with qtbot.waitSignal(table.row_chosen) as told:
        qtbot.keyClick(grid(table), Qt.Key.Key_Down)
    assert told.args == [2]
    with qtbot.waitSignal(table.row_activated) as told:
        qtbot.keyClick(grid(table), Qt.Key.Key_Return)
    assert told.args == [2]


def test_table_focus_alone_chooses_nothing(table, qtbot):
    with qtbot.assertNotEmitted(table.row_chosen, wait=50):
        grid(table).setFocus(Qt.FocusReason.TabFocusReason)


def test_table_selection_from_outside_tells_nobody(table, qtbot):
    with qtbot.assertNotEmitted(table.row_chosen, wait=50):
        assert table.show_current("e")
        assert not table.show_current("nobody")
    assert table.current_row() == -1


def test_table_keeps_cursor_through_sort_filter_and_new_table(table):
    table.show_current("c")
    table.sort_by(0, descending=False)
    assert table.current_key() == "c"
    table.set_filter_text("e")
    assert table.current_key() == "c"
    table.show_table(operators())
    assert table.current_key() == "c"
    assert field(table).text() == "e"


def test_table_copy_is_exact(table, qtbot):
    table.show_current("a")
    qtbot.keyClick(grid(table), Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().split("\n")
    assert lines[0].startswith("operator\tmodule\tp50 (ns)")
    assert lines[1].split("\t")[2] == "212000"


@pytest.mark.parametrize("suffix", [".tsv", ".csv"])
def test_table_export_writes_shown_rows_in_order(table, qtbot, tmp_path, suffix):
    table.sort_by(2, descending=True)
    table.set_filter_text("conv")
    path = tmp_path / f"out{suffix}"
    table.ask_path = lambda *_args: path
    table.export()
    qtbot.waitUntil(path.exists)
    rows = path.read_text(encoding="utf-8").splitlines()
    assert [row.replace(",", "\t").split("\t")[0] for row in rows] == [
        "operator",
        "conv_10",
        "conv_2",
    ]
    assert list(tmp_path.glob("*.part")) == []


def test_table_export_to_bad_place_says_so(table, qtbot, tmp_path, monkeypatch):
    from PySide6.QtWidgets import QMessageBox

    said = []
    monkeypatch.setattr(QMessageBox, "warning", lambda *args: said.append(args[2]))
    done = []
    table.export_to(tmp_path / "nowhere" / "x.tsv", done.append)
    qtbot.waitUntil(lambda: bool(said))
    assert "nowhere" in said[0]
    assert not done


def test_table_menu_offers_copy_filter_sort_columns_export(table, qtbot):
    table.show_current("a")
    menu = table._menu()
    texts = [action.text() for action in menu.actions()]
    assert any(text.startswith("Filter by “conv_10”") for text in texts)
    assert any(text.startswith("Export operators") for text in texts)
    next(one for one in menu.actions() if one.text().startswith("Filter by")).trigger()
    assert names(table) == ["conv_10"]
    columns = next(one.menu() for one in menu.actions() if one.menu() is not None)
    columns.actions()[1].trigger()
    assert grid(table).isColumnHidden(1)
    menu.close()


def test_table_context_menu_opens_by_keyboard(table, monkeypatch):
    opened = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, at: opened.append(menu.actions()[-1].text()))
    table.show_current("a")
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(5, 5), QPoint(5, 5))
    QGuiApplication.sendEvent(grid(table).viewport(), event)
    assert opened == ["Columns"]


def test_table_step_walks_and_stops_at_the_end(table):
    assert table.step(1)
    assert table.current_row() == 0
    assert not table.step(-1)


def test_table_of_nothing_shows_what_it_needs(table):
    table.set_need(Need("No trace", "Open an ETDump."))
    table.show_table(Table())
    assert not grid(table).isVisible()
    assert table._message is not None
    assert table._message.accessibleName() == "No trace. Open an ETDump."


def test_table_plain_has_no_headings(qtbot, theme):
    view = TableView(theme, "files")
    qtbot.addWidget(view)
    view.set_plain()
    view.show_table(operators())
    view.show()
    assert not grid(view).horizontalHeader().isVisible()
    assert grid(view).horizontalHeader().sectionResizeMode(0) is QHeaderView.ResizeMode.Stretch


@pytest.fixture
def tree(qtbot, theme) -> TreeView:
    view = TreeView(theme, "operators by module")
    qtbot.addWidget(view)
    view.resize(700, 300)
    order = RowOrder(operators())
    view.show_tree(group_rows(order, 1, order.rows()), open_levels=0)
    view.show()
    return view


def test_tree_opens_the_way_to_a_key(tree):
    assert tree.show_current("d")
    qt = tree.findChild(QTreeView)
    assert qt.isExpanded(qt.currentIndex().parent())
    assert tree.current_key() == "d"
    assert not tree.show_current("nobody")


def test_tree_counts_leaves_and_filters(tree):
    assert tree._count.text() == "5 operators"
    tree.set_filter_text("conv_2")
    assert tree._count.text() == "1 of 5 operators"
    assert tree.rows.text(tree.shown_rows()[-1], 0) == "conv_2"
    qt = tree.findChild(QTreeView)
    assert qt.isExpanded(tree.model.index(0, 0))


def test_tree_arrows_tell_and_step_walks(tree, qtbot):
    qt = tree.findChild(QTreeView)
    with qtbot.waitSignal(tree.row_chosen) as told:
        assert tree.step(1)
    assert tree.rows.key(told.args[0]) == GroupKey("conv1")
    qtbot.keyClick(qt, Qt.Key.Key_Right)
    with qtbot.waitSignal(tree.row_chosen) as told:
        qtbot.keyClick(qt, Qt.Key.Key_Down)
    assert tree.rows.key(told.args[0]) == "a"
    with qtbot.waitSignal(tree.row_activated):
        qtbot.keyClick(qt, Qt.Key.Key_Return)


def test_tree_heading_sorts(tree):
    tree._heading_clicked(2)
    assert tree.rows.text(tree.shown_rows()[0], 0).startswith("act")
    tree.expand_all()
    tree.collapse_all()
    tree._heading_clicked(2)
    tree._heading_clicked(2)
    assert tree.rows.text(tree.shown_rows()[0], 0).startswith("conv1")


def test_dot_list_tells_user_moves_only(qtbot, theme):
    view = DotList(theme, "Findings")
    qtbot.addWidget(view)
    view.resize(220, 300)
    entries = [
        ListEntry("45 % of the time is in 2 operators that are not delegated", "erf", "bad", "bad")
    ]
    entries.append(ListEntry("Peak 1.11 MiB", tone="#0072b2", mark="A"))
    view.show()
    with qtbot.assertNotEmitted(view.chosen):
        view.show_entries(entries, 0)
    with qtbot.waitSignal(view.chosen) as told:
        qtbot.keyClick(view, Qt.Key.Key_Down)
    assert told.args == [1]
    with qtbot.waitSignal(view.opened):
        qtbot.keyClick(view, Qt.Key.Key_Return)
    said = view.model().index(0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert said.startswith("bad, 45 %")
    tall = view.sizeHintForIndex(view.model().index(0)).height()
    assert tall > view.sizeHintForIndex(view.model().index(1)).height()


def test_code_view_numbers_and_marks(qtbot, theme):
    view = CodeView(theme)
    qtbot.addWidget(view)
    view.resize(400, 120)
    view.show_code(
        ["def f(x):", '    """doc', '    more"""', "    return x  # end"] * 20, 41, [60, 999]
    )
    view.show()
    assert len(view.extraSelections()) == 1
    assert view.textCursor().blockNumber() == 19
    assert view.line_number_width() > 0
    assert not view.grab().isNull()


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("def f(self, x=1): # hi", ["keyword", "definition", "constant", "number", "comment"]),
        ('s = "a # b"', ["string"]),
        ("@torch.no_grad()", ["decorator"]),
        ("x = 'open", ["string"]),
        ('y = """a""" + f("b")', ["string", "string"]),
        ("", []),
    ],
)
def test_python_tokens_of_a_line(line, kinds):
    tokens, states = line_tokens(line)
    assert [token.kind for token in tokens] == kinds
    assert states == ROOT
    assert all(token.start + token.length <= len(line) for token in tokens)


def test_python_tokens_follow_triple_quotes():
    tokens, states = line_tokens('x = """start')
    assert states != ROOT
    assert tokens[-1].kind == "string"
    tokens, states = line_tokens("still # text", states)
    assert [token.kind for token in tokens] == ["string"]
    tokens, states = line_tokens('end""" + 1', states)
    assert (states, [token.kind for token in tokens]) == (ROOT, ["string", "number"])


def test_code_view_shows_a_large_file_at_once_and_colours_what_is_seen_of_it(qtbot, theme):
    view = CodeView(theme)
    qtbot.addWidget(view)
    lines = ["x = 1  # one", '"""open', 'closed"""'] * 2000
    view.show_code(lines, first=11, marked=(5011,))
    assert view.blockCount() < len(lines)  # the rest would be a wait
    qtbot.waitUntil(lambda: view.blockCount() == len(lines), timeout=10_000)
    assert view.toPlainText() == "\n".join(lines)
    assert view.textCursor().blockNumber() == 5000
    last = view.document().lastBlock()
    assert not last.layout().formats()
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())
    qtbot.waitUntil(lambda: len(last.layout().formats()) == 1, timeout=10_000)
    assert last.layout().formats()[0].format.foreground().color() == theme.palette.good
    view.verticalScrollBar().setValue(0)
    first = view.document().firstBlock().layout()
    qtbot.waitUntil(lambda: [one.length for one in first.formats()] == [1, 5])
    assert not view.document().findBlockByNumber(2500).layout().formats()  # never seen
    theme.set_mode(ThemeMode.DARK)

    def restyled() -> bool:
        ranges = last.layout().formats()  # they end with the list
        return ranges[0].format.foreground().color() == theme.palette.good

    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())
    qtbot.waitUntil(restyled)


@pytest.mark.parametrize("mode", [ThemeMode.DARK, ThemeMode.LIGHT])
def test_code_stays_where_it_was_scrolled_when_the_theme_changes(qtbot, theme, mode):
    theme.set_mode(ThemeMode.LIGHT if mode is ThemeMode.DARK else ThemeMode.DARK)
    view = CodeView(theme)
    qtbot.addWidget(view)
    view.resize(400, 200)
    view.show()
    view.show_code([f"x = {one}" for one in range(400)], first=1, marked=(300,))
    view.verticalScrollBar().setValue(20)

    def highlight() -> str:
        (one,) = view.extraSelections()
        return one.format.background().color().name()

    before = highlight()
    theme.set_mode(mode)
    qtbot.waitUntil(lambda: highlight() != before)
    qtbot.waitUntil(lambda: not theme.busy)
    assert view.verticalScrollBar().value() == 20


def test_log_panel_shows_messages_from_any_thread(qtbot, theme):
    store, before = LogStore(), logging.getLogger().level
    store.attach()
    panel = LogPanel(theme, store)
    qtbot.addWidget(panel)
    panel.show()
    try:
        with qtbot.waitSignal(store.added):
            worker = threading.Thread(target=lambda: logging.getLogger("w").warning("from afar"))
            worker.start()
        worker.join()
        log_qt_message(QtMsgType.QtWarningMsg, None, "hello qt")
        qtbot.waitUntil(lambda: len(store.lines) == 2)
        panel.copy_all()
        assert "from afar" in QGuiApplication.clipboard().text()
        assert "hello qt" in QGuiApplication.clipboard().text()
        panel.clear()
        assert panel._count.text().startswith("0 messages")
    finally:
        store.detach()
    assert logging.getLogger().level == before


@pytest.mark.parametrize(
    "text",
    [
        "This plugin does not support propagateSizeHints()",
        'Could not find accessible on path: "/org/a11y/atspi/accessible/2147483904"',
    ],
)
def test_log_drops_what_the_platform_says_of_itself(caplog, text: str) -> None:
    log_qt_message(QtMsgType.QtWarningMsg, None, text)
    assert caplog.records == []


def test_busy_is_quiet_first_then_talks(qtbot):
    busy = Busy()
    qtbot.addWidget(busy)
    busy.start("reading model.pte")
    assert busy.running
    assert not busy.isVisible()
    qtbot.waitUntil(busy.isVisible, timeout=2000)
    cancel = busy.findChild(QPushButton)
    assert not cancel.isVisible()
    qtbot.waitUntil(cancel.isVisible, timeout=3000)
    busy.progress("reading run.etdp", 0.5)
    with qtbot.waitSignal(busy.cancelled):
        qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    busy.stop()
    assert not busy.isVisible()


def test_badge_without_text_is_not_there(qtbot, theme):
    badge = Badge(theme, "exact", "good", "matched by instruction")
    qtbot.addWidget(badge)
    assert badge.accessibleName() == "exact: matched by instruction"
    assert badge.sizeHint().width() > 20
    badge.set_badge("")
    assert badge.isHidden()


def sheet() -> FactSheet:
    facts = (Fact("p50", "0.548 ms", "548,123 ns"), Fact("memory", "arena 1", link=("arena", 1)))
    source = FactGroup("Source", code=("def f():", "    pass"), first_line=4, marked=5)
    notice = FactGroup("", notice="Why not delegated", text="no rule")
    return FactSheet("aten.erf", "act", (notice, FactGroup("Time", facts), source))


def test_fact_panel_links_lead_somewhere_and_copy_is_exact(qtbot, theme):
    panel = FactPanel(theme, "Node")
    qtbot.addWidget(panel)
    panel.show_sheet(sheet())
    panel.show()
    qtbot.waitUntil(lambda: panel.findChild(QPushButton) is not None)
    with qtbot.waitSignal(panel.followed) as told:
        qtbot.mouseClick(panel.findChild(QPushButton), Qt.MouseButton.LeftButton)
    assert told.args == [("arena", 1)]
    panel.copy()
    assert "p50\t548,123 ns" in QGuiApplication.clipboard().text()
    panel.show_sheet(FactSheet())
    assert panel.sheet == FactSheet()


def test_tab_passes_over_plain_facts_and_the_arrows_go_through_them(qtbot, theme):
    panel = FactPanel(theme, "Node")
    qtbot.addWidget(panel)
    rows = tuple(
        Fact(f"fact {at}", str(at), link="there" if at == 30 else None) for at in range(60)
    )
    groups = FactGroup("Time", rows[:40]), FactGroup("", rows[40:])
    panel.show_sheet(FactSheet("add", "", groups))
    panel.resize(300, 200)
    panel.show()
    qtbot.waitUntil(lambda: len(panel.findChildren(ValueLabel)) == 59)
    with qtbot.waitActive(panel):
        panel.activateWindow()
    panel.setFocus()
    assert [one.accessibleName() for one in stops(panel)] == ["fact 30: 30"]  # the link
    down = [(Qt.Key.Key_Down, at) for at in range(60)]
    up = [(Qt.Key.Key_Up, at) for at in range(58, -1, -1)]
    for key, number in (*down, (Qt.Key.Key_Down, 59), *up):
        qtbot.keyClick(QApplication.focusWidget(), key)
        focus = QApplication.focusWidget()
        assert focus.accessibleName() == f"fact {number}: {number}"
        assert not focus.visibleRegion().isEmpty()


def test_message_strip_copies_and_offers(qtbot, theme):
    strip = MessageStrip(theme)
    qtbot.addWidget(strip)
    done = []
    strip.show_message("It broke.", "error", "Traceback …", [("Again", lambda: done.append(1))])
    strip.copy()
    assert QGuiApplication.clipboard().text() == "It broke.\n\nTraceback …"
    again = next(one for one in strip.findChildren(QPushButton) if one.text() == "Again")
    again.click()
    assert (done, strip.text) == ([1], "")


@pytest.mark.parametrize(
    "make", [TableView, TreeView, DotList, FactPanel], ids=lambda make: make.__name__
)
def test_widget_parts_have_names_and_survive_a_new_theme(qtbot, theme, make):
    from devtools_app.appearance.look import ThemeMode

    widget = make(theme, "things")
    qtbot.addWidget(widget)
    if isinstance(widget, TableView):
        widget.show_table(operators())
    if isinstance(widget, FactPanel):
        widget.show_sheet(sheet())
    widget.show()
    for part in [widget, *interactive(widget)]:
        if type(part).__name__ != "QWidget" and not isinstance(part, TableView | TreeView):
            assert part.accessibleName(), part
    theme.set_mode(ThemeMode.DARK)
    theme.set_size(17)
    assert not widget.grab().isNull()


def test_filter_box_down_leaves_it(qtbot):
    box = FilterBox("Filter things")
    qtbot.addWidget(box)
    box.show()
    with qtbot.waitSignal(box.left):
        qtbot.keyClick(box, Qt.Key.Key_Down)


def test_badge_that_has_no_place_yet_is_no_window(theme, qtbot) -> None:
    badge = Badge(theme, "exact", "good", "")
    qtbot.addWidget(badge)
    assert not badge.isVisible()
    page = QWidget()
    qtbot.addWidget(page)
    QVBoxLayout(page).addWidget(badge)
    page.show()
    assert badge.isVisible()
    badge.set_badge("")
    assert not badge.isVisible()
    badge.set_badge("again")
    assert badge.isVisible()
