"""A group of operators is what they have in common: that of a delegate selects the delegate."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from devtools_app.state.requests import Select
from devtools_app.views.operators import OperatorsPane
from inspector.tables.grouping import GroupKey
from inspector.tables.operators import group_selection, operators_table, operators_tree
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import AUTOMATIC, Selection, SelectionKind
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
