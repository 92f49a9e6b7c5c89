"""What a view says when it has nothing to show: the command, and what there is height for."""

from __future__ import annotations

import shlex
from itertools import combinations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget

from devtools_app.widgets.command_text import CommandText
from devtools_app.widgets.empty_state import EmptyState, Need
from schema import etdump
from schema.etdump.build import synthetic
from tests.app.window_views import open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]

_LONG = "A function that returns a module becomes a program. " * 4


def test_empty_state_copies_its_command(qtbot, theme):
    empty = EmptyState(theme, Need("No trace", "Because.", "run --etdump"))
    qtbot.addWidget(empty)
    empty.show()
    copy = next(one for one in empty.findChildren(QPushButton) if one.text() == "Copy")
    qtbot.mouseClick(copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "run --etdump"
    pressed = []
    qtbot.mouseClick(
        empty.add_button("Open…", lambda: pressed.append(1)), Qt.MouseButton.LeftButton
    )
    assert pressed == [1]


@pytest.mark.parametrize(
    ("height", "said"), [(90, False), (110, False), (130, False), (180, True), (500, True)]
)
def test_empty_state_leaves_out_what_it_has_no_height_for(qtbot, theme, height, said):
    empty = EmptyState(theme, Need("No compile yet", _LONG, "etscope compile"))
    qtbot.addWidget(empty)
    button = empty.add_button("Compile…", empty.update)
    empty.resize(560, height)
    empty.show()
    own = [one for one in empty.findChildren(QWidget) if one.parent() is empty]
    shown = [one for one in own if one.isVisible()]
    assert button in shown
    for one, other in combinations((one.geometry() for one in shown), 2):
        assert not one.intersects(other)
    assert (_LONG in [one.text() for one in shown if isinstance(one, QLabel)]) == said
    assert empty.toolTip() == ("" if said else _LONG)
    assert all(empty.rect().contains(one.geometry()) for one in shown)
    empty.resize(560, 500)
    assert all(one.isVisible() for one in own)


def test_what_can_be_done_comes_before_the_code_and_has_the_keyboard(make_window, qtbot, data):
    window = make_window()
    folder = data / "corpus/v1.5.1/mm_portable"
    open_sample(window, qtbot, (str(folder / "model.pte"), str(folder / "model.etrecord")))
    window.activateWindow()
    for name, label in (("timeline", "Run…"), ("gap", "Run with values and compare")):
        window.show_view(name)
        focus = QApplication.focusWidget()
        assert isinstance(focus, QPushButton)
        assert focus.text() == label
        pane = next(host.view for host in window.hosts if host.spec.name == name)
        shown = [one for one in pane.empty.findChildren(QPushButton) if one.isVisible()]
        assert min(shown, key=lambda one: one.x()) is focus
    window.show_view("timeline")
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Return)
    run = next(host for host in window.hosts if host.spec.name == "run")
    qtbot.waitUntil(run.isVisible, timeout=5_000)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("graph", "Open files…"),
        ("memory", "Open files…"),
        ("compare", "Open files…"),
        ("stages", "Compile…"),
        ("recipe", "Open files…"),
        ("bisect", "Open files…"),
    ],
)
def test_a_view_that_a_file_would_fill_offers_to_open_it(make_window, qtbot, data, name, label):
    window = make_window()
    open_sample(window, qtbot, (str(data / "corpus/v1.5.1/mm_portable/run.etdp"),))
    window.activateWindow()
    window.show_view(name)

    def offered() -> bool:
        focus = QApplication.focusWidget()
        return isinstance(focus, QPushButton) and focus.text() == label

    qtbot.waitUntil(offered, timeout=20_000)


def test_a_trace_without_values_offers_to_open_those(make_window, qtbot, tmp_path):
    trace = tmp_path / "run.etdp"
    trace.write_bytes(etdump.encode(synthetic(100, runs=2)))
    window = make_window()
    open_sample(window, qtbot, (str(trace),))
    window.activateWindow()
    window.show_view("tensor")

    def offered() -> bool:
        focus = QApplication.focusWidget()
        return isinstance(focus, QPushButton) and focus.text() == "Open files…"

    qtbot.waitUntil(offered, timeout=20_000)


def test_command_of_the_gap_names_the_files_that_are_open(make_window, qtbot, data):
    window = make_window()
    folder = data / "corpus/v1.5.1/convnet_portable"
    names = ("model.pte", "model.etrecord", "run.etdp", "run.debug")
    files = [str(folder / name) for name in names if (folder / name).exists()]
    assert len(files) == len(names)
    open_sample(window, qtbot, tuple(files))
    window.show_view("gap")
    pane = next(host.view for host in window.hosts if host.spec.name == "gap")
    code = pane.empty.findChild(CommandText)
    qtbot.waitUntil(lambda: code.toPlainText() == shlex.join(["etscope", "gap", *files]))


def test_first_button_that_is_offered_is_the_prominent_one(qtbot, theme):
    empty = EmptyState(theme, Need("Not run yet", "Because.", "etscope run"))
    qtbot.addWidget(empty)
    opens = empty.add_button("Open files…", lambda: None)
    runs = empty.add_button("Run…", lambda: None)
    opens.hide()
    empty.show()
    qtbot.waitUntil(lambda: runs.property("primary") == "true")
    opens.show()
    qtbot.waitUntil(lambda: opens.property("primary") == "true")
    assert not runs.property("primary")
