"""A group of operators is what they have in common: that of a delegate selects the delegate."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from devtools_app.state.requests import Select
from devtools_app.views.operators import OperatorsPane
from inspector.tables.grouping import GroupKey
from inspector.tables.operators import (
    call_groups,
    group_selection,
    operators_table,
    operators_tree,
)
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import AUTOMATIC, Selection, SelectionKind
from inspector.tables.table import Table, text_column
from inspector.tables.tree import Tree
from tests.app.sessions import opened
from tests.app.view_bench import Bench

SESSIONS = ("corpus/v1.5.1/convnet_xnnpack", "runs/convnet_xnnpack")


@pytest.mark.parametrize("folder", SESSIONS)
def test_rows_below_a_delegate_are_all_of_it(folder: str) -> None:
    session = opened(folder)
    table = operators_table(session, "forward", AUTOMATIC)
    tree = operators_tree(RowOrder(table.table))
    assert tree is not None
    found = []
    for node in range(tree.rows.length):
        if not isinstance(tree.rows.key(node), GroupKey):
            continue
        selection = group_selection(tree, node, "forward")
        assert selection.kind is SelectionKind.DELEGATE
        below = [tree.rows.key(int(one)) for one in np.flatnonzero(tree.parents == node)]
        assert below
        assert {key.delegate for key in below} == {selection.delegate}
        found.append(selection.delegate)
    assert found
    assert len(set(found)) == len(found)


@pytest.mark.gui
def test_row_of_a_delegate_selects_it_and_keeps_the_cursor(qtbot: QtBot) -> None:
    bench = Bench(qtbot, OperatorsPane)
    pane = bench.pane
    assert isinstance(pane, OperatorsPane)
    bench.open(opened(SESSIONS[1]))
    keys = [pane.tree.rows.key(node) for node in range(pane.tree.rows.length)]
    group = next(at for at, key in enumerate(keys) if isinstance(key, GroupKey))
    assert pane.tree.show_current(keys[group])
    pane.tree.row_chosen.emit(group)
    QApplication.processEvents()
    asked = [one for one in bench.asked if isinstance(one, Select)]
    assert [one.selection.kind for one in asked] == [SelectionKind.DELEGATE]
    assert pane.tree.current_key() == keys[group]
    bench.select(Selection())
    assert pane.tree.current_key() != keys[group]


@pytest.mark.gui
@pytest.mark.parametrize("folder", SESSIONS)
@pytest.mark.parametrize("kind", ["event", "instruction", "delegate"])
def test_call_is_shown_as_the_row_of_its_delegate(qtbot: QtBot, folder: str, kind: str) -> None:
    bench = Bench(qtbot, OperatorsPane)
    pane = bench.pane
    assert isinstance(pane, OperatorsPane)
    session = opened(folder)
    bench.open(session)
    content = operators_table(session, "forward", AUTOMATIC)
    tree = operators_tree(RowOrder(content.table))
    assert tree is not None
    groups = call_groups(tree)
    assert groups
    for overhead, group in groups.items():
        key, head = tree.rows.key(overhead), tree.rows.key(group)
        assert isinstance(key, Selection)
        assert tree.parents[overhead] == group
        wanted = {  # as the timeline, a list of instructions and the graph select
            "event": Selection(SelectionKind.EVENT, "forward", event=key.event),
            "instruction": Selection(
                SelectionKind.INSTRUCTION, "forward", instruction=key.instruction
            ),
            "delegate": Selection(SelectionKind.DELEGATE, "forward", delegate=key.delegate),
        }
        bench.select(wanted[kind])
        assert pane.tree.current_key() == head
        assert _is_marked(pane, group)
        assert _is_marked(pane, overhead) == (kind != "event")


def _is_marked(pane: OperatorsPane, node: int) -> bool:
    model = pane.tree.model
    return model.index_of(node).data(Qt.ItemDataRole.BackgroundRole) is not None


@pytest.mark.gui
def test_overhead_that_is_chosen_keeps_the_cursor(qtbot: QtBot) -> None:
    bench = Bench(qtbot, OperatorsPane)
    pane = bench.pane
    assert isinstance(pane, OperatorsPane)
    bench.open(opened(SESSIONS[1]))
    tree = pane.tree.model.tree
    overhead = next(iter(call_groups(tree)))
    key = tree.rows.key(overhead)
    assert pane.tree.show_current(key)
    pane.tree.row_chosen.emit(overhead)
    QApplication.processEvents()
    assert pane.tree.current_key() == key


def test_delegate_that_is_called_twice_stands_for_no_call() -> None:
    rows = Table(
        (text_column("operator", ["a", "b", "1", "o", "2", "o", "o"]),),
        7,
        list("ab1x2yz"),
        np.array([False, False, False, True, False, True, True]),
        "operators",
    )
    tree = Tree(rows, np.array([-1, -1, 0, 0, 1, 1, 1]))
    assert call_groups(tree) == {3: 0}
