"""The graph canvas: what is drawn where, what mouse and keys do, what is exported."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from devtools_app.appearance.colours import NOT_DELEGATED
from devtools_app.appearance.look import BASE_SIZE
from devtools_app.viewmodels.canvas_data import GraphOverlay, LegendEntry, Swatch
from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.viewmodels.layout.cluster_tree import collapse, expand_all
from devtools_app.viewmodels.layout.engine import lay_out
from devtools_app.viewmodels.layout.scene_graph import (
    ClusterInfo,
    SceneEdge,
    SceneGraph,
    SceneNode,
    scene_graph,
)
from devtools_app.widgets.graph_canvas import GraphCanvas
from devtools_app.widgets.graph_canvas_pick import NOTHING, item_at
from devtools_app.widgets.graph_canvas_text import TextCache
from tests.app.canvas_colours import colours
from tests.app.layout_scenes import transformer

pytestmark = pytest.mark.gui
DELEGATE = ("d0",)


def sample() -> SceneGraph:
    """Return input, a delegate of two nodes, an operator outside, and output."""
    nodes = [
        SceneNode("x", "x", "input"),
        SceneNode("conv", "Convolution", "0.2 ms", DELEGATE, 0),
        SceneNode("relu", "Clamp", "0.1 ms", DELEGATE, 0),
        SceneNode("erf", "aten.erf", "0.5 ms", (), NOT_DELEGATED),
        SceneNode("out", "output"),
    ]
    pairs = [("x", "conv"), ("conv", "relu"), ("relu", "erf"), ("erf", "out")]
    edges = [SceneEdge(a, b, "98.0 KiB", 100352, emphasised=a == "relu") for a, b in pairs]
    info = {DELEGATE: ClusterInfo("XNNPACK · delegate 0", "2 nodes · 0.3 ms", 0)}
    return scene_graph(nodes, edges, info)


@pytest.fixture
def canvas(qtbot: QtBot) -> GraphCanvas:
    widget = GraphCanvas(colours())
    widget.resize(900, 700)
    qtbot.addWidget(widget)
    scene = sample()
    widget.set_graph(lay_out(scene, expand_all(scene.tree)))
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def screen(canvas: GraphCanvas, name: str) -> QPoint:
    placed = canvas.placed
    assert placed is not None
    x, y, w, h = placed.boxes[placed.scene.index[name]].tolist()
    return QPointF(*canvas.camera.to_screen(x + w / 2, y + h / 2)).toPoint()


def texts(path: Path) -> list[str]:
    return ["".join(node.itertext()) for node in ET.parse(path).iter() if node.tag.endswith("text")]


def differing(a: QImage, b: QImage) -> int:
    one, two = (np.frombuffer(image.constBits(), np.uint32) for image in (a, b))
    return int((one != two).sum())


@pytest.mark.parametrize("text", [1.0, 2.0])
def test_a_clicked_node_stays_below_the_pointer_when_a_bar_above_grows(
    qtbot: QtBot, canvas: GraphCanvas, text: float
) -> None:
    window, bar, widget = QWidget(), QWidget(), canvas
    qtbot.addWidget(window)
    widget.set_colours(colours(text=round(text * BASE_SIZE)))
    rows = QVBoxLayout(window)
    rows.addWidget(bar)
    rows.addWidget(widget)
    bar.setFixedHeight(20)
    window.resize(900, 700)
    window.show()
    qtbot.waitExposed(window)

    def place() -> QPoint:
        return widget.mapTo(window, screen(widget, "conv") * text)

    widget.fit()
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=screen(widget, "conv") * text)
    before = place()
    for height in (58, 20):
        bar.setFixedHeight(height)
        qtbot.waitUntil(lambda height=height: widget.y() - bar.y() >= height)
        assert (place() - before).manhattanLength() <= 2
    widget.setParent(None)  # each is closed by itself


# -- drawing


def test_canvas_empty_says_so_to_a_screen_reader(qtbot: QtBot, tmp_path: Path) -> None:
    widget = GraphCanvas(colours())
    qtbot.addWidget(widget)
    widget.set_graph(lay_out(scene_graph([]), frozenset()))
    assert widget.accessibleName() == "Graph"
    assert widget.accessibleDescription() == "Nothing to draw"
    widget.render_to_svg(tmp_path / "empty.svg")
    assert not texts(tmp_path / "empty.svg")


def test_canvas_svg_holds_titles_details_and_sizes(canvas: GraphCanvas, tmp_path: Path) -> None:
    canvas.set_camera(Camera(-20.0, -20.0, 1.0, 1.0))
    canvas.render_to_svg(tmp_path / "graph.svg")
    found = texts(tmp_path / "graph.svg")
    for text in ("Convolution", "0.5 ms", "XNNPACK · delegate 0", "2 nodes · 0.3 ms", "98.0 KiB"):
        assert any(text in line for line in found), text


def test_canvas_far_away_draws_no_node_text(canvas: GraphCanvas, tmp_path: Path) -> None:
    canvas.set_camera(Camera(-20.0, -20.0, 0.3, 0.3))
    canvas.render_to_svg(tmp_path / "graph.svg")
    assert not any("Convolution" in line for line in texts(tmp_path / "graph.svg"))


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
def test_render_to_png_has_the_size_asked_for(
    canvas: GraphCanvas, tmp_path: Path, scale: float
) -> None:
    canvas.render_to_png(tmp_path / "graph.png", scale)
    image = QImage(str(tmp_path / "graph.png"))
    assert (image.width(), image.height()) == (round(900 * scale), round(700 * scale))


def test_render_to_png_into_nowhere_is_an_error(canvas: GraphCanvas, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        canvas.render_to_png(tmp_path / "no" / "graph.png")


@pytest.mark.parametrize("name", ["whole.png", "whole.svg"])
def test_render_whole_leaves_the_view_alone(canvas: GraphCanvas, tmp_path: Path, name: str) -> None:
    before = canvas.camera
    canvas.render_whole(tmp_path / name)
    assert (tmp_path / name).stat().st_size > 500
    assert canvas.camera == before


@pytest.mark.parametrize("dark", [False, True])
def test_canvas_node_shows_its_colour(canvas: GraphCanvas, dark: bool) -> None:
    canvas.set_colours(colours(dark=dark))
    at = screen(canvas, "x") + QPoint(40, 0)
    image = canvas.render_to_image(1.0)
    assert image.pixelColor(at) == QColor(colours(dark=dark).raised)


def test_canvas_overlay_fills_nodes_with_the_colour_map(canvas: GraphCanvas) -> None:
    values = np.array([np.nan, 0.0, np.nan, 1.0, np.nan])
    canvas.set_overlay(GraphOverlay("time", values=values))
    image = canvas.render_to_image(1.0)
    palette = colours()
    for name, row in (("conv", 0), ("erf", 255)):
        fill = QColor(*palette.sequential[row].tolist())
        assert image.pixelColor(screen(canvas, name) + QPoint(45, 0)) == fill
    assert image.pixelColor(screen(canvas, "x") + QPoint(45, 0)) == QColor(palette.raised)


def test_canvas_closed_cluster_shows_the_largest_value_and_the_sum_of_shares(
    canvas: GraphCanvas,
) -> None:
    scene = sample()
    placed = lay_out(scene, frozenset())
    values = np.array([np.nan, 0.0, 1.0, np.nan, np.nan])
    shares = np.array([np.nan, 0.25, 0.5, np.nan, np.nan])
    canvas.set_overlay(GraphOverlay("time", values=values, shares=shares))
    canvas.set_graph(placed)
    picture = canvas._drawing
    assert picture is not None
    item = int(placed.clusters[0])
    assert picture.look.shares[item] == pytest.approx(0.75)
    assert picture.look.fill_of(item) == "#fde725"


def test_canvas_overlay_for_another_graph_waits(canvas: GraphCanvas) -> None:
    canvas.set_overlay(GraphOverlay("time", values=np.ones(99)))
    before = canvas.render_to_image(1.0)
    canvas.set_overlay(GraphOverlay())
    assert differing(before, canvas.render_to_image(1.0)) == 0


def test_canvas_legend_shows_entries_and_is_exported(canvas: GraphCanvas, tmp_path: Path) -> None:
    entries = (
        LegendEntry("XNNPACK", Swatch.REGION, 0),
        LegendEntry("time", Swatch.RAMP, low="1 µs", high="2 ms"),
        LegendEntry("unattributed", Swatch.HATCH),
    )
    canvas.set_overlay(GraphOverlay("backend", legend=entries))
    assert canvas.legend.isVisible()
    assert "XNNPACK" in canvas.legend.accessibleDescription()
    canvas.render_to_svg(tmp_path / "graph.svg")
    found = texts(tmp_path / "graph.svg")
    assert {"XNNPACK", "1 µs", "2 ms", "unattributed"} <= {line.strip() for line in found}


def test_canvas_found_nodes_are_ringed_until_the_search_ends(canvas: GraphCanvas) -> None:
    before = canvas.render_to_image(1.0)
    canvas.set_found(["erf", "not there"])
    assert differing(before, canvas.render_to_image(1.0)) > 100
    canvas.set_found(None)
    assert differing(before, canvas.render_to_image(1.0)) == 0


# -- selection


def test_click_selects_the_node_and_tells_its_name(canvas: GraphCanvas, qtbot: QtBot) -> None:
    with qtbot.waitSignal(canvas.selected) as told:
        qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=screen(canvas, "erf"))
    assert told.args == ["erf"]
    assert "Selected: erf" in canvas.accessibleDescription()


def test_click_on_nothing_takes_the_selection_back(canvas: GraphCanvas, qtbot: QtBot) -> None:
    canvas.set_selected("erf")
    with qtbot.waitSignal(canvas.selected) as told:
        qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(3, 690))
    assert told.args == [""]


def test_set_selected_tells_nobody(canvas: GraphCanvas, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(canvas.selected):
        canvas.set_selected("conv")
    placed = canvas.placed
    assert placed is not None
    assert canvas.selected_item == placed.scene.index["conv"]


def test_selected_node_in_closed_cluster_marks_the_cluster(canvas: GraphCanvas) -> None:
    canvas.set_selected("conv")
    scene = canvas.placed.scene if canvas.placed else sample()
    closed = lay_out(scene, frozenset())
    canvas.set_graph(closed, DELEGATE)
    assert canvas.selected_item == int(closed.clusters[0])
    canvas.set_graph(lay_out(scene, expand_all(scene.tree)), DELEGATE)
    assert canvas.selected_item == scene.index["conv"]


def test_double_click_on_cluster_asks_to_toggle_it(canvas: GraphCanvas, qtbot: QtBot) -> None:
    placed = canvas.placed
    assert placed is not None
    x, y, _, _ = placed.boxes[int(placed.clusters[0])].tolist()
    at = QPointF(*canvas.camera.to_screen(x + 8, y + 6)).toPoint()
    with qtbot.waitSignal(canvas.toggle_requested) as told:
        qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=at)
    assert told.args == [DELEGATE]


@pytest.mark.parametrize("menu", [False, True])
@pytest.mark.parametrize("name", ["x", "conv", "erf"])
def test_a_click_keeps_a_box_below_the_pointer_when_a_panel_takes_room(
    canvas: GraphCanvas, qtbot: QtBot, name: str, menu: bool
) -> None:
    canvas.grab()
    before = screen(canvas, name)
    canvas.resize(700, 500)
    assert screen(canvas, name) != before  # nothing was chosen: all of it is fitted again
    canvas.resize(900, 700)
    assert screen(canvas, name) == before
    if menu:
        canvas.choose_for_menu(QPointF(before))
    else:
        qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=before)
    assert canvas.placed is not None
    assert canvas.selected_item == canvas.placed.scene.index[name]
    canvas.resize(700, 700)
    assert screen(canvas, name) == before
    canvas.fit()
    canvas.resize(900, 700)
    assert screen(canvas, name) == before


def test_toggle_keeps_the_cluster_in_its_place(canvas: GraphCanvas) -> None:
    scene = transformer(6)
    canvas.set_graph(lay_out(scene, expand_all(scene.tree)))
    path = ("model", "layers.3")
    item = len(scene.names) + scene.tree.index[path]

    def place() -> tuple[float, float]:
        assert canvas.placed is not None
        x, y, w, _ = canvas.placed.boxes[item].tolist()
        return canvas.camera.to_screen(x + w / 2, y)

    before = place()
    canvas.set_graph(lay_out(scene, collapse(expand_all(scene.tree), path)), path)
    assert place() == pytest.approx(before, abs=0.5)


def test_hover_tells_the_name_and_leaving_ends_it(canvas: GraphCanvas, qtbot: QtBot) -> None:
    with qtbot.waitSignal(canvas.hovered) as told:
        qtbot.mouseMove(canvas, screen(canvas, "erf"))
    assert told.args == ["erf"]


def test_tip_shows_unshortened_text(canvas: GraphCanvas) -> None:
    tip = canvas.tip_at(QPointF(screen(canvas, "conv")))
    assert tip.splitlines() == ["Convolution", "0.2 ms", "conv"]


def test_click_on_stub_goes_to_the_other_end(qtbot: QtBot) -> None:
    scene = transformer(12)
    widget = GraphCanvas(colours())
    widget.resize(900, 700)
    qtbot.addWidget(widget)
    placed = lay_out(scene, expand_all(scene.tree))
    widget.set_graph(placed)
    stub = int(np.flatnonzero(~placed.stubs.leaves)[3])
    x, y, w, h = placed.stubs.boxes[stub].tolist()
    widget.set_camera(Camera(x - 300, y - 300, 1.0, 1.0))
    with qtbot.waitSignal(widget.selected) as told:
        at = QPoint(300 + round(w / 2), 300 + round(h / 2))
        qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=at)
    assert told.args == ["mask"]


# -- keys


def press(canvas: GraphCanvas, qtbot: QtBot, *keys: Qt.Key) -> None:
    for key in keys:
        qtbot.keyClick(canvas, key)


def selected_name(canvas: GraphCanvas) -> str:
    assert canvas.placed is not None
    return canvas.placed.title_of(canvas.selected_item) if canvas.selected_item >= 0 else ""


def test_arrow_keys_walk_along_edges(canvas: GraphCanvas, qtbot: QtBot) -> None:
    canvas.set_selected("x")
    press(canvas, qtbot, Qt.Key.Key_Down)
    assert selected_name(canvas) == "conv"
    press(canvas, qtbot, Qt.Key.Key_Down, Qt.Key.Key_Down)
    assert selected_name(canvas) == "erf"
    press(canvas, qtbot, Qt.Key.Key_Up)
    assert selected_name(canvas) == "relu"


def test_arrow_left_and_right_go_to_boxes_beside(qtbot: QtBot) -> None:
    scene = transformer(1)
    widget = GraphCanvas(colours())
    qtbot.addWidget(widget)
    widget.set_graph(lay_out(scene, expand_all(scene.tree)))
    widget.set_selected("k_0")
    seen = {selected_name(widget)}
    press(widget, qtbot, Qt.Key.Key_Left)
    seen.add(selected_name(widget))
    press(widget, qtbot, Qt.Key.Key_Right, Qt.Key.Key_Right)
    seen.add(selected_name(widget))
    assert seen == {"q_0", "k_0", "v_0"}


def test_comma_and_period_walk_in_execution_order(canvas: GraphCanvas, qtbot: QtBot) -> None:
    found = []
    for _ in range(7):
        press(canvas, qtbot, Qt.Key.Key_Period)
        found.append(selected_name(canvas))
    assert found == ["x", "conv", "relu", "erf", "out", "out", "out"]
    press(canvas, qtbot, Qt.Key.Key_Comma)
    assert selected_name(canvas) == "erf"


def test_enter_on_cluster_asks_to_toggle_and_backspace_goes_outward(
    canvas: GraphCanvas, qtbot: QtBot
) -> None:
    canvas.set_selected("conv")
    press(canvas, qtbot, Qt.Key.Key_Backspace)
    assert selected_name(canvas) == "XNNPACK · delegate 0"
    with qtbot.waitSignal(canvas.toggle_requested) as told:
        press(canvas, qtbot, Qt.Key.Key_Return)
    assert told.args == [DELEGATE]


def test_enter_on_node_tells_it_was_activated(canvas: GraphCanvas, qtbot: QtBot) -> None:
    canvas.set_selected("erf")
    with qtbot.waitSignal(canvas.activated) as told:
        press(canvas, qtbot, Qt.Key.Key_Return)
    assert told.args == ["erf"]


def test_escape_takes_the_selection_back_once(canvas: GraphCanvas, qtbot: QtBot) -> None:
    canvas.set_selected("erf")
    press(canvas, qtbot, Qt.Key.Key_Escape)
    assert canvas.selected_item == NOTHING
    with qtbot.assertNotEmitted(canvas.selected):
        press(canvas, qtbot, Qt.Key.Key_Escape)


def test_wasd_moves_and_space_shows_everything(canvas: GraphCanvas, qtbot: QtBot) -> None:
    canvas.fit()
    home = canvas.camera
    press(canvas, qtbot, Qt.Key.Key_D, Qt.Key.Key_S, Qt.Key.Key_Plus)
    assert canvas.camera.x > home.x
    assert canvas.camera.sx > home.sx
    press(canvas, qtbot, Qt.Key.Key_Space)
    assert canvas.camera == home


def test_f_comes_near_to_the_selection_and_again_shows_all(
    canvas: GraphCanvas, qtbot: QtBot
) -> None:
    canvas.fit()
    canvas.zoom(0.6)
    canvas.set_selected("erf")
    press(canvas, qtbot, Qt.Key.Key_F)
    at = screen(canvas, "erf")
    middle = (canvas.room().width() / 2, canvas.room().height() / 2)
    assert (at.x(), at.y()) == pytest.approx(middle, abs=2)
    near = canvas.camera
    press(canvas, qtbot, Qt.Key.Key_F)
    assert canvas.camera != near


# -- camera


def test_wheel_zooms_at_the_pointer(canvas: GraphCanvas) -> None:
    at = QPointF(200.0, 150.0)
    before = canvas.camera.to_world(at.x(), at.y())
    canvas.zoom(1.7, at)
    assert canvas.camera.to_world(at.x(), at.y()) == pytest.approx(before)


def test_drag_moves_the_drawing_and_selects_nothing(canvas: GraphCanvas, qtbot: QtBot) -> None:
    start = screen(canvas, "erf")
    before = canvas.camera
    left = Qt.MouseButton.LeftButton
    with qtbot.assertNotEmitted(canvas.selected):
        qtbot.mousePress(canvas, left, pos=start)
        qtbot.mouseMove(canvas, start + QPoint(20, 0))
        qtbot.mouseMove(canvas, start + QPoint(50, 30))
        qtbot.mouseRelease(canvas, left, pos=start + QPoint(50, 30))
    assert (before.x - canvas.camera.x) * before.sx == pytest.approx(50, abs=1)
    assert (before.y - canvas.camera.y) * before.sy == pytest.approx(30, abs=1)


def test_minimap_drag_moves_the_view(canvas: GraphCanvas, qtbot: QtBot) -> None:
    canvas.zoom(3.0)
    before = canvas.camera
    assert canvas.minimap.isVisible()
    qtbot.mouseClick(canvas.minimap, Qt.MouseButton.LeftButton, pos=QPoint(74, 20))
    assert canvas.camera.y < before.y
    assert "5 of 5 nodes" in canvas.minimap.accessibleDescription()


def test_selecting_an_item_out_of_sight_moves_the_view(qtbot: QtBot) -> None:
    scene = transformer(20)
    widget = GraphCanvas(colours())
    qtbot.addWidget(widget)
    widget.resize(900, 700)
    widget.set_graph(lay_out(scene, expand_all(scene.tree)))
    widget.show()
    widget.set_selected("soft_17")
    at = screen(widget, "soft_17")
    assert 0 <= at.x() <= 900
    assert 0 <= at.y() <= 700


def test_item_at_prefers_boxes_over_the_regions_around(canvas: GraphCanvas) -> None:
    placed = canvas.placed
    assert placed is not None
    conv = placed.scene.index["conv"]
    x, y, w, h = placed.boxes[conv].tolist()
    assert item_at(placed, x + w / 2, y + h / 2) == conv
    assert item_at(placed, x - 4, y + h / 2) == int(placed.clusters[0])
    assert item_at(placed, -50, -50) == NOTHING


@pytest.mark.parametrize("detail", ["6 computing nodes · 35.38 µs · 8.8 %", "4 nodes", ""])
def test_delegate_without_room_for_all_of_its_facts_shows_its_time(qtbot: QtBot, detail) -> None:
    texts, used = TextCache(), colours()
    shown = [texts.fitted_detail(used, detail, room, 11)[0] for room in (500, 110, 60, 10)]
    if "·" in detail:
        assert shown == [detail, "35.38 µs · 8.8 %", "35.38 µs", ""]
    else:
        assert shown[0] == detail
        assert set(shown) <= {detail, ""}


@pytest.mark.parametrize("scale", [0.26, 0.3, 0.35, 0.5])
@pytest.mark.parametrize("large", [1.0, 1.5])
def test_delegates_of_a_whole_graph_in_a_small_room_keep_their_captions(
    canvas: GraphCanvas, scale: float, large: float, tmp_path: Path
) -> None:
    """As long as the boxes inside have titles; the letters stay inside the region."""
    canvas.set_colours(colours(text=round(BASE_SIZE * large)))
    canvas.set_camera(Camera(-20.0, -20.0, scale, scale))
    canvas.render_to_svg(tmp_path / "graph.svg")
    assert any(line.startswith("XNN") for line in texts(tmp_path / "graph.svg"))
    placed = canvas.placed
    assert placed is not None
    top = canvas.camera.to_screen(*placed.boxes[int(placed.clusters[0]), :2].tolist())[1]
    found = [
        node
        for node in ET.parse(tmp_path / "graph.svg").iter()
        if node.tag.endswith("text") and "".join(node.itertext()).startswith("XNN")
    ]
    assert float(found[0].attrib["y"]) >= top + 6
