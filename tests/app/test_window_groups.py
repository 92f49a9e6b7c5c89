"""The window and its groups of tabs: keys, buttons, menu, and what each group remembers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton, QTabBar

from devtools_app.jobs.follower import JobProgress
from devtools_app.shell.window import MainWindow
from devtools_app.state.tab_groups import TabGroup
from devtools_app.views.spec import Area, ViewSpec
from inspector.jobs.messages import Ended, Outcome
from tests.app.window_views import RECORDER_VIEWS, Recorder, host_of, open_sample, view

pytestmark = [pytest.mark.gui, pytest.mark.slow]
LOOK, CHANGE, PROVE = TabGroup
SOME = (
    *RECORDER_VIEWS[:4],
    ViewSpec("both", "Both", Area.CENTRE, Recorder, "graph", groups=(LOOK, CHANGE)),
    ViewSpec("change2", "Stages", Area.CENTRE, Recorder, "stages", groups=(CHANGE,)),
    ViewSpec("prove", "Compare", Area.CENTRE, Recorder, "compare", groups=(PROVE,)),
    ViewSpec("recipe", "Recipe", Area.RIGHT, Recorder, "recipe", groups=(CHANGE,)),
    *RECORDER_VIEWS[4:],
)
CONTROL_ALT = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
ALT = Qt.KeyboardModifier.AltModifier


@pytest.fixture
def window(make_window: Callable[..., MainWindow], qtbot) -> MainWindow:
    made = make_window(views=SOME)
    open_sample(made, qtbot)
    return made


def tabs(window: MainWindow) -> list[str]:
    bar = window.centre.findChildren(QTabBar)[0]
    return [bar.tabText(tab) for tab in range(bar.count())]


def test_keys_buttons_and_menu_switch_groups(window, qtbot) -> None:
    assert tabs(window) == ["One", "Two", "Timed", "Broken", "Both"]
    qtbot.keyClick(window, Qt.Key.Key_2, CONTROL_ALT)
    assert tabs(window) == ["Both", "Stages", "Recipe"]
    assert window.top_bar.groups.buttons[CHANGE].isChecked()
    qtbot.mouseClick(window.top_bar.groups.buttons[PROVE], Qt.MouseButton.LeftButton)
    assert tabs(window) == ["Compare"]
    assert window.bound["prove"].isChecked()
    window.bound["look"].trigger()
    assert (window.store.state.group, window.store.state.view) == (LOOK, "one")


def test_group_that_comes_to_the_front_has_the_keyboard_in_its_view(window, qtbot) -> None:
    window.activateWindow()
    buttons = window.top_bar.groups.buttons
    for number, group in enumerate([PROVE, CHANGE, LOOK, PROVE, LOOK, CHANGE]):
        window.top_bar.overlay_choice.setFocus()
        if number < 3:
            window.bound[{LOOK: "look", CHANGE: "change_program", PROVE: "prove"}[group]].trigger()
        else:
            qtbot.mouseClick(buttons[group], Qt.MouseButton.LeftButton)
        assert window.store.state.group is group
        front = view(window, window.store.state.view)
        focus = QApplication.focusWidget()
        assert focus is not None
        assert front.isAncestorOf(focus)


def test_alt_numbers_count_the_tabs_of_the_group_in_front(window, qtbot) -> None:
    qtbot.keyClick(window, Qt.Key.Key_2, ALT)
    assert window.store.state.view == "two"
    qtbot.keyClick(window, Qt.Key.Key_2, CONTROL_ALT)
    qtbot.keyClick(window, Qt.Key.Key_2, ALT)
    assert window.store.state.view == "change2"
    qtbot.keyClick(window, Qt.Key.Key_1, CONTROL_ALT)
    assert window.store.state.view == "two"


def test_view_of_two_groups_is_one_widget(window) -> None:
    window.show_view("both")
    first = view(window, "both")
    window.bound["change_program"].trigger()
    window.show_view("both")
    assert window.store.state.group is CHANGE
    assert view(window, "both") is first
    assert first.isVisible()


def test_view_by_its_name_stays_or_goes_to_its_group(window) -> None:
    window.show_view("prove")
    assert window.store.state.group is PROVE
    window.show_view("both")
    assert window.store.state.group is LOOK


def test_recipe_is_a_panel_and_in_its_group_a_tab(window) -> None:
    dock = window.docks.by_name["recipe"]
    window.show_view("recipe")
    assert window.store.state.group is LOOK
    shown = view(window, "recipe")
    assert dock.isAncestorOf(shown)
    window.bound["change_program"].trigger()
    window.show_view("recipe")
    assert window.store.state.view == "recipe"
    assert view(window, "recipe") is shown
    assert window.centre.isAncestorOf(shown)
    assert shown.isVisible()
    assert window.active_view()[0].name == "recipe"
    assert not dock.isVisible()  # it would stand there twice
    window.show_view("both")
    assert dock.isAncestorOf(shown)
    assert dock.isVisible()


def test_switch_is_reached_and_used_by_keyboard(window, qtbot) -> None:
    window.activateWindow()
    buttons = window.top_bar.groups.buttons
    assert [one.accessibleName() for one in buttons.values()] == ["Look", "Change", "Prove"]
    buttons[LOOK].setFocus()
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Right)
    assert QApplication.focusWidget() is buttons[CHANGE]
    assert window.store.state.group is CHANGE


def test_groups_without_views_have_no_button(make_window, qtbot) -> None:
    plain = make_window(views=RECORDER_VIEWS)
    open_sample(plain, qtbot)
    shown = [group for group, one in plain.top_bar.groups.buttons.items() if one.isVisible()]
    assert shown == [LOOK]
    assert not plain.bound["prove"].isVisible()


def test_each_group_remembers_its_panels(window, qtbot) -> None:
    window.docks.by_name["left"].close()
    window.bound["prove"].trigger()
    assert not window.docks.by_name["left"].isVisible()
    window.docks.by_name["left"].show()
    window.bound["look"].trigger()
    assert not window.docks.by_name["left"].isVisible()
    window.bound["prove"].trigger()
    assert window.docks.by_name["left"].isVisible()


def test_group_fronts_and_panels_are_kept_over_a_restart(window, make_window, qtbot):
    window.show_view("two")
    window.show_view("change2")
    window.docks.by_name["left"].close()
    window.close()
    again = make_window(views=SOME)
    state = again.store.state
    assert (state.group, state.view, state.fronts["look"]) == (CHANGE, "change2", "two")
    open_sample(again, qtbot)
    assert again.store.state.group is LOOK  # what one opens begins with an overview
    assert again.docks.by_name["left"].isVisible()
    again.bound["change_program"].trigger()
    assert not again.docks.by_name["left"].isVisible()


def test_view_that_nothing_can_fill_is_in_the_menu_with_the_reason(make_window, qtbot):
    never = ViewSpec(
        "never", "Never", Area.CENTRE, Recorder, "graph", never=lambda _one: "no graph"
    )
    window = make_window(views=(*RECORDER_VIEWS, never))
    open_sample(window, qtbot)
    assert "Never" not in tabs(window)
    action = next(one for one in window.all_actions() if one.text().startswith("Never"))
    assert action.text() == "Never (no graph)"
    action.trigger()
    assert window.store.state.view == "never"
    assert tabs(window)[-1] == "Never"
    window.show_view("one")
    assert "Never" not in tabs(window)


def test_view_without_a_session_is_shown_in_place_of_the_start_page(make_window, qtbot):
    free = ViewSpec("free", "Free", Area.CENTRE, Recorder, "play", without_session=True)
    window = make_window(views=(*RECORDER_VIEWS, free))
    window.show_view("free")
    assert host_of(window, "free").isVisible()
    window.show_view("one")
    assert not host_of(window, "one").isVisible()
    window.show_view("free")
    window.show_start_page()
    assert not host_of(window, "free").isVisible()


@pytest.mark.parametrize(
    ("ended", "in_front", "offered"),
    [
        (Ended.FAILED, "one", True),
        (Ended.CRASHED, "one", True),
        (Ended.FAILED, "run", False),
        (Ended.CANCELLED, "one", False),
        (Ended.FINISHED, "one", False),
    ],
)
def test_run_that_failed_behind_another_view_is_offered(
    make_window, qtbot, ended: Ended, in_front: str, offered: bool
) -> None:
    run = ViewSpec("run", "Run", Area.CENTRE, Recorder, "play", groups=(PROVE,))
    window = make_window(views=(*RECORDER_VIEWS, run))
    open_sample(window, qtbot)
    window.show_view(in_front)
    outcome = Outcome(ended, "The program has no method f.")
    window.jobs["run"].ended.emit(JobProgress(None, outcome=outcome))
    assert ("no method f" in window.strip.text) is offered
    assert window.store.state.view == in_front
    if offered:
        show = next(one for one in window.strip.findChildren(QPushButton) if one.text() == "Show")
        show.click()
        assert window.store.state.view == "run"
