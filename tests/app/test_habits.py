"""Mouse and keyboard as people expect them: wheel, Return, where the keyboard is, what is first."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QSpinBox,
    QStyleOptionButton,
    QTabBar,
    QWidget,
)

from devtools_app.shell.window import MainWindow
from devtools_app.state.tab_groups import TabGroup
from devtools_app.views import VIEWS
from devtools_app.views.spec import Area
from devtools_app.widgets.fields import (
    ComboBox,
    DoubleSpinBox,
    NarrowComboBox,
    PushButton,
    SpinBox,
    ToolButton,
)
from inspector.files.load import pair
from tests.app.window_views import host_of, open_sample
from tests.architecture.tree import ROOT
from tests.inspector.sessions import DATA

pytestmark = [pytest.mark.gui, pytest.mark.slow]
DRAWN = ("graph", "timeline", "memory", "size", "partitions", "operators")


@pytest.fixture
def window(make_window, qtbot) -> MainWindow:
    made = make_window()
    open_sample(made, qtbot)
    return made


def turn(widget: QWidget, clicks: int) -> QWheelEvent:
    """Turn the wheel over the middle of a widget."""
    middle = QPointF(widget.rect().center())
    event = QWheelEvent(
        middle,
        QPointF(widget.mapToGlobal(middle.toPoint())),
        QPoint(),
        QPoint(0, 120 * clicks),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)
    return event


@pytest.mark.parametrize("kind", [ComboBox, SpinBox])
def test_the_wheel_changes_no_field_and_scrolls_its_form(qtbot, kind) -> None:
    field = kind()
    if isinstance(field, QComboBox):
        field.addItems(["one", "two", "three"])
        field.setCurrentIndex(1)
    else:
        assert isinstance(field, QSpinBox)
        field.setValue(1)
    qtbot.addWidget(field)
    field.show()
    field.setFocus()
    for clicks in (-1, 1, 3):
        assert not turn(field, clicks).isAccepted()  # goes on to the form around
    assert (field.currentIndex() if isinstance(field, QComboBox) else field.value()) == 1


def test_the_wheel_changes_no_tab(window: MainWindow, qtbot) -> None:
    seen: set[str] = set()
    window.below.toggle("log")
    for name in ("node", "notes"):
        window.show_view(name)
    window.commands.show_group(TabGroup.CHANGE)
    for name in ("recipe", "stages"):
        window.show_view(name)
        QTest.qWait(50)
        rows = [one for one in window.findChildren(QTabBar) if one.isVisible() and one.count() > 1]
        for row in rows:
            seen.add(row.accessibleName())
            before = row.currentIndex()
            for clicks in (-1, 1, 3, -3):
                turn(row, clicks)
                assert row.currentIndex() == before
    assert seen == {"Views", "Panels in one place", "Form, text, Python or ideas"}


@pytest.mark.parametrize(
    "make",
    [
        ComboBox,
        SpinBox,
        DoubleSpinBox,
        lambda: NarrowComboBox(8),
    ],
    ids=["combo", "spin", "double", "narrow"],
)
@pytest.mark.parametrize("editable", [False, True])
def test_the_wheel_does_not_move_the_keyboard_to_a_field(qtbot, make, editable: bool) -> None:
    field = make()
    qtbot.addWidget(field)
    if isinstance(field, QComboBox):
        field.setEditable(editable)
    parts = [field, *field.findChildren(QWidget)]
    policies = [one.focusPolicy() for one in parts if not one.focusProxy()]
    assert Qt.FocusPolicy.WheelFocus not in policies
    assert field.focusPolicy() == Qt.FocusPolicy.StrongFocus


def test_no_field_or_button_of_the_window_is_one_without_these_habits() -> None:
    plain = ("QComboBox(", "QSpinBox(", "QDoubleSpinBox(", "QPushButton(", "QToolButton(")
    home = ROOT / "devtools_app" / "widgets" / "fields.py"
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "devtools_app").rglob("*.py")
        if path != home and any(one in path.read_text("utf-8") for one in plain)
    }
    assert found == set()


@pytest.mark.parametrize("kind", [PushButton, ToolButton])
@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_return_presses_the_button_with_the_keyboard(qtbot, kind, key) -> None:
    button = kind()
    qtbot.addWidget(button)
    button.show()
    with qtbot.waitSignal(button.clicked, timeout=1000):
        QTest.keyClick(button, key)


@pytest.mark.parametrize("name", DRAWN)
def test_keys_act_on_the_drawing_or_table_of_a_view(window, qtbot, name) -> None:
    window.activateWindow()
    window.show_view(name)
    host = next(host for host in window.hosts if host.spec.name == name)
    qtbot.waitUntil(lambda: host.view is not None and not host.view.working, timeout=20_000)
    focus = QApplication.focusWidget()
    assert focus is not None
    assert (
        host.view.stack.currentWidget().isAncestorOf(focus)
        or focus is host.view.stack.currentWidget()
    )
    assert not isinstance(focus, (QComboBox, PushButton, ToolButton))


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("partitions", "partitions"),
        ("structure", "Structure of the files"),
        ("memory", "Memory plan"),
        ("size", "Sizes"),
        ("roofline", "Roofline"),
    ],
)
def test_of_two_parts_the_one_at_the_left_has_the_keyboard(window, qtbot, name, part) -> None:
    """The other one shows details of what is chosen in it."""
    window.activateWindow()
    window.show_view(name)
    host = next(host for host in window.hosts if host.spec.name == name)
    qtbot.waitUntil(lambda: host.view is not None and not host.view.working, timeout=20_000)
    qtbot.waitUntil(lambda: QApplication.focusWidget().accessibleName() == part, timeout=5000)


def test_the_keyboard_goes_along_to_a_view_that_takes_the_place_of_its_own(window, qtbot) -> None:
    """As Compare does once a recompile is done: arrows would change its baseline."""
    window.activateWindow()
    window.show_view("size")
    qtbot.waitUntil(lambda: host_of(window, "size").isAncestorOf(QApplication.focusWidget()))
    window.store.update(view="memory")
    qtbot.waitUntil(
        lambda: QApplication.focusWidget().accessibleName() == "Memory plan", timeout=20_000
    )
    operators = host_of(window, "operators")
    window.show_view("operators")
    qtbot.waitUntil(lambda: operators.isAncestorOf(QApplication.focusWidget()))
    window.store.update(view="size")
    qtbot.waitUntil(host_of(window, "size").isVisible)
    assert operators.isAncestorOf(QApplication.focusWidget())


def test_the_keyboard_stays_in_a_view_whose_control_goes_away(window, qtbot) -> None:
    window.activateWindow()
    window.show_view("timeline")
    pane = next(host.view for host in window.hosts if host.spec.name == "timeline")
    qtbot.waitUntil(lambda: not pane.working, timeout=20_000)
    pane.runs.setFocus()
    assert QApplication.focusWidget() is pane.runs
    pane.runs.hide()
    assert pane.isAncestorOf(QApplication.focusWidget())


def test_what_is_opened_begins_with_the_overview(window, qtbot) -> None:
    first = next(one.name for one in VIEWS if one.area is Area.CENTRE)
    assert (first, window.store.state.view) == ("overview", "overview")
    window.show_view("memory")
    open_sample(window, qtbot, (str(DATA / "corpus/v1.5.1/mm_portable"),))
    assert window.store.state.view == "overview"


def test_full_screen_gives_a_maximised_window_back(window, qtbot) -> None:
    window.showMaximized()
    window.toggle_full_screen()
    assert window.isFullScreen()
    window.toggle_full_screen()
    assert not window.isFullScreen()
    assert window.isMaximized()


def test_a_trace_takes_no_trace_of_another_run_along(tmp_path: Path) -> None:
    trace = DATA / "corpus/v1.5.1/mm_portable/run.etdp"
    for name in ("one.etdp", "two.etdp", "run.etdp", "values.etdp"):
        shutil.copy(trace, tmp_path / name)
    assert pair(str(tmp_path / "one.etdp")) == (str(tmp_path / "one.etdp"),)
    both = {str(tmp_path / "run.etdp"), str(tmp_path / "values.etdp")}
    assert set(pair(str(tmp_path / "run.etdp"))) == both


@pytest.mark.parametrize(
    ("name", "label"),
    [("step", "Begin"), ("compile", "Compile…"), ("gates", None)],
)
def test_arrow_keys_change_no_choice_of_a_view_that_was_just_opened(
    window, qtbot, name, label
) -> None:
    window.activateWindow()
    window.show_view(name)

    def opened() -> bool:
        focus, host = QApplication.focusWidget(), host_of(window, name)
        return focus is not None and host.isAncestorOf(focus) and _label(focus) == label

    qtbot.waitUntil(opened, timeout=20_000)
    assert not isinstance(QApplication.focusWidget(), QComboBox)


def _label(widget: QWidget) -> str | None:
    return widget.text() if isinstance(widget, PushButton) else None


def test_the_button_with_the_keyboard_does_not_look_like_the_most_important_one(qtbot) -> None:
    button = PushButton("Copy")
    qtbot.addWidget(button)
    button.show()
    button.setFocus()
    qtbot.waitUntil(button.hasFocus, timeout=5_000)
    option = QStyleOptionButton()
    button.initStyleOption(option)
    assert not option.features & QStyleOptionButton.ButtonFeature.DefaultButton
