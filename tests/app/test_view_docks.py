"""Overview, operators, node, source and findings with sessions of every kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
)

from devtools_app.appearance.look import ThemeMode
from devtools_app.state.requests import AddSourceRoot, OpenSource, Select, ShowView
from devtools_app.state.transitions import add_session
from devtools_app.views import findings, node, operators, overview, source
from devtools_app.views.spec import CanExport, ViewSpec
from devtools_app.widgets.link_row import LinkRow
from inspector.files.session import Session
from inspector.tables.selection import NOTHING, Selection, SelectionKind
from tests.app.sessions import DATA, chain_session, opened
from tests.app.view_bench import Bench

pytestmark = [pytest.mark.gui, pytest.mark.slow]
SPECS = (overview, operators, node, source, findings)
XNNPACK = "corpus/v1.5.1/tinygpt_xnnpack"
CONVNET = "corpus/v1.5.1/convnet_xnnpack"
EMPTY = Session("empty", ())
SELECTIONS = (
    Selection(SelectionKind.NODE, "forward", "compiled", "aten_linear_default"),
    Selection(SelectionKind.NODE, "forward", "compiled", "no such node"),
    Selection(SelectionKind.INSTRUCTION, "forward", instruction=4),
    Selection(SelectionKind.INSTRUCTION, "forward", instruction=99999),
    Selection(SelectionKind.EVENT, "forward", event=5),
    Selection(SelectionKind.EVENT, "forward", event=99999),
    Selection(SelectionKind.VALUE, "forward", value=28),
    Selection(SelectionKind.VALUE, "forward", value=99999),
    Selection(SelectionKind.DELEGATE, "forward", delegate=2),
    Selection(SelectionKind.DELEGATE, "forward", delegate=99),
    Selection(SelectionKind.PART, part="nowhere@1+2"),
    NOTHING,
)


@pytest.fixture(params=[module.SPEC for module in SPECS], ids=lambda spec: spec.name)
def spec(request: pytest.FixtureRequest) -> ViewSpec:
    return request.param


@pytest.fixture
def bench(qtbot, spec: ViewSpec) -> Bench:
    return Bench(qtbot, spec.make)


def test_dock_without_session_teaches(bench: Bench) -> None:
    assert bench.empty
    assert "open" in bench.pane.empty.accessibleName().lower()


@pytest.mark.parametrize("name", ["model.pte", "model.etrecord", "run.etdp", "run.debug"])
def test_dock_with_one_file_shows_it_or_teaches(bench: Bench, name: str) -> None:
    bench.open(opened(f"corpus/v1.5.1/mm_xnnpack/{name}"))
    for selection in SELECTIONS:
        bench.select(selection)
    bench.pane.grab()
    if bench.empty:
        assert len(bench.pane.empty.accessibleName()) > 20


@pytest.mark.parametrize("session", [EMPTY, chain_session(0), chain_session(3)])
def test_dock_of_next_to_nothing_works(bench: Bench, session: Session) -> None:
    bench.open(session)
    bench.select(Selection(SelectionKind.INSTRUCTION, "forward", instruction=0))
    bench.pane.grab()


def test_dock_takes_every_kind_of_selection(bench: Bench) -> None:
    bench.open(opened(XNNPACK))
    for selection in SELECTIONS:
        bench.select(selection)
        assert bench.store.state.selection == selection
        bench.pane.grab()


def test_dock_shows_another_palette(bench: Bench) -> None:
    bench.open(opened(XNNPACK))
    bench.select(SELECTIONS[0])
    before = bench.pane.grab().toImage()
    bench.theme.set_mode(ThemeMode.DARK)
    assert bench.pane.grab().toImage() != before


def test_dock_controls_have_names(bench: Bench) -> None:
    bench.open(opened(XNNPACK))
    bench.select(SELECTIONS[0])
    assert bench.pane.accessibleName()
    for kind in (QAbstractButton, QComboBox, QLineEdit):
        for widget in bench.pane.findChildren(kind):
            if widget.isVisible():
                assert widget.accessibleName() or widget.toolTip() or widget.objectName(), widget


def test_dock_reads_a_session_again(bench: Bench) -> None:
    bench.open(opened(XNNPACK))
    one = bench.store.state.sessions[0]
    other = replace(one, session=opened("corpus/v1.5.1/mm_xnnpack"), revision=1)
    bench.store.update(sessions=(other,))
    bench.settle()
    bench.pane.grab()


def test_dock_writes_its_table(bench: Bench, tmp_path: Path) -> None:
    bench.open(opened(XNNPACK))
    if isinstance(bench.pane, CanExport):
        assert bench.pane.export_to(tmp_path / "x.tsv")
        bench.qtbot.waitUntil((tmp_path / "x.tsv").exists)
        assert len((tmp_path / "x.tsv").read_text().splitlines()) > 2


# -- operators -----------------------------------------------------------------------------


def _operators(qtbot, session: Session) -> tuple[Bench, operators.OperatorsPane]:
    bench = Bench(qtbot, operators.OperatorsPane)
    pane = bench.pane
    assert isinstance(pane, operators.OperatorsPane)
    bench.open(session)
    _group(pane, "", bench)
    return bench, pane


def test_operators_begin_below_their_delegates_with_what_the_call_adds(qtbot) -> None:
    bench = Bench(qtbot, operators.OperatorsPane)
    bench.open(opened("runs/convnet_xnnpack"))
    pane = bench.pane
    assert isinstance(pane, operators.OperatorsPane)
    tree = pane.tree.model
    top = [tree.index(row, 0).data() for row in range(tree.rowCount())]
    assert top[0] == "XNNPACK 0  (7)"  # the longest first
    assert "delegate overhead" not in top
    first = tree.index(0, 0)
    below = [tree.index(row, 0, first).data() for row in range(tree.rowCount(first))]
    assert below[0] == "delegate overhead"
    assert top[-1] == "cost of tracing"


def _group(pane: operators.OperatorsPane, by: str, bench: Bench) -> None:
    pane.groups.setCurrentIndex(pane.groups.findData(by))
    pane.groups.activated.emit(pane.groups.currentIndex())
    bench.settle()


def test_operators_are_sorted_by_the_column_that_their_shares_are_of(qtbot) -> None:
    _, pane = _operators(qtbot, opened("runs/convnet_xnnpack"))
    rows = pane.table.rows
    titles = [column.title for column in rows.columns]
    mean, share = (rows.columns[titles.index(name)].values for name in ("mean", "share of method"))
    (key,) = pane.table.model.sort_keys
    assert (titles[key.column], key.descending) == ("mean", True)
    known = np.isfinite(share)
    assert known.sum() > 5
    whole = mean[known].sum() / share[known].sum()
    assert share[known] * whole == pytest.approx(mean[known])


def test_operators_row_is_selected_everywhere_and_back(qtbot) -> None:
    bench, pane = _operators(qtbot, opened(CONVNET))
    assert pane.step(1)
    chosen = bench.store.state.selection
    assert chosen.kind is SelectionKind.EVENT
    assert pane.plot.isVisible()
    other = next(key for key in pane.table.rows.keys or () if key != chosen)
    assert isinstance(other, Selection)
    bench.select(other)
    assert pane.table.current_key() == other
    bench.select(NOTHING)
    assert pane.table.current_key() is None
    assert not pane.plot.isVisible()


def test_operators_follow_a_node_to_its_row(qtbot) -> None:
    bench, pane = _operators(qtbot, opened(XNNPACK))
    bench.select(Selection(SelectionKind.NODE, "forward", "compiled", "aten_linear_default"))
    row = pane.table.current_row()
    assert "Fully Connected" in pane.table.rows.text(row, 0)


def test_operators_filter_is_that_of_the_state(qtbot) -> None:
    bench, pane = _operators(qtbot, opened(CONVNET))
    whole = len(pane.panel.shown_rows())
    bench.store.update(filter_text="/conv/")
    assert 0 < len(pane.panel.shown_rows()) < whole
    pane.panel.filter_changed.emit("")
    assert bench.store.state.filter_text == ""


@pytest.mark.parametrize("by", ["operator", "module", "backend", "delegate", "block"])
def test_operators_grouped_keep_every_row_and_select(qtbot, by: str) -> None:
    bench, pane = _operators(qtbot, opened(CONVNET))
    keys = set(pane.table.rows.keys or ())
    _group(pane, by, bench)
    grouped = {key for key in pane.tree.rows.keys or () if key in keys}
    assert grouped == keys
    operators = [key for key in keys if isinstance(key, Selection) and key.delegate is None]
    assert operators  # the call of a delegate is shown as its group
    for some in operators:
        bench.select(some)
        assert pane.tree.current_key() == some
    _group(pane, "", bench)
    assert pane.table.current_key() == operators[-1]


def test_operators_all_events_lists_what_the_profile_does(qtbot) -> None:
    from inspector.profile.methods import analyse_profile

    session = opened(CONVNET)
    bench, pane = _operators(qtbot, session)
    pane.events.setChecked(True)
    bench.settle()
    rows = analyse_profile(session).rows
    assert [pane.table.rows.text(n, 0) for n in range(len(rows))] == [r.event_name for r in rows]
    bench.select(Selection(SelectionKind.EVENT, "forward", event=3))
    assert pane.table.current_row() == 3


def test_operators_return_shows_the_graph(qtbot) -> None:
    bench, pane = _operators(qtbot, opened(CONVNET))
    pane.table.row_activated.emit(0)
    asked = [one for one in bench.asked if isinstance(one, Select) and one.view]
    assert [one.view for one in asked] == ["graph"]


def test_operators_of_ten_thousand_without_trace_say_missing(qtbot) -> None:
    _bench, pane = _operators(qtbot, chain_session(10_000))
    table = pane.table.rows
    titles = [column.title for column in table.columns]
    assert table.length == 10_000
    assert table.text(0, titles.index("mean")) == "missing"


# -- overview and findings -----------------------------------------------------------------


def _words(bench: Bench) -> str:
    found = "\n".join(label.text() for label in bench.pane.findChildren(QLabel))
    return found.replace("\u200b", "")  # where a long name may go on in the next line


def test_overview_says_which_file_is_the_odd_one(qtbot) -> None:
    bench = Bench(qtbot, overview.OverviewPane)
    bench.open(
        opened(
            f"{CONVNET}/model.pte",
            f"{CONVNET}/model.etrecord",
            "corpus/v1.5.1/tinygpt_xnnpack/run.etdp",
        )
    )
    words = _words(bench)
    assert "do not belong together" in words
    assert "run.etdp is the one that differs" in words


def test_overview_says_what_is_missing_and_how_to_make_it(qtbot) -> None:
    bench = Bench(qtbot, overview.OverviewPane)
    bench.open(opened(f"{CONVNET}/model.pte"))
    assert "ETRecord would add" in _words(bench)
    copy = next(
        button
        for button in bench.pane.findChildren(QAbstractButton)
        if button.accessibleName() == "Copy the command that makes the ETRecord"
    )
    copy.click()
    assert "generate_etrecord=True" in QGuiApplication.clipboard().text()


def test_overview_finding_opens_by_keyboard(qtbot) -> None:
    bench = Bench(qtbot, overview.OverviewPane)
    bench.open(opened(CONVNET))
    rows = [row for row in bench.pane.findChildren(LinkRow) if row.focusPolicy()]
    assert rows
    for row in rows:
        qtbot.keyClick(row, Qt.Key.Key_Return)
    assert len([one for one in bench.asked if isinstance(one, (Select, ShowView))]) == len(rows)


def test_findings_lead_to_a_view(qtbot) -> None:
    from devtools_app.views import view_named

    bench = Bench(qtbot, findings.FindingsPane)
    pane = bench.pane
    assert isinstance(pane, findings.FindingsPane)
    bench.open(opened(CONVNET))
    for number in range(len(pane.list.entries)):
        pane.list.opened.emit(number)
        last = bench.asked[-1]
        assert isinstance(last, (Select, ShowView))
        assert view_named(last.view) is not None, last


# -- node and source -----------------------------------------------------------------------


def test_node_follows_the_links_of_its_facts(qtbot) -> None:
    bench = Bench(qtbot, node.NodePane)
    pane = bench.pane
    assert isinstance(pane, node.NodePane)
    bench.open(opened(XNNPACK))
    bench.select(Selection(SelectionKind.NODE, "forward", "compiled", "aten_linear_default"))
    links = [fact.link for group in pane.facts.sheet.groups for fact in group.facts if fact.link]
    for link in links:
        pane.facts.followed.emit(link)
    kinds = {type(one) for one in bench.asked}
    assert kinds >= {Select, OpenSource}


def test_source_without_file_offers_a_root_and_with_it_shows_costs(qtbot) -> None:
    bench = Bench(qtbot, source.SourcePane)
    pane = bench.pane
    assert isinstance(pane, source.SourcePane)
    session = opened(XNNPACK)
    bench.open(session)
    qtbot.waitUntil(lambda: "models.py" in pane.absent.accessibleName(), timeout=5000)
    pane.root_button.click()
    assert bench.asked[-1] == AddSourceRoot()
    rooted = replace(
        session, options=replace(session.options, source_roots=(str(DATA / "corpus"),))
    )
    one = bench.store.state.sessions[0]
    bench.store.update(sessions=(replace(one, session=rooted, revision=1),))
    bench.settle()
    qtbot.waitUntil(lambda: pane.pages.currentWidget() is pane.code, timeout=5000)
    assert "class TinyGPT" in pane.code.toPlainText()


def test_source_gives_the_keyboard_to_its_lines(qtbot) -> None:
    bench = Bench(qtbot, source.SourcePane)
    pane = bench.pane
    assert isinstance(pane, source.SourcePane)
    pane.activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is pane)
    session = opened(XNNPACK)
    options = replace(session.options, source_roots=(str(DATA / "corpus"),))
    bench.store.put(add_session(bench.store.state, replace(session, options=options), ()))
    pane.take_focus()
    bench.settle()
    qtbot.waitUntil(lambda: pane.pages.currentWidget() is pane.code, timeout=5000)
    assert pane.tree.isAncestorOf(QApplication.focusWidget())


def test_source_line_and_node_select_each_other(qtbot) -> None:
    bench = Bench(qtbot, source.SourcePane)
    pane = bench.pane
    assert isinstance(pane, source.SourcePane)
    bench.open(opened(XNNPACK))
    assert pane.step(1)
    assert pane.step(1)
    chosen = bench.store.state.selection
    assert chosen.kind is SelectionKind.NODE
    bench.select(Selection(SelectionKind.NODE, "forward", "compiled", "aten_linear_default"))
    key = pane.tree.current_key()
    bench.select(chosen)
    assert pane.tree.current_key() is not None
    assert pane.tree.current_key() != key or chosen.node == "aten_linear_default"


def test_program_as_code_and_nodes_select_each_other(qtbot) -> None:
    bench = Bench(qtbot, source.SourcePane)
    pane = bench.pane
    assert isinstance(pane, source.SourcePane)
    bench.open(opened(XNNPACK))
    edge = "edge_dialect_exported_program/forward"
    pane.programs.setCurrentIndex(pane.programs.findData(edge))
    pane.programs.activated.emit(pane.programs.currentIndex())
    bench.settle()
    assert pane.code.toPlainText().startswith("def forward(")
    assert not pane.tree.isVisibleTo(pane)
    bench.select(Selection(SelectionKind.NODE, "forward", "compiled", "aten_linear_default"))
    assert "aten_linear_default:" in pane.code.textCursor().block().text()
    line = next(
        number
        for number, text in enumerate(pane.code.toPlainText().splitlines(), 1)
        if "aten_embedding_default:" in text
    )
    pane.code.line_chosen.emit(line)
    assert bench.store.state.selection.node == "aten_embedding_default"
    pane.programs.setCurrentIndex(0)
    pane.programs.activated.emit(0)
    bench.settle()
    assert pane.tree.isVisibleTo(pane)


def test_program_without_record_is_shown_as_code(qtbot) -> None:
    bench = Bench(qtbot, source.SourcePane)
    pane = bench.pane
    assert isinstance(pane, source.SourcePane)
    bench.open(opened("corpus/v1.5.1/convnet_portable/model.pte"))
    assert "aten::convolution.out(" in pane.code.toPlainText()


def test_node_facts_are_all_reached_by_arrow_keys(qtbot) -> None:
    bench = Bench(qtbot, node.NodePane)
    pane = bench.pane
    assert isinstance(pane, node.NodePane)
    bench.open(opened(XNNPACK))
    bench.select(Selection(SelectionKind.NODE, "forward", "compiled", "aten_linear_default"))
    facts = [fact for group in pane.facts.sheet.groups for fact in group.facts]
    pane.show()
    pane.facts.setFocus()
    reached = []
    for _ in facts:
        qtbot.keyClick(pane.window().focusWidget(), Qt.Key.Key_Down)
        reached.append(pane.window().focusWidget().accessibleName())
    assert sorted(reached) == sorted(f"{fact.label}: {fact.value}" for fact in facts)


def test_node_panel_is_never_wider_than_its_dock(qtbot) -> None:
    bench = Bench(qtbot, node.NodePane)
    pane = bench.pane
    assert isinstance(pane, node.NodePane)
    pane.resize(300, 500)
    bench.open(opened("corpus/v1.5.1/convnet_portable"))
    name = "aten__native_batch_norm_legit_no_training_default"
    bench.select(Selection(SelectionKind.NODE, "forward", "compiled", name))
    assert "batch_norm" in pane.facts.sheet.title
    page = pane.facts.widget()
    assert page is not None
    assert page.width() <= pane.facts.viewport().width()
