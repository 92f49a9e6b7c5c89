"""Columns: wide enough for their headings, names cut where they tell the least."""

from __future__ import annotations

import numpy as np
import pytest
import shiboken6
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QMenu,
    QStyleOptionViewItem,
    QTableView,
    QTreeView,
)

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.widgets.cell_delegate import CellDelegate
from devtools_app.widgets.column_fit import ColumnWidth, fitted
from devtools_app.widgets.elision import elided
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.tree_view import TreeView
from inspector.tables.numeric_gap import TensorLook, look_table
from inspector.tables.table import Table, badge_column, number_column, share_column, text_column
from inspector.tables.tree import Tree
from inspector.units import Quantity
from tests.app.tables import operators

pytestmark = pytest.mark.gui
CUT = 0.6  # of the width of a name


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("aten_convolution_default_12", "_12"),
        ("encoder.0.blocks.attention.linear", "encoder.0.…linear"),
        ("layers.11.attention.kv_cache.keys", "…11.…kv_cache.keys"),
        ("model.layers.7.self_attn.q_proj.weight", "…7.…q_proj.weight"),
        ("aten.native_layer_norm.default", "native_layer_norm…"),
        ("aten.erf.out", "erf…"),
        ("aten::topk.values", "topk…"),
        ("topk.values", "topk…"),
        ("upsample_nearest2d.vec_out", "upsample_nea"),
        ("    split_with_sizes_copy.Tensor", "    split_with"),
        ("native_call_permute_copy.out", "permute_copy…"),
        ("aten__softmax_default", "softmax_"),
        ("quantized_decomposed_dequantize_per_tensor_default", "dequantize_per"),
        ("quantized_decomposed_quantize_per_tensor_default_12", "_12"),
        ("    quantized_decomposed.dequantize_per_tensor", "    …dequantize_per_tensor"),
        ("    aten.native_layer_norm.default", "    native_layer_no"),
        ("aten_add_tensor_4", "add"),
        ("XNNPACK · delegate 12 (tag3)", " 12"),
        ("forward delegate 2 (XnnpackBackend): v62", ": v62"),
        ("encoder.0.pointwise.weight", "pointwis"),
        ("stem_weight_and_more", "more"),
        ("rest of the delegate call", "rest of"),
        ("delegate 0 Conv2d_2 filter in stem.0", " in stem.0"),
        ("delegate 0 Conv2d_10 filter", "Conv2d_10 fil"),
        ("XNNPACK 12", " 12"),
        ("bottleneck_blocks.0 ▸", "bottleneck…0"),
        ("cluster (layer_norm) ▸", "…layer_norm"),
        ("keyword_spotter_int8.etrecord", "keywo"),
        ("keyword_spotter_int8.etrecord", "….etrecord"),
        ("keyword_spotter/model.pte", "…/model.pte"),
        ("/home/ada/nets/keyword_spotter/model.pte", "…/model.pte"),
    ],
)
def test_names_are_cut_where_they_tell_the_least(theme: Theme, name: str, kept: str) -> None:
    metrics = QFontMetrics(theme.mono())
    room = int(CUT * metrics.horizontalAdvance(name))
    shown = elided(name, metrics, room)
    assert kept in shown
    assert "…" in shown
    assert metrics.horizontalAdvance(shown) <= room
    assert elided(name, metrics, metrics.horizontalAdvance(name)) == name


@pytest.mark.parametrize(
    "name", ["stem.0.weight", "heads.weight", "blocks.2.depthwise.weight", "0.weight"]
)
def test_path_that_is_cut_says_so_at_any_width(theme: Theme, name: str) -> None:
    metrics = QFontMetrics(theme.mono())
    for room in range(metrics.horizontalAdvance("…") + 1, metrics.horizontalAdvance(name)):
        assert "…" in elided(name, metrics, room)


def test_sentence_that_ends_in_a_number_is_cut_at_its_end(theme: Theme) -> None:
    metrics = QFontMetrics(theme.mono())
    text = "processors of phones, graphics and neural engine 13"
    shown = elided(text, metrics, int(CUT * metrics.horizontalAdvance(text)))
    assert shown.startswith("processors of phones, gr")
    assert shown.endswith("…")


def test_numbered_names_differ_at_any_width(theme: Theme) -> None:
    metrics = QFontMetrics(theme.mono())
    names = [f"aten_convolution_default_{number}" for number in (1, 2, 12, 112)]
    least = metrics.horizontalAdvance("…_112")
    for room in range(least, metrics.horizontalAdvance(names[-1])):
        assert len({elided(name, metrics, room) for name in names}) == len(names)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("layers.{}.attention.kv_cache.keys", "…11.…keys"),
        ("net.{}.proj.weight", "…11.proj…"),
        ("encoder_stage.{}.self_attention_block.query_key_value.weight", "…11.…quer…"),
        ("encoder_stage.{}.pointwise_convolution", "…11.po…on"),
    ],
)
def test_equal_layers_differ_where_their_number_has_room(theme: Theme, name, least) -> None:
    metrics = QFontMetrics(theme.mono())
    names = [name.format(number) for number in (1, 2, 11)]
    for room in range(metrics.horizontalAdvance(least), metrics.horizontalAdvance(names[-1])):
        assert len({elided(one, metrics, room) for one in names}) == len(names)


def test_equal_layers_of_two_modules_differ_where_a_beginning_has_room(theme: Theme) -> None:
    metrics = QFontMetrics(theme.mono())
    last = "0.query_projection.weight"
    names = [f"{kind}_attention_layers.{last}" for kind in ("cross", "self")]
    for room in range(
        metrics.horizontalAdvance(f"cros…{last}"), metrics.horizontalAdvance(names[1])
    ):
        shown = [elided(one, metrics, room) for one in names]
        assert shown[0].startswith("cro")
        assert shown[1].startswith("self")
        assert all(one.endswith(last) and metrics.horizontalAdvance(one) <= room for one in shown)


def shown_table(qtbot, theme: Theme, width: int) -> tuple[TableView, QTableView]:
    table = TableView(theme, "operators")
    qtbot.addWidget(table)
    table.resize(width, 300)
    names = [f"aten_convolution_default_{number}" for number in range(30)]
    table.show_table(
        Table(
            (
                text_column("operator", names, mono=True),
                number_column("mean", range(30), Quantity.COUNT),
                share_column("share of method", [0.1] * 30),
                text_column("module", names),
            ),
            30,
        )
    )
    table.show()
    grid = table.findChild(QTableView)
    assert grid is not None
    return table, grid


def test_headings_are_not_cut_when_sorted(qtbot, theme: Theme) -> None:
    table = TableView(theme, "operators")
    qtbot.addWidget(table)
    table.resize(1200, 300)
    table.show_table(operators())
    table.show()
    grid = table.findChild(QTableView)
    assert grid is not None
    head = grid.horizontalHeader()
    for index in range(len(table.rows.columns)):
        table.sort_by(index, descending=True)
        assert head.sectionSize(index) >= head.sectionSizeHint(index)


def test_headings_of_a_narrow_tree_are_not_cut(qtbot, theme: Theme) -> None:
    view = TreeView(theme, "parts", name_width=160)
    qtbot.addWidget(view)
    names = ["forward", "one", "two"]
    rows = Table(
        (
            text_column("part", names),
            share_column("share of method", [1.0, 0.5, 0.5]),
            number_column("size", range(3), Quantity.COUNT),
        ),
        3,
    )
    view.show_tree(Tree(rows, np.array([-1, 0, 0], np.int64)))
    view.resize(380, 300)
    view.show()
    found = view.findChild(QTreeView)
    assert found is not None
    head = found.header()
    for index in (1, 2):
        view.sort_by(index, descending=True)
        assert head.sectionSize(index) >= head.sectionSizeHint(index)


def test_double_click_on_a_border_fits_the_column_for_good(qtbot, theme: Theme) -> None:
    table, grid = shown_table(qtbot, theme, 355)
    head = grid.horizontalHeader()
    longest = QFontMetrics(theme.mono()).horizontalAdvance("aten_convolution_default_29")
    assert head.sectionSize(0) < longest
    border = QPoint(head.sectionViewportPosition(0) + head.sectionSize(0) - 1, head.height() // 2)
    QTest.mouseDClick(head.viewport(), Qt.MouseButton.LeftButton, pos=border)
    assert head.sectionSize(0) > longest
    table.resize(365, 300)
    assert head.sectionSize(0) > longest


def test_columns_are_fitted_when_the_objects_of_their_parts_are_lost(qtbot, theme: Theme) -> None:
    table, grid = shown_table(qtbot, theme, 355)
    parts = [grid.horizontalHeader(), grid.viewport()]
    for part in parts:
        shiboken6.invalidate(part)  # Python's alone: Qt has its part
    assert not any(shiboken6.isValid(part) for part in parts)
    before = grid.columnWidth(0)
    table.resize(900, 300)
    assert grid.columnWidth(0) > before
    table.show_table(operators())


def test_double_click_on_a_border_fits_the_column_of_a_tree(qtbot, theme: Theme) -> None:
    view = TreeView(theme, "parts", name_width=120)
    qtbot.addWidget(view)
    view.resize(300, 300)
    names = ["forward", *(f"a_name_that_is_longer_than_most_{one}" for one in range(9))]
    rows = Table((text_column("part", names), number_column("size", range(10), Quantity.COUNT)), 10)
    view.show_tree(Tree(rows, np.array([-1] + [0] * 9, np.int64)))
    view.show()
    found = view.findChild(QTreeView)
    assert found is not None
    found.header().sectionHandleDoubleClicked.emit(0)
    assert found.columnWidth(0) > QFontMetrics(theme.sans()).horizontalAdvance(names[-1])
    view.resize(310, 300)
    assert found.columnWidth(0) > QFontMetrics(theme.sans()).horizontalAdvance(names[-1])


@pytest.mark.parametrize("width", [355, 2000])
def test_hover_shows_a_cell_that_is_cut(qtbot, theme: Theme, width: int) -> None:
    _, grid = shown_table(qtbot, theme, width)
    index = grid.model().index(12, 0)
    delegate = grid.itemDelegateForIndex(index)
    assert isinstance(delegate, CellDelegate)
    option = QStyleOptionViewItem()
    option.widget = grid
    option.rect = grid.visualRect(index)
    option.font = theme.sans()
    option.fontMetrics = QFontMetrics(theme.sans())
    left = "aten_convolution_default_12" if width == 355 else ""
    assert delegate.left_out(option, index) == left


def test_without_room_an_empty_column_is_the_first_to_go(qtbot, theme: Theme) -> None:
    table = TableView(theme, "outputs")
    qtbot.addWidget(table)
    table.show_table(
        Table(
            (
                text_column("operator", ["aten.convolution.default"] * 3, mono=True),
                badge_column("state", [None] * 3, tone=lambda _text: "bad"),
                number_column("max abs", range(3), Quantity.COUNT),
                number_column("signal to noise", range(3), Quantity.COUNT),
            ),
            3,
        )
    )
    table.show()
    grid = table.findChild(QTableView)
    assert grid is not None
    hidden = dict[int, list[bool]]()
    for width in (900, 375):
        table.resize(width, 300)
        hidden[width] = [grid.isColumnHidden(at) for at in range(4)]
    assert hidden == {900: [False] * 4, 375: [False, True, False, False]}


def test_names_are_whole_beside_a_column_of_few_words(qtbot, theme: Theme) -> None:
    table = TableView(theme, "outputs")
    qtbot.addWidget(table)
    rare = ["not compared", *[None] * 19]
    table.show_table(
        Table(
            (
                number_column("#", range(20), Quantity.COUNT),
                text_column("operator", ["split_with_sizes_copy"] * 20, width=20),
                text_column("node", ["aten_sigmoid_default_36"] * 20, mono=True),
                badge_column("state", rare, tone=lambda _text: "muted"),
                *(number_column(name, range(20), Quantity.COUNT) for name in ("all", "own")),
                share_column("outside", [0.0] * 20, missing=""),
                *(number_column(name, range(20), Quantity.COUNT) for name in ("SNR", "ULP")),
            ),
            20,
        )
    )
    table.show()
    table.resize(640, 300)
    grid = table.findChild(QTableView)
    assert grid is not None
    for at in (1, 2, 3):
        text = table.rows.text(0, at)
        font = theme.sans(FontSize.SMALL) if at == 3 else theme.mono() if at == 2 else theme.sans()
        needed = QFontMetrics(font).horizontalAdvance(text)
        assert needed + 12 <= grid.columnWidth(at) <= needed + 60
    assert not table.findChild(QTableView).isColumnHidden(5)


def test_a_long_sentence_gives_way_before_a_short_name() -> None:
    name, number, sentence = ColumnWidth(140, 190, 190), ColumnWidth(90, 90, 90), 420
    widths = fitted((name, number, ColumnWidth(110, sentence, 900)), 600)
    assert widths == [190, 90, 320]
    assert fitted((name, number, ColumnWidth(110, sentence, 900)), 1000) == [190, 90, 720]


def test_bars_give_way_before_names_and_no_further_than_their_figures() -> None:
    name, bar = ColumnWidth(140, 300, 300), ColumnWidth(92, 160, 160, short=92)
    assert fitted((name, bar), 460) == [300, 160]
    assert fitted((name, bar), 400) == [300, 100]
    assert fitted((name, bar), 300) == [208, 92]
    assert fitted((name, bar), 600) == [300, 160]


def test_operators_lose_their_library_before_nodes_are_cut(qtbot, theme: Theme) -> None:
    table = TableView(theme, "outputs")
    qtbot.addWidget(table)
    nodes = [f"dequantize_per_channel_default_{number}" for number in range(20)]
    called = "  quantized_decomposed.dequantize_per_channel"
    columns = (text_column("operator", [called] * 20), text_column("node", nodes, mono=True))
    table.show_table(Table(columns, 20))
    table.show()
    table.resize(460, 300)
    grid = table.findChild(QTableView)
    assert grid is not None
    short = QFontMetrics(theme.sans()).horizontalAdvance("  …dequantize_per_channel")
    node = QFontMetrics(theme.mono()).horizontalAdvance(nodes[-1])
    assert grid.columnWidth(0) >= short + 12
    assert grid.columnWidth(1) >= node + 12


@pytest.mark.parametrize("kind", [TableView, TreeView])
def test_a_column_of_missing_figures_gives_way_where_another_is_cut(qtbot, theme, kind) -> None:
    view = kind(theme, "rates")
    qtbot.addWidget(view)
    names = [f"encoder.{number}.attention.projection.weight" for number in range(4)]
    missing = [float("nan")] * 4
    columns = (
        text_column("operator", names),
        number_column("FLOPs", missing, Quantity.COUNT),
        share_column("share of limit", missing),
        text_column("module", names),
    )
    table = Table(columns, 4)
    if isinstance(view, TableView):
        view.show_table(table)
    else:
        view.show_tree(Tree(table, np.full(4, -1)))
    view.show()
    inner = view.findChild(QTableView) or view.findChild(QTreeView)
    for width, hidden in ((1200, False), (520, True)):
        view.resize(width, 300)
        assert [inner.isColumnHidden(at) for at in range(4)] == [False, hidden, hidden, False]


@pytest.mark.parametrize("kind", [TableView, TreeView])
def test_a_name_leaves_room_for_the_column_behind_it(qtbot, theme, kind) -> None:
    usual = theme.size
    try:
        theme.set_size(2 * usual)
        view = kind(theme, "parts")
        qtbot.addWidget(view)
        names = [f"encoder.{number}.attention.projection.weight" for number in range(4)]
        size = number_column("size", [1e3, 2e4, 3e5, 4e6], Quantity.SIZE)
        table = Table((text_column("part", names), size, text_column("module", names)), 4)
        if isinstance(view, TableView):
            view.show_table(table)
        else:
            view.show_tree(Tree(table, np.full(4, -1)))
        view.resize(424, 300)
        view.show()
        inner = view.findChild(QTableView) or view.findChild(QTreeView)
        assert [inner.isColumnHidden(at) for at in range(3)] == [False, False, True]
        assert inner.columnWidth(0) + inner.columnWidth(1) <= inner.viewport().width()
    finally:
        theme.set_size(usual)


def test_shapes_are_whole_before_further_columns_are_shown(qtbot, theme: Theme) -> None:
    table = TableView(theme, "tensors")
    qtbot.addWidget(table)
    names = [f"aten_convolution_default_{number}" for number in range(8)]
    shapes = [f"f32 [1, {number}, 64, 64]" for number in range(10, 17)]
    several = [*shapes, "f32 [1, 16, 64, 64], f32 [1, 16, 64], f32 [1, 16]"]
    columns = (
        text_column("node", names),
        text_column("value", several, width=14),
        text_column("source", names),
    )
    table.show_table(Table(columns, 8))
    table.show()
    grid = table.findChild(QTableView)
    assert grid is not None
    whole = QFontMetrics(theme.sans()).horizontalAdvance(shapes[0]) + 20
    seen = set[bool]()
    for width in range(260, 800, 20):
        table.resize(width, 300)
        seen.add(grid.isColumnHidden(2))
        assert grid.columnWidth(1) >= whole or grid.isColumnHidden(1)
    assert seen == {True, False}


def test_a_column_of_short_words_is_no_wider_than_they_are(qtbot, theme: Theme) -> None:
    table = TableView(theme, "stages")
    qtbot.addWidget(table)
    names = [f"aten_convolution_default_{number}" for number in range(4)]
    words = ("load", "export", "edge", "emit")
    table.show_table(Table((text_column("stage", words), text_column("node", names)), 4))
    table.show()
    grid = table.findChild(QTableView)
    assert grid is not None
    table.resize(300, 300)
    assert grid.columnWidth(0) < QFontMetrics(theme.sans()).horizontalAdvance("export") + 40
    longest = QFontMetrics(theme.sans()).horizontalAdvance(names[-1])
    assert grid.columnWidth(1) > longest


def test_an_empty_column_gives_way_where_another_is_cut(qtbot, theme: Theme) -> None:
    table = TableView(theme, "values")
    qtbot.addWidget(table)
    names = [f"encoder.{number}.attention.projection.weight" for number in range(4)]
    columns = (text_column("value", names), text_column("shares with", [""] * 4))
    table.show_table(Table((*columns, text_column("source", names)), 4))
    table.show()
    grid = table.findChild(QTableView)
    assert grid is not None
    for width, hidden in ((1200, False), (480, True)):
        table.resize(width, 300)
        assert grid.isColumnHidden(1) is hidden
        assert not grid.isColumnHidden(2)


def test_columns_are_fitted_again_when_they_come_into_sight(qtbot, theme: Theme) -> None:
    table, grid = shown_table(qtbot, theme, 600)
    grid.horizontalHeader().resizeSection(0, 900)  # as if for another width, which Qt did not tell
    QApplication.processEvents()
    assert grid.horizontalScrollBar().maximum() > 0
    table.hide()
    table.show()
    QApplication.processEvents()
    assert grid.horizontalScrollBar().maximum() == 0


@pytest.mark.parametrize("width", [900, 1100, 1239])
def test_columns_without_room_leave_no_scroll_bar(qtbot, theme: Theme, width: int) -> None:
    table = TableView(theme, "figures")
    qtbot.addWidget(table)
    table.resize(width, 300)
    numbers = [number_column(f"figure number {at}", range(3), Quantity.COUNT) for at in range(14)]
    name, note = (text_column(title, ["aten.erf.out"] * 3) for title in ("operator", "note"))
    table.show_table(Table((name, *numbers, note), 3))
    table.show()
    grid = table.findChild(QTableView)
    assert grid is not None
    assert any(grid.isColumnHidden(at) for at in range(16))
    QApplication.processEvents()
    assert grid.horizontalScrollBar().maximum() == 0


def test_names_and_sizes_of_files_are_whole_in_their_panel(qtbot, theme: Theme) -> None:
    view = TableView(theme, "files")
    qtbot.addWidget(view)
    view.set_plain()
    view.show()
    grid = view.findChild(QTableView)
    names = ["model.etrecord", "model.pte"]
    sizes = text_column("size", ["1.251 MiB", "47.13 KiB"], mono=True)
    view.show_table(Table((text_column("name", names, mono=True), sizes), 2))
    view.resize(216, 200)  # the panel of files
    QApplication.processEvents()
    for column in range(2):
        cell = grid.model().index(0, column)
        option = QStyleOptionViewItem()
        grid.initViewItemOption(option)
        option.rect = grid.visualRect(cell)
        assert grid.itemDelegateForIndex(cell).left_out(option, cell) == ""


@pytest.mark.parametrize("width", range(480, 1500, 60))
def test_names_are_whole_before_another_column_comes(qtbot, theme: Theme, width: int) -> None:
    table = TableView(theme, "values")
    qtbot.addWidget(table)
    names = [f"aten_upsample_nearest2d_vec_{number}" for number in range(4)]
    makers = ["XNNPACK 0", "aten.upsample_nearest2d.vec_out"] * 2
    numbers = (number_column(f"figure {at}", range(4), Quantity.COUNT) for at in range(8))
    columns = (
        text_column("value", names, mono=True),
        number_column("size", range(4), Quantity.COUNT),
        text_column("producer", makers),
        *numbers,
    )
    table.show_table(Table(columns, 4))
    table.resize(width, 300)
    table.show()
    grid = table.findChild(QTableView)
    assert grid is not None
    further = not grid.isColumnHidden(4)
    name = QFontMetrics(theme.mono()).horizontalAdvance(names[0])
    maker = QFontMetrics(theme.sans()).horizontalAdvance("upsample_nearest2d…")
    quarter = grid.viewport().width() // 4
    if further and name <= quarter:
        assert grid.columnWidth(0) >= name
    if further:
        assert grid.columnWidth(2) >= maker
    assert further or width < 900


def test_worst_elements_fit_a_narrow_view_with_their_difference(qtbot, theme: Theme) -> None:
    worst = (("[0, 127, 31, 31]", -0.47481, -0.47482, -6.855e-07),) * 9
    look = TensorLook(np.zeros(1, np.int64), 0.0, 1.0, np.zeros((1, 1)), worst, (1,))
    table = TableView(theme, "worst elements")
    qtbot.addWidget(table)
    table.hide_tools(folds=True)
    table.show_table(look_table(look))
    table.show()
    grid = table.findChild(QTableView)
    assert grid is not None
    for width in range(260, 600, 20):
        table.resize(width, 300)
        QApplication.processEvents()
        assert grid.horizontalScrollBar().maximum() == 0
        assert [grid.isColumnHidden(at) for at in range(2)] == [False, False]
    assert table.rows.columns[1].title == "difference"  # what is hidden last beside the index


def test_the_menu_of_headings_needs_no_wrapper_that_was_kept(
    qtbot, theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: shown.append(menu))
    table = TableView(theme, "operators")
    qtbot.addWidget(table)
    table.show_table(operators())
    table.show()
    shiboken6.invalidate(table._grid.horizontalHeader())  # what Python knows of it is gone
    table._grid.horizontalHeader().customContextMenuRequested.emit(QPoint(5, 5))
    assert len(shown) == 1
