"""Views whose work takes long: it is seen, can be given up, and can be tried again."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QStatusBar,
    QWidget,
)

from devtools_app.state.state import State
from devtools_app.state.transitions import add_session
from devtools_app.views import (
    findings,
    graph,
    memory,
    operators,
    partitions,
    size,
    structure,
    timeline,
)
from devtools_app.views.pane import Pane
from devtools_app.views.spec import ViewContext
from devtools_app.widgets.busy import Busy
from devtools_app.widgets.empty_state import Need
from tests.app.sessions import opened
from tests.app.view_bench import Bench

PANES = (
    findings.FindingsPane,
    graph.GraphPane,
    memory.MemoryPane,
    operators.OperatorsPane,
    partitions.PartitionsPane,
    size.SizePane,
    structure.StructurePane,
    timeline.TimelinePane,
)
_SAID = "This plugin does not support propagateSizeHints"
pytestmark = [pytest.mark.gui, pytest.mark.qt_log_ignore(_SAID)]


class _Held(Pane):
    """A view whose work takes as long as the test says."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Held")
        self.gate = threading.Event()
        self.begun = 0
        self.set_content(QWidget())

    def show_state(self, state: State) -> None:
        self.request((state.open_session, state.view), self._work)

    def _work(self) -> str:
        self.begun += 1
        self.gate.wait(10)
        return "done"

    def show_result(self, result: object) -> None:
        assert result == "done"
        self.show_content()


@pytest.mark.parametrize("kind", [_Held, operators.OperatorsPane])
def test_pane_that_takes_long_shows_it_even_when_it_was_empty(qtbot, kind, monkeypatch):
    bench = Bench(qtbot, kind)
    gate = getattr(bench.pane, "gate", threading.Event())
    monkeypatch.setattr(operators, "_build", lambda *_args, **_more: gate.wait(10) and None)
    bench.pane.show_need(Need("Nothing"))
    bench.store.put(add_session(bench.store.state, opened("corpus/v1.5.1/mm_portable"), ()))
    bench.pane.show_state(bench.store.state)
    qtbot.waitUntil(bench.pane.busy.isVisible, timeout=2000)
    gate.set()
    bench.settle()
    assert not bench.pane.busy.isVisible()


def test_pane_stopped_by_the_user_can_be_tried_again(qtbot):
    bench = Bench(qtbot, _Held)
    pane = bench.pane
    assert isinstance(pane, _Held)
    qtbot.waitUntil(lambda: pane.begun == 1)
    pane.busy.cancelled.emit()
    assert bench.empty
    pane.gate.set()
    bench.store.update(filter_text="conv")
    qtbot.wait(50)
    assert pane.begun == 1
    (again,) = [one for one in pane.empty.findChildren(QPushButton) if one.text() == "Try again"]
    assert again.isVisible()
    again.click()
    bench.settle()
    assert not bench.empty


@pytest.mark.parametrize("view", PANES, ids=lambda view: view.__name__)
def test_every_drawn_view_says_that_it_was_stopped(qtbot, view):
    bench = Bench(qtbot, view)
    bench.pane.busy.cancelled.emit()
    assert bench.empty
    assert bench.pane.empty.accessibleName().startswith("Stopped")


def test_busy_line_in_a_wide_one_is_no_wider_than_it_has_to_be(qtbot, theme):
    line = QStatusBar()
    line.resize(1200, 30)
    busy = Busy()
    line.addPermanentWidget(busy)
    qtbot.addWidget(line)
    line.show()
    busy.start("reading model.pte")
    busy._since -= 5.0
    qtbot.waitUntil(busy.isVisible)
    qtbot.wait(20)
    (button,) = busy.findChildren(QPushButton)
    (bar,) = busy.findChildren(QProgressBar)
    assert button.width() == button.sizeHint().width()
    assert bar.width() >= 60
    assert busy.width() <= busy.sizeHint().width()


def test_busy_line_in_a_narrow_panel_shows_its_button_whole(qtbot, theme):
    busy = Busy()
    busy.setFixedWidth(200)
    qtbot.addWidget(busy)
    busy.start("Preparing")
    busy._since -= 5.0
    qtbot.waitUntil(busy.isVisible)
    qtbot.wait(20)
    (button,) = busy.findChildren(QPushButton)
    assert button.width() >= button.sizeHint().width()


def test_keys_pressed_while_a_view_computes_use_no_tool(qtbot):
    bench = Bench(qtbot, _Held)
    pane = bench.pane
    assert isinstance(pane, _Held)
    drawing = QWidget()
    drawing.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    pane.set_content(drawing)
    pane.stack.removeWidget(pane.stack.widget(1))
    pane.add_button("Open all", "Open all boxes", lambda: None)
    bench.store.put(add_session(bench.store.state, opened("corpus/v1.5.1/mm_portable"), ()))
    pane.show_state(bench.store.state)
    pane.show_busy()
    pane.activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is pane.window())
    pane.take_focus()
    assert QApplication.focusWidget() is pane
    qtbot.keyClick(pane, Qt.Key.Key_Down)
    pane.gate.set()
    bench.settle()
    assert QApplication.focusWidget() is drawing


@pytest.mark.parametrize("width", [900, 420])
def test_tools_in_a_row_of_their_own_are_as_wide_as_beside_others(qtbot, width):
    bench = Bench(qtbot, _Held)
    pane = bench.pane
    pane.gate.set()
    bench.open(opened("corpus/v1.5.1/mm_portable"))
    for name in ("data set", "metric"):
        field = QLineEdit(placeholderText=name)
        field.setMinimumWidth(180)
        pane.add_tool(field)
    start = QPushButton("Evaluate")
    pane.add_tool(start, right=True)
    place = QWidget()  # a window of its own would be no narrower than one row
    qtbot.addWidget(place)
    pane.setParent(place)
    pane.show()
    place.show()
    QApplication.processEvents()
    pane.resize(width, 300)
    QApplication.processEvents()
    right = start.mapTo(pane, start.rect().topRight()).x()
    own_row = start.y() > pane.findChild(QLineEdit).y()
    pane.setParent(None)  # the bench closes it
    assert start.width() == start.sizeHint().width()
    assert width - right < 20
    assert own_row is (width == 420)
