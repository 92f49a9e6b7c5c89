"""Where the drawing of a graph ends: legend and map beside it, all of it seen at first."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

import devtools_app.sample_data
from devtools_app.viewmodels.canvas_data import GraphOverlay
from devtools_app.viewmodels.graph_building import GraphSettings, build_graph
from devtools_app.viewmodels.layout.cluster_tree import expand_all
from devtools_app.viewmodels.layout.engine import LayoutCache, lay_out
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.layout.scene_graph import (
    ClusterInfo,
    SceneEdge,
    SceneNode,
    scene_graph,
)
from devtools_app.viewmodels.opening import opened_or_readable
from devtools_app.viewmodels.scene import graph_scene
from devtools_app.viewmodels.scene_overlay import graph_overlay
from devtools_app.widgets.graph_canvas import GraphCanvas
from inspector.files.load import load_session
from inspector.graph.model_graph import COMPILED
from tests.app.canvas_colours import colours
from tests.app.layout_scenes import transformer

pytestmark = pytest.mark.gui
BOX = ("d0",)
LOOK = GraphSettings(COMPILED, False, ("time", "auto", "auto"), None)


def canvas_of(qtbot: QtBot, blocks: int, width: int = 900, height: int = 600) -> GraphCanvas:
    scene = transformer(blocks)
    widget = GraphCanvas(colours())
    qtbot.addWidget(widget)
    widget.resize(width, height)
    entries = graph_overlay(_sample(), "time", "auto", "auto").legend
    widget.set_overlay(GraphOverlay("time", legend=entries))
    widget.set_graph(lay_out(scene, expand_all(scene.tree)))
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def _sample():
    found = graph_scene(load_session([devtools_app.sample_data.SAMPLE]), "forward")
    assert found is not None
    return found


@pytest.mark.parametrize(("width", "height"), [(900, 600), (1800, 1000), (700, 420), (440, 380)])
def test_legend_and_map_never_lie_on_the_drawing(qtbot: QtBot, width: int, height: int) -> None:
    widget = canvas_of(qtbot, 6, width, height)
    widget.zoom(8.0)
    drawing = QRect(QPoint(0, 0), widget.room())
    for part in (widget.legend, widget.minimap):
        if part.isVisible():
            assert not part.geometry().intersects(drawing), part.accessibleName()
            assert widget.rect().contains(part.geometry()), part.accessibleName()
    assert widget.legend.isVisible()
    assert widget.minimap.isVisible() is (width >= 640)
    assert drawing.width() >= 0.7 * width


def test_boxes_below_legend_and_map_are_neither_drawn_nor_clicked(qtbot: QtBot) -> None:
    widget = canvas_of(qtbot, 6)
    widget.zoom(8.0)
    placed = widget.placed
    assert placed is not None
    room = widget.room()
    item = int(placed.nodes[3])
    x, y, w, h = placed.boxes[item].tolist()
    camera = widget.camera.centred(x + w / 2, y + h / 2, 2.0 * room.width() + 60, 300.0)
    widget.set_camera(camera)
    beside = QPointF(room.width() + 30, 150)
    assert widget.hit(beside) == -1
    assert widget.tip_at(beside) == ""
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=beside.toPoint())
    assert widget.selected_item == -1


@pytest.mark.parametrize("blocks", [0, 3, 40])
def test_graph_opens_with_all_of_it_in_view(qtbot: QtBot, blocks: int) -> None:
    widget = canvas_of(qtbot, blocks)
    placed, room = widget.placed, widget.room()
    assert placed is not None
    left, top = widget.camera.to_screen(0, 0)
    right, bottom = widget.camera.to_screen(placed.width, placed.height)
    assert left >= 0
    assert top >= 0
    assert right <= room.width()
    assert bottom <= room.height()
    widget.resize(1300, 800)
    right, bottom = widget.camera.to_screen(placed.width, placed.height)
    assert right <= widget.room().width()
    assert max(right / widget.room().width(), bottom / widget.room().height()) > 0.6  # it grew


def test_sample_opens_whole_and_readable() -> None:
    session = load_session([devtools_app.sample_data.SAMPLE])
    drawn = build_graph(session, "forward", LOOK, None, None, LayoutCache())
    assert drawn is not None
    assert min(1000 / drawn.placed.width, 560 / drawn.placed.height) >= 0.52
    assert len(drawn.placed.nodes) >= 5
    (lines,) = drawn.placed.lines  # known before the window draws, which would wait for them
    assert len(lines.arrows)


@pytest.mark.parametrize("blocks", [2, 6, 12, 40])
@pytest.mark.parametrize("text", [1.0, 1.5, 2.0])
def test_boxes_that_are_opened_can_be_read_with_larger_text(blocks: int, text: float) -> None:
    scene = transformer(blocks)
    usual = opened_or_readable(scene, None, LayoutCache())
    larger = opened_or_readable(scene, None, LayoutCache(), text)

    def scale(placed: Placed) -> float:
        return min(1000 / text / placed.width, 560 / text / placed.height)

    assert scale(larger) >= min(0.52, scale(usual))
    assert scale(larger) >= 0.18  # from which few boxes have titles with large text


@pytest.mark.parametrize("height", [130, 172, 260])
def test_a_low_drawing_keeps_its_legend(qtbot: QtBot, height: int) -> None:
    widget = canvas_of(qtbot, 6, 530, height)
    assert widget.legend.isVisible()
    assert widget.legend.geometry().bottom() < height


def test_nodes_of_a_small_graph_have_titles_in_a_small_room(qtbot: QtBot, tmp_path: Path) -> None:
    session = load_session([devtools_app.sample_data.SAMPLE])
    drawn = build_graph(session, "forward", LOOK, None, None, LayoutCache())
    assert drawn is not None
    widget = GraphCanvas(colours())
    qtbot.addWidget(widget)
    widget.resize(780, 355)
    widget.set_graph(drawn.placed)
    widget.fit()
    assert widget.camera.sx < 0.5  # below the scale at which large graphs have titles
    widget.render_to_svg(tmp_path / "graph.svg")
    text = (tmp_path / "graph.svg").read_text()
    for words in ("features", "output"):
        assert words in text, words


def two_nodes() -> GraphCanvas:
    """Return a canvas with a node of a delegate and one outside, coloured by heat."""
    nodes = [SceneNode("conv", "Convolution", "", BOX, 0), SceneNode("erf", "aten.erf", "", (), -2)]
    info = {BOX: ClusterInfo("XNNPACK", "", 0, inward="in: 1 tensor, 2 KiB", outward="out: 98 KiB")}
    edges = [SceneEdge("conv", "erf", "98.0 KiB", 100352, emphasised=True)]
    scene = scene_graph(nodes, edges, info)
    widget = GraphCanvas(colours())
    widget.resize(900, 600)
    values = np.array([1.0, 0.0])
    widget.set_overlay(GraphOverlay("time", values, None, np.array([0.75, 0.25])))
    widget.set_graph(lay_out(scene, expand_all(scene.tree)))
    return widget


def test_heat_leaves_the_backend_in_sight(qtbot: QtBot) -> None:
    widget = two_nodes()
    qtbot.addWidget(widget)
    placed, image = widget.placed, widget.render_to_image(1.0)
    assert placed is not None
    for name, stripe in (("conv", colours().backend(0)), ("erf", colours().not_delegated)):
        x, y, w, h = placed.boxes[placed.scene.index[name]].tolist()
        at = QPointF(*widget.camera.to_screen(x + 3.5, y + h / 2)).toPoint()
        assert image.pixelColor(at).name() == QColor(stripe).name(), name
        inside = QPointF(*widget.camera.to_screen(x + w - 20, y + 6)).toPoint()
        assert image.pixelColor(inside).name() != QColor(stripe).name()


def test_share_bar_is_five_pixels_high_on_a_track(qtbot: QtBot) -> None:
    widget = two_nodes()
    qtbot.addWidget(widget)
    widget.set_camera(widget.camera.zoomed(1 / widget.camera.sx, 0, 0, (0.1, 4.0)))
    placed, image = widget.placed, widget.render_to_image(1.0)
    assert placed is not None
    x, y, w, h = placed.boxes[placed.scene.index["erf"]].tolist()

    def column(share: float) -> list[str]:
        found = [widget.camera.to_screen(x + 8 + share * (w - 12), y + h - up) for up in range(14)]
        return [image.pixelColor(QPointF(*at).toPoint()).name() for at in found]

    fill, bar, track = column(0.9)[-1], column(0.1), column(0.9)
    assert sum(colour != fill for colour in bar[2:]) >= 4
    assert sum(colour != fill for colour in track[2:]) >= 4
    assert bar[4] != track[4]


def test_boundary_of_a_delegate_and_edges_name_their_bytes(qtbot: QtBot, tmp_path: Path) -> None:
    widget = two_nodes()
    qtbot.addWidget(widget)
    widget.set_camera(widget.camera.zoomed(1.2 / widget.camera.sx, 0, 0, (0.1, 4.0)))
    widget.render_to_svg(tmp_path / "graph.svg")
    text = (tmp_path / "graph.svg").read_text()
    for words in ("in: 1 tensor, 2 KiB", "out: 98 KiB", "98.0 KiB"):
        assert words in text
    placed = widget.placed
    assert placed is not None
    middle = placed.polyline(0)[len(placed.polyline(0)) // 2]
    tip = widget.tip_at(QPointF(*widget.camera.to_screen(float(middle[0]) + 1, float(middle[1]))))
    assert tip.splitlines()[:2] == ["conv → erf", "98.0 KiB"]


def test_delegates_of_a_program_name_what_crosses_their_boundary() -> None:
    found = _sample()
    infos = [one for one in found.scene.info.values() if one.inward]
    assert infos
    assert all(re.fullmatch(r"in: \d+ tensors?, [\d.]+ (B|KiB)", one.inward) for one in infos)
    assert all(re.fullmatch(r"out: \d+ tensors?, [\d.]+ (B|KiB)", one.outward) for one in infos)


def test_legend_names_fill_and_stripe_in_words() -> None:
    labels = [entry.label for entry in graph_overlay(_sample(), "time", "auto", "auto").legend]
    for words in ("Fill: time of a node", "a closed box: its largest", "Stripe, outline: runs on"):
        assert words in labels


def _same(one: Placed, other: Placed) -> bool:
    arrays = [name for name in Placed.__dataclass_fields__ if hasattr(getattr(one, name), "dtype")]
    return all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
        if getattr(one, name).dtype.kind == "f"
        else np.array_equal(getattr(one, name), getattr(other, name))
        for name in arrays
    )


@pytest.mark.parametrize("overlay", ["bytes", "backend", "time"])
def test_other_colours_keep_the_places_that_they_do_not_change(overlay: str) -> None:
    session = load_session([devtools_app.sample_data.SAMPLE])
    first = build_graph(session, "forward", LOOK, None, None, LayoutCache())
    look = replace(LOOK, overlay=(overlay, "auto", "auto"))
    after = build_graph(session, "forward", look, None, first, LayoutCache())
    fresh = build_graph(session, "forward", look, None, None, LayoutCache())
    assert first is not None
    assert after is not None
    assert fresh is not None
    assert after.placed.boxes is first.placed.boxes
    assert after.placed.lines[0] is first.placed.lines[0]
    assert after.placed.scene is after.scene
    assert _same(after.placed, fresh.placed)
    assert [after.scene.sublabels[at] for at in range(3)] == [
        fresh.scene.sublabels[at] for at in range(3)
    ]


def test_other_units_and_boxes_are_laid_out() -> None:
    session = load_session([devtools_app.sample_data.SAMPLE])
    first = build_graph(session, "forward", LOOK, None, None, LayoutCache())
    assert first is not None
    closed = build_graph(session, "forward", LOOK, frozenset(), first, LayoutCache())
    bits = replace(LOOK, overlay=("time", "auto", "B"))
    sized = build_graph(session, "forward", bits, None, first, LayoutCache())
    assert closed is not None
    assert sized is not None
    assert closed.placed.expanded == frozenset() != first.placed.expanded
    fresh = build_graph(session, "forward", bits, None, None, LayoutCache())
    assert fresh is not None
    assert sized.placed.boxes is not first.placed.boxes
    assert _same(sized.placed, fresh.placed)
