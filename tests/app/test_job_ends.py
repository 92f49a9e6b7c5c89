"""What is said about a job that ends while the user looks at something else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from devtools_app.shell.window import MainWindow
from inspector.jobs.executing import RunJob
from inspector.jobs.messages import Ended, Outcome
from tests.app.window_views import SAMPLE_FILES, open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]
DONE = Outcome(Ended.FINISHED)


@pytest.fixture
def window(make_window: Callable[..., MainWindow], qtbot) -> MainWindow:
    made = make_window()
    made.resize(1280, 900)
    open_sample(made, qtbot)
    return made


def _begin(window: MainWindow, kind: str) -> str:
    return window.jobs.history.begin(kind, "ada/net.py:build", RunJob("/home/ada/model.pte"))


def _press_open(window: MainWindow, qtbot) -> None:
    (button,) = (one for one in window.strip.findChildren(QPushButton) if one.text() == "Open")
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


@pytest.mark.parametrize("kind", ["bisect", "evaluate", "sweep", "gap"])
def test_result_is_offered_to_a_user_who_went_elsewhere(window, qtbot, kind: str) -> None:
    window.show_view(kind)
    key = _begin(window, kind)
    window.show_view("memory")
    window.jobs.history.end(key, DONE)
    assert window.store.state.view == "memory"
    assert window.strip.text.endswith("of ada/net.py:build has finished.")
    _press_open(window, qtbot)
    assert window.store.state.view == kind
    assert not window.strip.isVisible()


def test_session_of_a_job_comes_back_with_its_view(window, qtbot) -> None:
    first = window.store.state.current
    window.show_view("bisect")
    key = _begin(window, "bisect")
    open_sample(window, qtbot, SAMPLE_FILES[:1])
    second = window.store.state.current
    assert second != first
    window.show_view("bisect")  # of another session
    window.jobs.history.end(key, DONE)
    assert window.store.state.current == second
    _press_open(window, qtbot)
    assert (window.store.state.current, window.store.state.view) == (first, "bisect")


def test_failure_says_why_and_a_closed_session_is_not_offered(window) -> None:
    key = _begin(window, "bisect")
    window.controller.close(window.store.state.current)
    window.jobs.history.end(key, Outcome(Ended.FAILED, "no such operator"))
    assert window.strip.text == "The bisection of ada/net.py:build failed: no such operator."
    assert not [one for one in window.strip.findChildren(QPushButton) if one.text() == "Open"]


def test_nothing_is_said_to_a_user_who_waits_or_has_cancelled(window) -> None:
    window.show_view("bisect")
    window.jobs.history.end(_begin(window, "bisect"), DONE)
    key = _begin(window, "bisect")
    window.show_view("memory")
    window.jobs.history.end(key, Outcome(Ended.CANCELLED, "cancelled"))
    assert not window.strip.text


def test_what_a_view_computes_on_its_own_is_not_reported(window) -> None:
    window.show_view("compare")
    history = window.jobs.history
    key = history.begin("evaluate", "a | b", RunJob("/home/ada/model.pte"), asked=False)
    history.end(key, DONE)
    assert window.strip.text == ""
    assert history.find(key) is not None  # the Jobs panel has it
