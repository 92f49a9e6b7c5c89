"""Any tensor in the window: opened from other views, drawn, listed, sliced, compared."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QMenu
from pytestqt.qtbot import QtBot

from devtools_app.appearance.colour_maps import colour_scale
from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import Select, ShowTensor
from devtools_app.viewmodels.node_facts import node_facts
from devtools_app.viewmodels.selected_tensors import selected_tensors
from devtools_app.viewmodels.tensor_look import tensor_picture, tensor_report
from devtools_app.views.tensor import TensorPane
from devtools_app.widgets.slice_bar import SliceBar
from devtools_app.widgets.tensor_plots import TensorHeat, ValueHistogram
from inspector.files.load import load_session
from inspector.graph.model_graph import COMPILED
from inspector.profile.join_index import join_index
from inspector.structure.files import plan_value
from inspector.tables.selection import AUTOMATIC, Selection, SelectionKind
from inspector.tables.size import parts
from inspector.tables.tensor import list_table
from inspector.tensors.images import SliceChoice, image_of, usual_slice
from inspector.tensors.sources import TensorSource, array_source, session_tensors
from inspector.tensors.summary import summary
from tests.app.sessions import opened
from tests.app.view_bench import Bench

pytestmark = pytest.mark.gui
DATA = Path(__file__).parents[1] / "data"
NET = DATA / "corpus/v1.5.1/convnet_xnnpack"
PORTABLE = DATA / "corpus/v1.5.1/convnet_portable"


def unchecked() -> None:
    """Never cancel."""


def held(array: np.ndarray, name: str = "weight") -> TensorSource:
    """Return an array as a tensor."""
    return array_source(array, name, name, "constant", "forward")


@pytest.mark.parametrize("again", ["", "where", "method"])
def test_tensors_of_one_name_are_told_apart_beside_it(again: str) -> None:
    first = held(np.zeros((2, 3), np.float32), "stem.weight")
    other = {"": {"name": "stem.bias"}, "where": {"origin": "recorded"}, "method": {"method": "b"}}
    listed = list_table([first, replace(first, **other[again])], AUTOMATIC)
    titles = [column.title for column in listed.columns]
    methods = ["method"] if again == "method" else []
    apart = ["where", *methods]
    shapes = ["type", "size"]
    assert titles == ["name", *([*apart, *shapes] if again else [*shapes, *apart])]
    if again:
        assert len({tuple(listed.text(row, at) for at in range(3)) for row in (0, 1)}) == 2


# -- which tensors belong to a selection ------------------------------------------------------


def test_a_node_of_a_delegate_has_its_weights_by_the_names_of_modules() -> None:
    session = opened("corpus/v1.5.1/convnet_xnnpack")
    graph = join_index(session, "forward").graph
    assert graph is not None
    node = next(one for one in graph.nodes if "convolution" in one.name and one.delegate == 0)
    chosen = Selection(SelectionKind.NODE, "forward", COMPILED, node.name)
    names = [one.name for one in selected_tensors(session, "forward", chosen)]
    assert names == ["stem.0.weight", "stem.0.bias"]
    sheet = node_facts(session, "forward", chosen, AUTOMATIC)
    links = [fact.link for group in sheet.groups for fact in group.facts]
    assert [one.key for one in links if isinstance(one, ShowTensor)] == [
        one.key for one in selected_tensors(session, "forward", chosen)
    ]


def test_an_instruction_has_its_constants_and_what_was_logged() -> None:
    session = opened("corpus/v1.5.1/convnet_portable")
    chosen = Selection(SelectionKind.INSTRUCTION, "forward", instruction=0)
    found = selected_tensors(session, "forward", chosen)
    assert {one.origin for one in found} == {"constant", "logged"}
    assert all(one.instruction == 0 for one in found if one.origin == "logged")
    value = next(one for one in found if one.origin == "constant")
    chosen = Selection(SelectionKind.VALUE, "forward", value=value.value)
    assert [one.key for one in selected_tensors(session, "forward", chosen)] == [value.key]


def test_a_part_of_a_file_has_the_tensors_whose_bytes_lie_in_it() -> None:
    session = opened("corpus/v1.5.1/convnet_portable")
    table = parts(session, AUTOMATIC)
    constants = [
        key
        for row in range(table.length)
        if table.text(row, 3) == "constant" and isinstance(key := table.key(row), Selection)
    ]
    found = [one for key in constants for one in selected_tensors(session, "forward", key)]
    stored = [one for one in session_tensors(session) if one.origin == "constant" and one.nbytes]
    assert {one.key for one in found} == {one.key for one in stored}


def test_a_line_of_the_structure_knows_its_value() -> None:
    session = opened("corpus/v1.5.1/convnet_portable")
    way = ("model.pte", "Program", "execution_plan", "[0]", "values", "[3]", "val")
    assert plan_value(way, session) == ("forward", 3)
    assert plan_value(way[:4], session) is None
    assert plan_value(("run.etdp", "values", "[3]"), session) is None


# -- what is shown of one ---------------------------------------------------------------------


def test_report_and_image_of_a_missing_tensor_have_the_reason() -> None:
    session = load_session([str(DATA / "extra/external_weights/model.pte")])
    one = next(one for one in session_tensors(session) if one.missing)
    report = tensor_report(one, None, "", ((), (), {}), AUTOMATIC, unchecked)
    picture = tensor_picture(one, None, None, unchecked, values=True)
    assert report.summary is None
    assert report.problem == picture.problem != ""
    assert picture.image is None
    assert picture.values is None


def test_difference_of_two_tensors_has_its_own_image_and_columns() -> None:
    one, other = held(np.arange(6.0).reshape(2, 3)), held(np.ones((2, 3)))
    report = tensor_report(one, lambda: other, "another", ((), (), {}), AUTOMATIC, unchecked)
    assert report.words == "less another: largest difference 4"
    picture = tensor_picture(one, lambda: other, None, unchecked, values=True)
    assert picture.image is not None
    assert picture.values is not None
    assert picture.image.values.tolist() == [[-1, 0, 1], [2, 3, 4]]
    titles = [column.title for column in picture.values.table.columns]
    assert titles == ["d0", "d1", "value", "other", "difference"]
    assert picture.describe((1, 2)) == "[1, 2]\n4.0\n5.0 less 1.0"


# -- widgets ----------------------------------------------------------------------------------


def test_image_names_the_element_under_the_pointer(theme, qtbot) -> None:
    plot = TensorHeat(theme)
    qtbot.addWidget(plot)
    plot.resize(400, 300)
    plot.show()
    values = np.arange(12.0).reshape(3, 4) - 6
    values[2, 3] = np.nan
    source = held(values)
    image = image_of(source.elements(), usual_slice(values.shape))
    plot.show_image(image, lambda place: f"at {place}")
    qtbot.waitUntil(lambda: plot.chart is not None, timeout=10_000)
    assert "NaN or infinite" in plot.note.text()
    assert plot.title.text() == "3 × 4"
    for row, column in ((0, 0), (2, 3), (1, 2)):
        at = plot.pixel_of(column + 0.5, 3 - row - 0.5)
        assert plot.hover_text(plot.pick(at)) == f"at {(row, column)}"
    pixels = plot._pixels(image)
    assert pixels.shape == (3, 4, 3)
    assert len({tuple(one) for one in pixels.reshape(-1, 3).tolist()}) > 5
    plot.show_image(None, str, "Missing: no file")
    assert plot.message.text() == "Missing: no file"


@pytest.mark.parametrize(
    "values", [[1e308, -1e308, 0.0], [1.7e308, 1e308, -np.inf], [5e-324, 0.0, np.nan]]
)
def test_the_ends_of_float64_have_colours(values: list[float]) -> None:
    scale = colour_scale(np.array(values))
    places = scale.places(np.array(values))
    assert np.isfinite(places[:2]).all()
    assert ((places[:2] >= 0) & (places[:2] <= 1)).all()
    assert places[0] >= places[1]
    assert np.isnan(places[2]) != np.isfinite(values[2])


def test_a_tensor_without_finite_values_says_so_and_has_no_scale(theme, qtbot) -> None:
    plot = TensorHeat(theme)
    qtbot.addWidget(plot)
    for values, scale, words in (
        ([[np.nan, np.inf]], 0, "float32 [1, 2] · 2 not finite"),
        ([[-np.inf, 0.0]], 1, "float32 [1, 2] · 0 to 0 · 1 not finite"),
    ):
        source = held(np.array(values, np.float32))
        image = image_of(source.elements(), usual_slice(source.sizes))
        plot.show_image(image, lambda *_at: "")
        assert plot.note.text().count("■") == scale + 1
        report = tensor_report(source, None, "", ((), (), {}), AUTOMATIC, unchecked)
        assert report.words == words


def test_a_difference_of_nan_and_numbers_is_not_nothing() -> None:
    one, two = held(np.array([np.nan, 1.0, 2.0])), held(np.array([np.nan, np.nan, 2.0]))
    for here, there, words in (
        (one, one, "largest difference 0 where both are finite · 0 % out of tolerance"),
        (one, two, "largest difference 0 where both are finite · 33.3 % out of tolerance"),
        (two, held(np.ones(3)), "largest difference 1 where both are finite · 100 % out of tol"),
    ):
        report = tensor_report(here, lambda: there, "it", ((), (), {}), AUTOMATIC, unchecked)  # noqa: B023
        assert report.words.startswith(f"less it: {words}")
        facts = {fact.label: fact for group in report.groups for fact in group.facts}
        assert (facts["not finite"].badge == "problem") is (here is not there)


def test_histogram_marks_values_at_the_limits(theme, qtbot) -> None:
    from inspector.tensors.summary import summary_of

    plot = ValueHistogram(theme)
    qtbot.addWidget(plot)
    plot.resize(400, 200)
    plot.show()
    plot.show_summary(summary_of(held(np.array([-128, 127, 127, 3], np.int8))))
    assert "at the limits" in plot.note.text()
    assert plot.hover_text(63).startswith("2 elements")
    plot.show_summary(summary(held(np.array([1.0, 2.0])).elements()))
    assert plot.note.text() == ""


def test_slices_are_chosen_by_the_keyboard_and_dimensions_never_twice(theme, qtbot) -> None:
    bar = SliceBar(theme)
    qtbot.addWidget(bar)
    bar.show_slice((4, 5, 6), SliceChoice(1, 2, (0, 0, 0)))
    bar.show()
    chosen: list[SliceChoice] = []
    bar.changed.connect(chosen.append)
    spin = bar.spins[0]
    assert spin.isVisible()
    assert not bar.spins[1].isVisible()
    spin.setFocus()
    QTest.keyClick(spin, Qt.Key.Key_Up)
    assert chosen[-1] == SliceChoice(1, 2, (1, 0, 0))
    bar.rows.setCurrentIndex(2)
    bar.rows.activated.emit(2)
    assert (chosen[-1].rows, chosen[-1].columns) == (2, 1)
    QTest.mouseClick(bar.tiles, Qt.MouseButton.LeftButton)
    assert chosen[-1].tiled
    assert not spin.isVisible()
    bar.show_slice((4, 5), usual_slice((4, 5)))
    assert not bar.isVisible()
    assert len(chosen) == 3


# -- the view ---------------------------------------------------------------------------------


def shown(window: MainWindow, qtbot, folder: Path) -> TensorPane:
    """Open a folder and bring up the view."""
    window.resize(1280, 800)
    window.controller.open((str(folder),))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    return ready(window, qtbot)


def ready(window: MainWindow, qtbot) -> TensorPane:
    """Bring up the view and wait for what it reads."""
    window.show_view("tensor")
    qtbot.waitUntil(lambda: window.findChild(TensorPane) is not None, timeout=20_000)
    pane = window.findChild(TensorPane)
    assert isinstance(pane, TensorPane)
    qtbot.waitUntil(lambda: not pane.working and not pane.reading, timeout=20_000)
    return pane


@pytest.mark.slow
def test_the_view_follows_the_selection_and_shows_what_is_chosen(make_window, qtbot) -> None:
    window = make_window()
    pane = shown(window, qtbot, NET)
    assert pane.list.rows.length == len(session_tensors(window.store.state.session))
    first = window.store.state.tensor
    assert first  # the largest
    row = next(
        row for row in range(pane.list.rows.length) if pane.list.rows.text(row, 0) == "dw.bias"
    )
    key = pane.list.rows.key(row)
    pane._row_chosen(row)
    qtbot.waitUntil(lambda: pane.facts.sheet.title == "dw.bias", timeout=20_000)
    assert window.store.state.tensor == key
    graph = join_index(window.store.state.session, "forward").graph
    node = next(one for one in graph.nodes if "convolution" in one.name and one.delegate == 0)
    chosen = Selection(SelectionKind.NODE, "forward", COMPILED, node.name)
    window.router(Select(chosen, "tensor"))
    qtbot.waitUntil(lambda: pane.facts.sheet.title == "stem.0.weight", timeout=20_000)
    window.router(ShowTensor(key))
    qtbot.waitUntil(lambda: pane.facts.sheet.title == "dw.bias", timeout=20_000)
    assert window.store.state.view == "tensor"


@pytest.mark.slow
def test_values_are_sorted_and_copied_and_less_another_tensor(make_window, qtbot) -> None:
    window = make_window()
    pane = shown(window, qtbot, PORTABLE)
    session = window.store.state.session
    one = next(one for one in session_tensors(session) if one.name == "stem.0.weight")
    window.router(ShowTensor(one.key))
    qtbot.waitUntil(lambda: pane.facts.sheet.title == "stem.0.weight", timeout=20_000)
    pane.shown.setCurrentIndex(1)
    pane.shown.activated.emit(1)
    qtbot.waitUntil(lambda: pane.values.rows.length > 0 and not pane.reading, timeout=20_000)
    assert pane.drawn.currentWidget() is pane.values
    columns = [column.title for column in pane.values.rows.columns]
    pane.values.sort_by(columns.index("value"), descending=True)
    top = pane.values.shown_rows()[0]
    values = np.asarray(pane.values.rows.columns[columns.index("value")].values)
    assert values[top] == values.max()
    pane.values.show_current(top)
    pane.values.copy()
    copied = QGuiApplication.clipboard().text().splitlines()
    assert copied[0].split("\t") == columns
    assert float(copied[1].split("\t")[-1]) == values.max()
    labels = [pane.others.itemText(n) for n in range(pane.others.count())]
    assert labels[0] == "nothing"
    assert "stem.0.weight" in labels  # of the record
    pane.others.setCurrentIndex(labels.index("stem.0.weight"))
    pane.others.activated.emit(1)
    qtbot.waitUntil(lambda: pane.note.text().startswith("less stem.0.weight"), timeout=20_000)
    qtbot.waitUntil(lambda: not pane.reading, timeout=20_000)
    titles = [column.title for column in pane.values.rows.columns]
    assert titles[-1] == "difference"


@pytest.mark.slow
def test_weights_of_two_sessions_are_subtracted(make_window, qtbot, tmp_path) -> None:
    window = make_window()
    pane = shown(window, qtbot, PORTABLE)
    copy = tmp_path / "other"
    shutil.copytree(PORTABLE, copy)
    data = bytearray((copy / "model.pte").read_bytes())
    session = window.store.state.session
    one = next(one for one in session_tensors(session) if one.name == "stem.0.weight")
    assert one.data is not None
    at = data.find(bytes(one.data))
    data[at : at + 4] = np.float32(5.0).tobytes()
    (copy / "model.pte").write_bytes(data)
    window.controller.open((str(copy),))
    qtbot.waitUntil(lambda: len(window.store.state.sessions) == 2, timeout=20_000)
    window.router(ShowTensor(one.key))
    pane = ready(window, qtbot)
    stored = "A: stem.0.weight · constant"  # the record has one of this name, too
    qtbot.waitUntil(lambda: pane.others.findText(stored) >= 0, timeout=20_000)
    names = [pane.others.itemText(n) for n in range(pane.others.count())]
    assert len(set(names)) == len(names)
    pane.others.setCurrentIndex(pane.others.findText(stored))
    pane.others.activated.emit(0)
    qtbot.waitUntil(lambda: "largest difference" in pane.note.text(), timeout=20_000)
    first = float(np.frombuffer(one.data[:4], np.float32)[0])
    assert pane.note.text().endswith(f"{5.0 - first:.4g}")


@pytest.mark.slow
def test_a_closed_session_is_not_kept(make_window, qtbot) -> None:
    window = make_window()
    pane = shown(window, qtbot, PORTABLE)
    assert pane.list.rows.length
    window.controller.close(window.store.state.current)
    qtbot.waitUntil(lambda: window.store.state.session is None, timeout=20_000)
    pane.show_state(window.store.state)
    assert pane._content is None
    assert pane.list.rows.length == 0
    pane = shown(window, qtbot, NET)
    assert pane.facts.sheet.title


@pytest.mark.slow
@pytest.mark.parametrize("name", ["size", "memory", "structure"])
def test_menus_of_other_views_lead_to_the_tensor(make_window, qtbot, monkeypatch, name) -> None:
    menus: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: menus.append(menu))
    window = make_window()
    shown(window, qtbot, PORTABLE)
    window.show_view(name)
    view = next(host.view for host in window.hosts if host.spec.name == name)
    qtbot.waitUntil(lambda: not view.working, timeout=20_000)
    if name == "structure":
        selection = Selection(SelectionKind.VALUE, "forward", value=2)
        index = view.model.index(0, 0)
        for wanted in ("Program", "execution_plan", "execution_plan[0]", "values", "values[2]"):
            index = child(view.model, index, wanted)
        view.tree.scrollTo(index)
        view._menu(view.tree.visualRect(index).center())
    else:
        table = view.table
        row = (
            next(
                row
                for row in range(table.rows.length)
                if table.rows.text(row, 3) in ("constant", "100 %")
            )
            if name == "size"
            else 0
        )
        selection = table.rows.key(row)
        table.show_current(selection)
        table._view.customContextMenuRequested.emit(QPoint(5, 5))
    action = next(one for one in menus.pop().actions() if one.text() == "Show in Tensor")
    action.trigger()
    assert window.store.state.view == "tensor"
    assert window.store.state.selection == selection


def child(model, index, name: str):
    """Return the line below a line with a name, or with its index."""
    if model.canFetchMore(index):
        model.fetchMore(index)
    short = name[name.find("[") :] if "[" in name else name
    for row in range(model.rowCount(index)):
        found = model.index(row, 0, index)
        if model.node(found).name in (name, short):
            return found
    raise AssertionError(
        [model.node(model.index(n, 0, index)).name for n in range(model.rowCount(index))]
    )


@pytest.mark.slow
def test_a_right_click_on_a_part_in_size_leads_to_its_tensor(
    make_window, qtbot, monkeypatch
) -> None:
    menus: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: menus.append(menu))
    window = make_window()
    shown(window, qtbot, NET)
    window.show_view("size")
    view = next(host.view for host in window.hosts if host.spec.name == "size")
    qtbot.waitUntil(lambda: not view.working, timeout=20_000)
    canvas = view.canvas
    points = (
        QPoint(x, y) for y in range(5, canvas.height(), 5) for x in range(5, canvas.width(), 7)
    )
    names = view._content.map.data.names
    at = next(one for one in points if names[canvas.hit(one.toPointF())] == "stem.0.weight")
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, canvas.mapToGlobal(at))
    QApplication.sendEvent(canvas, event)
    menu = menus.pop()
    assert menu.actions()[0].text() == "stem.0.weight"
    next(one for one in menu.actions() if one.text() == "Show in Tensor").trigger()
    pane = ready(window, qtbot)
    qtbot.waitUntil(lambda: pane.facts.sheet.title == "stem.0.weight", timeout=20_000)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_values_are_drawn_as_magnitudes_and_never_called_infinite(
    qtbot, theme, dtype: type
) -> None:
    array = np.array([[3 + 4j, 0, 1j], [-2, np.nan, complex(0, np.inf)]], dtype)
    picture = tensor_picture(held(array), None, None, unchecked, values=True)
    assert picture.image is not None
    assert picture.image.magnitude
    assert np.array_equal(picture.image.values, [[5, 0, 1], [2, np.inf, np.inf]])
    heat, histogram = TensorHeat(theme), ValueHistogram(theme)
    for widget in (heat, histogram):
        qtbot.addWidget(widget)
    heat.show_image(picture.image, str)
    assert heat.title.text() == "2 × 3, magnitudes"
    histogram.show_summary(summary(held(array).elements()))
    assert "finite" not in histogram.accessibleDescription()
    assert picture.values is not None
    assert picture.values.table.length == 6


@pytest.mark.parametrize("trace", [(), ("run.etdp",)])
def test_values_without_their_trace_say_what_names_them(
    qtbot: QtBot, trace: tuple[str, ...]
) -> None:
    bench = Bench(qtbot, TensorPane)
    bench.open(load_session([NET / one for one in ("run.debug", *trace)]))
    texts = [label.text() for label in bench.pane.empty.findChildren(QLabel) if label.isVisible()]
    assert ("Values without names" in texts) == (not trace)
