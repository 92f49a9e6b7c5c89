"""The generic tree model and grouping."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPersistentModelIndex, QPoint, Qt
from PySide6.QtGui import QFont
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QTableView, QTreeView

from devtools_app.appearance.colours import LIGHT
from devtools_app.qtmodels.cells import cell_looks
from devtools_app.qtmodels.tree_model import TreeModel
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.tree_view import TreeView
from inspector.tables.filter import parse_filter
from inspector.tables.grouping import GroupKey, group_rows
from inspector.tables.row_order import RowOrder, SortKey
from inspector.tables.table import Categories, Table, number_column, text_column
from inspector.tables.tree import (
    MOST_BELOW,
    TOP,
    Tree,
    TreeOrder,
    ancestors,
    empty_tree,
    tree_from_paths,
)
from inspector.units import Quantity
from tests.app.tables import operators

pytestmark = [pytest.mark.gui, pytest.mark.slow]


def made(text: str) -> Tree:
    """Return the tree of paths such as ``a/b=3 a/c=1``; inner nodes have no number."""
    pairs = [part.split("=") for part in text.split()]
    names, parents, leaf = tree_from_paths([path.split("/") for path, _ in pairs])
    numbers = np.full(len(names), np.nan)
    numbers[leaf] = [float(number) for _, number in pairs]
    table = Table(
        (text_column("name", names), number_column("n", numbers, Quantity.PLAIN)), len(names)
    )
    return Tree(table, parents)


def printed(model: TreeModel, parent=None, depth: int = 0) -> list[str]:
    lines = []
    index = parent if parent is not None else model.index(-1, -1)
    for row in range(model.rowCount(index)):
        child = model.index(row, 0, index)
        lines.append(" " * depth + child.data())
        lines += printed(model, child, depth + 1)
    return lines


@pytest.fixture
def model(qtbot) -> TreeModel:
    found = TreeModel()
    QAbstractItemModelTester(found, QAbstractItemModelTester.FailureReportingMode.Fatal, found)
    found.set_tree(made("a/b=3 a/c=1 d=2 a/e/f=9 a/e/g=4"))
    return found


def test_tree_model_shows_paths_as_nodes(model):
    assert printed(model) == ["a", " b", " c", " e", "  f", "  g", "d"]


def test_tree_model_sorts_siblings_only(model):
    model.sort(1, Qt.SortOrder.AscendingOrder)
    assert printed(model) == ["d", "a", " c", " b", " e", "  g", "  f"]
    model.sort(0, Qt.SortOrder.DescendingOrder)
    assert printed(model) == ["d", "a", " e", "  g", "  f", " c", " b"]


def test_tree_model_filter_keeps_way_and_contents(model):
    model.set_filter(parse_filter("/^g$/", model.tree.rows))
    assert printed(model) == ["a", " e", "  g"]
    assert [model.tree.rows.text(node, 0) for node in model.matching()] == ["g"]
    model.set_filter(parse_filter("/^e$/", model.tree.rows))
    assert printed(model) == ["a", " e", "  f", "  g"]
    model.set_filter(parse_filter("", model.tree.rows))
    assert len(printed(model)) == 7


def test_tree_model_keeps_persistent_indexes_when_sorted(model):
    node = model.tree.rows.columns[0].values.index("g")
    kept = QPersistentModelIndex(model.index_of(node, 1))
    model.sort(1, Qt.SortOrder.AscendingOrder)
    assert kept.data() == "4"
    assert kept.row() == 0
    assert [index.data() for index in model.path_to(node)] == ["a", "e"]


def test_tree_model_survives_every_change_under_the_tester(model):
    model.set_looks(cell_looks(LIGHT, QFont(), QFont()))
    model.set_highlighted([1, 2])
    model.set_tree(TreeOrder(made("x/y/z=1 x/y/w=2")).prepare())
    model.sort(0)
    model.set_tree(empty_tree())
    assert model.rowCount() == 0


@given(
    st.lists(st.integers(0, 10_000), max_size=60),
    st.lists(st.floats(0, 9), min_size=61, max_size=61),
)
def test_arrangement_shows_every_node_once_below_its_parent(seeds, numbers):
    parents = np.array([seed % (n + 1) - 1 for n, seed in enumerate(seeds)], np.int64)
    count = len(parents)
    table = Table((number_column("n", numbers[:count], Quantity.PLAIN),), count)
    shown = TreeOrder(Tree(table, parents)).arrange([SortKey(0)])
    seen = []
    for node in range(-1, count):
        children = [shown.child(node, row) for row in range(shown.count(node))]
        assert all(parents[child] == node for child in children)
        assert [numbers[child] for child in children] == sorted(
            numbers[child] for child in children
        )
        assert [int(shown.place[child]) for child in children] == list(range(len(children)))
        seen += children
    assert sorted(seen) == list(range(count))


@pytest.mark.parametrize("parents", [[0], [-1, 2, 0], [-2], [-1, -1, 3]])
def test_tree_with_late_parent_is_refused(parents):
    table = Table((text_column("n", ["x"] * len(parents)),), len(parents))
    with pytest.raises(ValueError, match="before its children"):
        Tree(table, np.array(parents))


def test_ancestors_are_nearest_first():
    tree = made("a/b/c=1")
    assert ancestors(tree, 2) == (1, 0)
    assert ancestors(tree, 0) == ()


def test_deep_tree_is_not_limited_by_recursion(qtbot):
    depth = 5000
    table = Table((text_column("n", [str(n) for n in range(depth)]),), depth)
    model = TreeModel()
    model.set_tree(Tree(table, np.arange(-1, depth - 1)))
    model.set_filter(parse_filter("/^4999$/", table))
    assert model.shown_count == depth
    assert len(model.path_to(depth - 1)) == depth - 1


def test_group_rows_adds_up_and_keeps_order():
    table = operators()
    order = RowOrder(table)
    shown = order.rows([SortKey(2, descending=True)])
    tree = group_rows(order, 1, shown)
    names = [tree.rows.text(node, 0) for node in range(tree.rows.length)]
    assert names[:4] == ["act  (2)", "conv1  (2)", "no module", "head  (1)"]
    assert [tree.rows.key(node) for node in (0, 1)] == [GroupKey("act"), GroupKey("conv1")]
    time, size, join = (tree.columns[n].values for n in (2, 3, 5))
    assert time[:4].tolist() == [548e3, 293e3, 182e3, 56e3]
    assert size[1] == 400
    assert list(join[:3]) == ["exact", "exact", "none"]
    assert names[4:] == ["Erf", "conv_10", "unattributed", "conv_2", "relu", "add"]
    assert tree.parents.tolist()[4:] == [0, 1, 2, 1, 3, 0]


def test_group_rows_time_equals_time_of_its_rows():
    table = operators()
    order = RowOrder(table)
    for by in (0, 1, 5):
        tree = group_rows(order, by, order.rows())
        heads = tree.columns[2].values[tree.parents < 0]
        assert math.isclose(np.nansum(heads), np.nansum(table.columns[2].values))


def test_group_rows_without_a_name_are_named_so():
    table = Table(
        (text_column("operator", ["a", "b", "c"]), text_column("module", ["", "—", "m"])), 3
    )
    order = RowOrder(table)
    tree = group_rows(order, 1, order.rows())
    heads = [tree.rows.text(row, 0) for row in range(3)]
    assert heads == ["no module  (1)", "no module  (1)", "m  (1)"]


def test_tree_is_sorted_by_keyboard(qtbot, theme):
    order = RowOrder(operators())
    view = TreeView(theme, "operators by module")
    qtbot.addWidget(view)
    view.show_tree(group_rows(order, 1, order.rows()))
    columns = view.rows.columns
    grid = view.findChild(QTreeView)
    view.resize(2000, 400)  # columns without room fold, and are not sorted by
    with qtbot.waitActive(view):
        view.show()
    grid.setFocus()
    for column in (*range(1, len(columns)), 0):
        qtbot.keyClick(grid, Qt.Key.Key_S)
        assert view.model.sort_keys[0].column == column
    before = view.model.sort_keys[0].descending
    qtbot.keyClick(grid, Qt.Key.Key_S, Qt.KeyboardModifier.ShiftModifier)
    assert view.model.sort_keys[0].descending is not before


def test_group_rows_of_nothing_is_empty():
    order = RowOrder(operators())
    tree = group_rows(order, 1, order.rows()[:0])
    assert tree.rows.length == 0


def test_lighting_up_rows_repaints_them_without_another_layout(qtbot) -> None:
    model = TreeModel()
    count = 4000
    rows = Table((text_column("name", [str(n) for n in range(count)]),), count)
    model.set_tree(Tree(rows, np.array([TOP, *[0] * (count - 1)])))
    layouts: list[int] = []
    told: list[int] = []
    model.layoutChanged.connect(lambda: layouts.append(1))
    model.dataChanged.connect(lambda first, _last, _roles: told.append(model.node(first)))
    model.set_highlighted([7, 9])
    model.set_highlighted([9, 11])
    assert not layouts
    assert told == [7, 9, 7, 11]
    model.set_highlighted(range(count))
    assert layouts == [1]


@pytest.mark.parametrize(("below", "opens"), [(MOST_BELOW, True), (MOST_BELOW + 1, False)])
def test_group_of_too_many_rows_is_not_opened_but_found(qtbot, theme, below, opens):
    names = text_column("name", Categories(np.zeros(below, np.int64), ["one"]))
    table = Table((names,), below)
    tree = group_rows(RowOrder(table), 0, np.arange(below))
    assert ("a filter lists them" in tree.rows.text(0, 0)) == (not opens)
    view = TreeView(theme, "many")
    qtbot.addWidget(view)
    view.show_tree(TreeOrder(tree), open_levels=0)
    group = view.model.index_of(0)
    assert view.model.hasChildren(group) == opens
    assert view.model.rowCount(group) == below
    view.show_current(below - 1)
    assert view.current_row() == (below if opens else 0)
    view.expand_all()
    assert view._tree.isExpanded(group) == opens


@pytest.mark.parametrize("tree", [False, True], ids=["table", "tree"])
def test_a_click_on_a_heading_goes_to_the_first_row(qtbot, theme, tree: bool) -> None:
    rows = Table(
        (
            text_column("name", [str(n) for n in range(400)]),
            number_column("time", [float(n) for n in range(400)], Quantity.TIME),
        ),
        400,
    )
    view = TreeView(theme, "rows") if tree else TableView(theme, "rows")
    qtbot.addWidget(view)
    view.resize(400, 300)
    if isinstance(view, TreeView):
        view.show_tree(Tree(rows, np.full(400, TOP)))
    else:
        view.show_table(rows)
    view.show()
    grid = view.findChild(QTreeView if tree else QTableView)
    bar = grid.verticalScrollBar()
    bar.setValue(bar.maximum())
    assert bar.value() > 0
    head = grid.header() if tree else grid.horizontalHeader()
    at = QPoint(head.sectionViewportPosition(1) + 10, head.height() // 2)
    qtbot.mouseClick(head.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert bar.value() == 0
    top = grid.indexAt(QPoint(2, 2)).siblingAtColumn(0).data()
    assert top == "399"  # numbers: largest first
