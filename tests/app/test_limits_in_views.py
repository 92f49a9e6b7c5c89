"""FLOPs and measured memory in Operators, Node, Overview and Memory; headings that sort."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtWidgets import QLabel, QMenu
from pytestqt.qtbot import QtBot

from devtools_app.appearance.theme import Theme
from devtools_app.state.variant_steps import shown_variant
from devtools_app.viewmodels.node_facts import node_facts
from devtools_app.views.editing import EditMenu
from devtools_app.views.findings import FindingsPane
from devtools_app.views.memory import MemoryPane
from devtools_app.views.operators import OperatorsPane
from devtools_app.views.overview import OverviewPane
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.tree_view import TreeView
from inspector.profile.operator_rows import operator_rows
from inspector.tables.roofline import WORK_TITLES
from inspector.tables.row_order import RowOrder, SortKey
from inspector.tables.selection import AUTOMATIC, Selection, SelectionKind
from inspector.tables.table import Table, number_column, text_column
from inspector.tables.tree import TOP, Tree
from inspector.units import Quantity
from tests.app.window_views import open_sample
from tests.inspector.sessions import session
from tests.inspector.test_measured_memory import MIB, RUN, measured_run

pytestmark = [pytest.mark.gui, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _many() -> Table:
    names = [f"row {number}" for number in range(400)]
    columns = (text_column("name", names), number_column("n", range(400), Quantity.COUNT))
    return Table(columns, 400)


@pytest.mark.parametrize("kind", [TableView, TreeView])
def test_sorting_by_a_heading_shows_the_first_rows(kind: Any, theme: Theme, qtbot: QtBot) -> None:
    view = kind(theme, "rows")
    qtbot.addWidget(view)
    view.resize(400, 200)
    view.show()
    if isinstance(view, TreeView):
        view.show_tree(Tree(_many(), np.full(400, TOP)))
    else:
        view.show_table(RowOrder(_many()))
    inside = view._tree if isinstance(view, TreeView) else view._grid
    inside.scrollToBottom()
    assert inside.verticalScrollBar().value() > 0
    view._heading_clicked(1)
    assert view.model.sort_keys == (SortKey(1, descending=True),)
    assert inside.verticalScrollBar().value() == 0
    assert view.model.index(0, 0).data() == "row 399"


def _titles(pane: OperatorsPane) -> list[str]:
    return [column.title for column in pane.panel.rows.columns]


def test_flops_of_operators_are_shown_on_demand_and_keep_the_order(
    make_window: Any, qtbot: QtBot
) -> None:
    window = make_window()
    open_sample(window, qtbot, (str(RUN),))
    window.show_view("operators")
    pane: OperatorsPane = window.findChild(OperatorsPane)
    qtbot.waitUntil(lambda: not pane.working and bool(pane.panel.rows.length))
    assert not {*WORK_TITLES} & {*_titles(pane)}
    join = _titles(pane).index("join")
    pane.panel.sort_by(join, descending=False)
    for panel in ("delegate", ""):
        pane.groups.setCurrentIndex(pane.groups.findData(panel))
        pane.work.setChecked(True)
        qtbot.waitUntil(lambda: not pane.working and "FLOPs" in _titles(pane))
        if panel:
            assert [_titles(pane)[key.column] for key in pane.panel.model.sort_keys] == ["join"]
        assert {*WORK_TITLES} <= {*_titles(pane)}
    pane.work.setChecked(False)
    qtbot.waitUntil(lambda: not pane.working and "FLOPs" not in _titles(pane))
    assert pane.panel.model.sort_keys == (SortKey(_titles(pane).index("mean"), True),)
    pane.events.setChecked(True)
    assert not pane.work.isEnabled()


def test_node_has_flops_bytes_and_the_reason_why_a_limit_is_missing() -> None:
    one = session(RUN)
    sheet = node_facts(one, "forward", Selection(SelectionKind.EVENT, event=5), AUTOMATIC)
    facts = {fact.label: fact.value for group in sheet.groups for fact in group.facts}
    assert "FLOP" in facts["FLOPs"]
    assert facts["achieved"] == "missing"  # two steps of 1 µs
    kernel = next(row for row in operator_rows(one, "forward") if row.kind == "operator")
    chosen = Selection(SelectionKind.EVENT, event=kernel.event)
    sheet = node_facts(one, "forward", chosen, AUTOMATIC)
    facts = {fact.label: fact.value for group in sheet.groups for fact in group.facts}
    assert "GB/s" in facts["achieved"]
    assert facts["of the limit"] == "missing: not calibrated"


def _words(pane: OverviewPane) -> str:
    return "\n".join(label.text() for label in pane.page.findChildren(QLabel))


def test_overview_and_memory_show_measured_memory(
    make_window: Any, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window()
    open_sample(window, qtbot, (str(measured_run(tmp_path / "run", 32 * MIB)),))
    overview: OverviewPane = window.findChild(OverviewPane)
    qtbot.waitUntil(lambda: not overview.working and "moved" in _words(overview))
    assert "increase over the idle worker" in _words(overview)
    assert "32 MiB" in _words(overview)
    window.show_view("memory")
    pane: MemoryPane = window.findChild(MemoryPane)
    qtbot.waitUntil(
        lambda: not pane.working and "measured 32 MiB" in pane.note.toolTip() + pane.note.text()
    )
    pane.scope.setCurrentIndex(pane.scope.findData("measured"))
    pane.scope.activated.emit(2)
    qtbot.waitUntil(lambda: pane.table.rows.columns[0].title == "phase")
    assert pane.table.rows.length == 8


def test_finding_ends_in_an_edit_that_is_previewed_and_taken(
    make_window: Any, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devtools_app.jobs.previewing.refusal", lambda _job: "not here")
    monkeypatch.setattr(QMenu, "popup", lambda *_: None)  # no window manager here
    window = make_window()
    open_sample(window, qtbot, (str(RUN.parent / "convnet_portable"),))
    window.show_view("findings")
    pane: FindingsPane = window.findChild(FindingsPane)
    qtbot.waitUntil(lambda: shown_variant(window.store.state) is not None)
    qtbot.waitUntil(lambda: pane.list.model().rowCount() > 3)
    titles = [pane.list.model().index(row, 0).data() for row in range(pane.list.model().rowCount())]
    place = titles.index("Try it: Delegate to xnnpack")
    assert "is delegated" in titles[place - 1]
    pane.list.opened.emit(place)
    (menu,) = pane.list.findChildren(QMenu)
    (edits,) = menu.findChildren(EditMenu)
    assert edits.effect.text() == "Not here"
    edits.action_of("add-partitioner", "partitioner").trigger()
    one = shown_variant(window.store.state)
    assert one is not None
    assert one.draft.present.partitioners == ("xnnpack",)
    pane.list.opened.emit(place)
    assert "The recipe has it already" in [
        action.text() for found in pane.list.findChildren(QMenu) for action in found.actions()
    ]


def test_finding_without_an_edit_ends_in_the_view_that_shows_it(
    make_window: Any, qtbot: QtBot
) -> None:
    window = make_window()
    open_sample(window, qtbot, (str(RUN.parent / "convnet_portable"),))
    window.show_view("findings")
    pane: FindingsPane = window.findChild(FindingsPane)
    qtbot.waitUntil(lambda: pane.list.model().rowCount() > 3)
    titles = [pane.list.model().index(row, 0).data() for row in range(pane.list.model().rowCount())]
    place = titles.index("Show in Timeline")
    assert "are noisy" in titles[place - 1]
    pane.list.opened.emit(place)
    qtbot.waitUntil(lambda: window.store.state.view == "timeline")
