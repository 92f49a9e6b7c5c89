"""What views look like where a picture showed that they did not look right."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QTableView

from devtools_app.appearance.colour_maps import sequential_map
from devtools_app.appearance.theme import Theme
from devtools_app.viewmodels.canvas_data import LegendEntry, Swatch
from devtools_app.viewmodels.memory_map import memory_map
from devtools_app.viewmodels.scene import graph_scene
from devtools_app.viewmodels.scene_clusters import BRANCH, DELEGATE, nested_delegates
from devtools_app.viewmodels.scene_search import whole_delegate
from devtools_app.viewmodels.timeline import one_run
from devtools_app.widgets.column_fit import ColumnWidth, fitted
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.filter_box import FilterBox
from devtools_app.widgets.hex_view import HexView
from devtools_app.widgets.legend import Legend, line_places
from devtools_app.widgets.table_view import TableView
from inspector.cli.main import main as cli
from inspector.graph.model_graph import COMPILED, GraphRegion
from inspector.profile.block_names import block_labels
from inspector.profile.timeline_runs import timeline_runs
from inspector.tables.events import all_events
from inspector.tables.filter import parse_filter
from inspector.tables.grouping import group_rows
from inspector.tables.memory import memory_plan, value_names
from inspector.tables.operators import operators_table
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import Units
from inspector.tables.table import Table, share_column, text_column
from inspector.trace.blocks import trace_blocks
from inspector.units import format_time
from tests.app.sessions import DATA, opened
from tests.app.tables import operators

WIDTHS = st.lists(
    st.builds(
        lambda least, more, rest, bar: ColumnWidth(
            least, least + more, least + more + (0 if bar else rest), short=least if bar else 0
        ),
        st.integers(20, 200),
        st.integers(0, 200),
        st.integers(0, 300),
        st.booleans(),
    ),
    min_size=1,
    max_size=20,
)


@given(WIDTHS, st.integers(0, 3000))
def test_fitted_columns_stay_within_their_limits_and_use_the_room(
    columns: list[ColumnWidth], room: int
) -> None:
    widths = fitted(columns, room)
    assert len(widths) == len(columns)
    for width, column in zip(widths, columns, strict=True):
        assert column.least <= width <= column.most
    least = sum(column.least for column in columns)
    if least <= room:
        assert sum(widths) <= room
        short = room - sum(widths)
        assert short <= len(columns) or all(
            width == column.most for width, column in zip(widths, columns, strict=True)
        )


@given(WIDTHS, st.integers(100, 3000))
def test_fitted_columns_show_as_many_of_the_first_as_there_is_room_for(
    columns: list[ColumnWidth], room: int
) -> None:
    widths = fitted(columns, room)
    ends, least = np.cumsum(widths), np.cumsum([column.least for column in columns])
    assert ((ends <= room) >= (least <= room)).all()


def test_table_of_a_narrow_window_shows_numbers_uncut_and_shortens_names(
    qtbot, theme: Theme
) -> None:
    table = TableView(theme, "operators")
    qtbot.addWidget(table)
    table.resize(1200, 300)
    table.show_table(operators())
    table.show()
    grid = table.findChild(QTableView)
    wide = [grid.columnWidth(column) for column in range(6)]
    table.resize(460, 300)
    narrow = [grid.columnWidth(column) for column in range(6)]
    assert narrow[2:4] == wide[2:4]
    assert sum(narrow) < sum(wide)


def test_table_of_a_narrow_window_tells_delegates_apart(qtbot, theme: Theme) -> None:
    table = TableView(theme, "operators")
    qtbot.addWidget(table)
    table.resize(300, 300)
    delegates = [f"XNNPACK {number}" for number in range(120)]
    names = [f"aten.native_layer_norm.default {number}" for number in range(120)]
    table.show_table(
        Table((text_column("operator", names), text_column("delegate", delegates)), 120)
    )
    table.show()
    needed = QFontMetrics(theme.sans()).horizontalAdvance("XNNPACK 119")
    assert table.findChild(QTableView).columnWidth(1) > needed


def test_share_bars_are_drawn_against_the_largest_share() -> None:
    assert share_column("share", np.array([0.01, 0.04, np.nan])).full == pytest.approx(0.04)
    assert share_column("share", [None, None]).full == 1.0
    assert share_column("share", [0.2, 1.7]).full == 1.0


def test_elided_label_ends_in_an_ellipsis_instead_of_being_cut_off(qtbot) -> None:
    label = ElidedLabel()
    qtbot.addWidget(label)
    label.setText("39 nodes of the ETRecord")
    label.resize(60, 20)
    assert label.shown.endswith("…")
    label.resize(600, 20)
    assert label.shown == label.text()


@pytest.mark.parametrize("width", [120, 260, 700])
def test_legend_line_wraps_and_stays_inside_its_width(qtbot, theme: Theme, width: int) -> None:
    entries = [LegendEntry(f"made by backend {n}", Swatch.FILL, n) for n in range(5)]
    places = line_places(entries, theme.canvas, width)
    assert all(x < width for x, _ in places)
    assert len({y for _, y in places}) > 1 or width == 700
    legend = Legend(theme.canvas, line=True)
    qtbot.addWidget(legend)
    legend.resize(width, 10)
    legend.set_entries(entries)
    assert legend.height() > places[-1][1]


def test_light_ramp_begins_next_to_the_ground_so_that_little_is_quiet() -> None:
    first = sequential_map(False)[0].astype(int)
    assert first.min() > 220
    assert np.ptp(first) < 25


def test_fonts_draw_hexadecimal_prefixes_as_they_are(theme: Theme) -> None:
    for font in (theme.mono(), theme.sans(), theme.sans(strong=True)):
        assert {tag.toString().data().decode() for tag in font.featureTags()} >= {"calt", "liga"}
        assert all(font.featureValue(tag) == 0 for tag in font.featureTags())


def test_operators_are_found_by_the_names_the_record_gives_them() -> None:
    made = operators_table(opened("corpus/v1.5.1/tinygpt_xnnpack"), "forward", Units())
    order = RowOrder(made.table).prepare()
    found = order.rows((), parse_filter("linear", made.table))
    names = {made.table.text(row, 0) for row in found.tolist()}
    assert any(name.startswith("Fully Connected") for name in names)


def _region(kind: str, key: str) -> GraphRegion:
    delegate = int(key.split()[1]) if kind == DELEGATE else None
    return GraphRegion(key, key, kind, delegate)


def _inside(delegate: int, *modules: str) -> tuple[GraphRegion, ...]:
    own = _region(DELEGATE, f"delegate {delegate}")
    return (own, *(_region("module", f"delegate {delegate}:{name}") for name in modules))


def _outside(*modules: str) -> tuple[GraphRegion, ...]:
    return tuple(_region("module", name) for name in modules)


def _keys(regions: Sequence[tuple[GraphRegion, ...]]) -> list[list[str]]:
    return [[region.key for region in own] for own in regions]


def test_delegates_move_into_the_module_that_holds_them_and_something_else() -> None:
    found = nested_delegates(
        [
            _outside("h", "h.0"),
            _inside(0, "h", "h.0", "h.0.mlp"),
            _inside(0, "h", "h.0", "h.0.mlp"),
            _inside(1, "h", "h.0"),
            _inside(1, "h", "h.1"),
            _inside(2),
        ]
    )
    assert _keys(found) == [
        ["h", "h.0"],
        ["h", "h.0", "delegate 0", "delegate 0:h.0.mlp"],
        ["h", "h.0", "delegate 0", "delegate 0:h.0.mlp"],
        ["h", "delegate 1", "delegate 1:h.0"],
        ["h", "delegate 1", "delegate 1:h.1"],
        ["delegate 2"],
    ]


def test_a_box_with_delegates_takes_as_long_as_their_calls_and_its_operators() -> None:
    session = opened("corpus/v1.5.1/tinygpt_xnnpack")
    made = graph_scene(session, "forward", COMPILED)
    assert made is not None
    tree, regions = made.scene.tree, made.clusters.regions
    outer = [
        path
        for path in tree.paths
        if any(
            len(below) > len(path) > 0
            and below[: len(path)] == path
            and regions[below].kind == DELEGATE
            for below in tree.paths
        )
    ]
    assert outer
    for path in outer:
        calls = {
            regions[below].delegate
            for below in tree.paths
            if below[: len(path)] == path and below and regions[below].kind == DELEGATE
        }
        own = sum(
            ns
            for node, ns in zip(made.graph.nodes, made.times.node_ns.tolist(), strict=True)
            if tree.paths[int(tree.node_cluster[node.id])][: len(path)] == path
            and node.delegate is None
            and not np.isnan(ns)
        )
        whole = own + sum(made.times.delegate_ns.get(one or 0, 0.0) for one in calls)
        assert format_time(whole) in made.scene.cluster_info(path).detail
        assert made.scene.cluster_info(path).share is None  # these runs logged values


def test_branches_hang_below_the_operator_they_belong_to() -> None:
    made = graph_scene(opened("corpus/special/control_flow"), "forward", COMPILED)
    assert made is not None
    branches = [r for r in made.clusters.regions.values() if r.kind == BRANCH]
    assert len(branches) == 3
    titles = {made.clusters.titles[p] for p, r in made.clusters.regions.items() if r.kind == BRANCH}
    assert "cond · submodule_0" in titles
    names = made.scene.names
    ends = {(names[a], names[b]) for a, b in made.scene.edges.tolist()}
    assert ("cond", "cond/submodule_0/x") in ends


def test_operators_of_a_lowered_graph_in_the_record_have_their_times() -> None:
    made = graph_scene(opened("corpus/special/xnnpack_two_delegates"), "forward", COMPILED)
    assert made is not None
    timed = {
        node.name.rsplit("/", 1)[-1]
        for node, ns in zip(made.graph.nodes, made.times.node_ns.tolist(), strict=True)
        if ns > 0
    }
    assert {"aten_convolution_default", "aten_linear_default", "aten_mean_dim"} <= timed


@pytest.mark.parametrize("folder", ["v1.5.1/tinygpt_xnnpack", "v1.5.1/convnet_portable"])
def test_memory_names_values_as_the_command_line_does(folder: str, capsys) -> None:
    session = opened(f"corpus/{folder}")
    plan = memory_plan(session, "forward")
    assert plan is not None
    made = memory_map(session, plan, 0)
    files = [str(DATA / "corpus" / folder)]
    assert cli(["memory", *files, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)["data"]["methods"]["forward"]["arenas"][0]
    assert list(made.data.names) == [value["name"] for value in told["values"]]
    assert any(
        name != value.name for name, value in zip(made.data.names, made.arena.values, strict=True)
    )
    lone = opened(f"corpus/{folder}/model.pte")
    values = made.arena.values
    assert value_names(lone, "forward", values) == tuple(value.name for value in values)


@pytest.mark.parametrize("folder", ["bundled_cases", "two_methods_xnnpack", "nested_branches"])
def test_blocks_of_one_name_stay_apart_when_grouped(folder: str) -> None:
    session = opened(f"extra/{folder}")
    blocks = trace_blocks(session.dumps).blocks
    labels = block_labels(blocks)
    assert len(set(labels)) == len(labels)
    assert any(" #2" in label for label in labels)
    made = all_events(session, session.methods[0], Units())
    titles = [column.title for column in made.table.columns]
    order = RowOrder(made.table).prepare()
    rows = np.arange(made.table.length)
    tree = group_rows(order, titles.index("block"), rows)
    heads = [tree.rows.key(row) for row in np.flatnonzero(tree.parents < 0).tolist()]
    assert sorted(head.label for head in heads) == sorted(labels)


def test_delegate_calls_of_a_trace_alone_are_not_shown_as_not_delegated() -> None:
    session = opened("corpus/v1.5.1/tinygpt_xnnpack/run.etdp")
    runs = timeline_runs(session, "")
    made = one_run(session, tuple(run for run in runs if run.executes)[:1])
    assert "delegate, backend unknown" in {entry.label for entry in made.legend}


def test_a_delegate_is_recognised_by_all_of_its_nodes() -> None:
    made = graph_scene(opened("corpus/v1.5.1/tinygpt_xnnpack"), "forward", COMPILED)
    assert made is not None
    own: dict[int, list[str]] = {}
    for node in made.graph.nodes:
        if node.delegate is not None:
            own.setdefault(node.delegate, []).append(node.name)
    index, names = next((one, two) for one, two in own.items() if len(two) > 2)
    assert whole_delegate(made, tuple(names)) == index
    assert whole_delegate(made, tuple(names[1:])) is None
    assert whole_delegate(made, ()) is None
    assert whole_delegate(made, (*names, made.graph.nodes[0].name)) is None


def test_hex_view_halves_its_rows_where_sixteen_bytes_do_not_fit(qtbot, theme: Theme) -> None:
    view = HexView(theme)
    qtbot.addWidget(view)
    view.resize(900, 200)
    view.show()
    view.show_data(memoryview(bytes(range(256)) * 16))
    wide = view.verticalScrollBar().maximum() + view.verticalScrollBar().pageStep()
    view.go_to(1024)
    view.verticalScrollBar().setValue(1024 // 16)
    view.resize(330, 200)
    assert view.verticalScrollBar().maximum() + view.verticalScrollBar().pageStep() == 2 * wide
    assert view.verticalScrollBar().value() == 1024 // 8
    assert view.cursor_offset == 1024
    qtbot.keyClick(view, Qt.Key.Key_Down)
    assert view.cursor_offset == 1032


def test_filter_shows_a_condition_that_its_table_understands(qtbot, theme: Theme) -> None:
    table = TableView(theme, "operators")
    qtbot.addWidget(table)
    table.resize(900, 300)
    table.show_table(operators())
    table.show()
    field = table.findChild(FilterBox)
    assert "p50>" in field.placeholderText()
    table.show_table(Table((text_column("message", ["odd"]),), 1, noun="issues"))
    assert ">" not in field.placeholderText()
    field.setFixedWidth(70)
    assert field.placeholderText() == "filter"
