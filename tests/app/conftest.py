"""Fixtures for tests of the window: a theme, files for settings, a window that closes itself."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from pytestqt.wait_signal import SignalBlocker

import devtools_app.widgets.chart  # noqa: F401  # plots draw at once where it is imported
from devtools_app.appearance.look import ThemeMode
from devtools_app.appearance.theme import Theme
from devtools_app.jobs.measuring import OutputErrorRuns
from devtools_app.sessions.opening import Load
from devtools_app.shell.window import MainWindow
from devtools_app.state.settings import SettingsFile
from devtools_app.views import VIEWS
from devtools_app.views.spec import ViewSpec
from inspector.files.load import load_session

PATIENCE = 60_000  # ms
_ROUNDS = 8  # of events


class PatientBot(QtBot):
    """Waits a minute for what is sure to come: on a busy machine seconds are not enough.

    A test that passes waits no longer for that.
    """

    def waitUntil(  # noqa: N802
        self, callback: Callable[[], bool | None], *, timeout: int = PATIENCE
    ) -> None:
        super().waitUntil(callback, timeout=max(timeout, PATIENCE))

    def waitSignal(  # noqa: N802
        self, signal: Any, *, timeout: int = PATIENCE, raising: bool | None = None, **options: Any
    ) -> SignalBlocker:
        if raising is not False:  # else it shall not come
            timeout = max(timeout, PATIENCE)
        return super().waitSignal(signal, timeout=timeout, raising=raising, **options)

    def wait(self, ms: int) -> None:
        """Wait, and let what was posted until then come to its end: layouts ask for layouts."""
        super().wait(ms)
        for _ in range(_ROUNDS):
            QCoreApplication.processEvents()


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    """The robot of pytest-qt with more patience."""
    return PatientBot(request)


@pytest.fixture(autouse=True)
def no_garbage_collected_inside_events() -> Iterator[None]:
    """Collect between tests only, as devtools_app/shell/cyclic_gc.py does between events."""
    gc.disable()
    yield
    # processEvents leaves deleteLater to an event loop; a window that lives on costs the style
    # sheet of every later theme 0.9 s
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect(1)
    gc.enable()


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    """The light look.

    The style sheet stays: Qt forgets to forget widgets that die after it was taken away, and
    crashes at the next one.
    """
    found = Theme(qapp, ThemeMode.LIGHT)
    yield found
    found.deleteLater()


@pytest.fixture
def settings_file(tmp_path: Path) -> SettingsFile:
    """A place for settings that nobody else uses."""
    return SettingsFile(tmp_path / "config" / "settings.json")


MakeWindow = Callable[..., MainWindow]


@pytest.fixture
def make_window(qtbot, theme: Theme, settings_file: SettingsFile) -> MakeWindow:
    """A function that returns a shown window; all are closed at the end."""

    def make(*, load: Load = load_session, views: tuple[ViewSpec, ...] = VIEWS) -> MainWindow:
        window = MainWindow(theme, settings_file, load=load, views=views)
        qtbot.addWidget(window)
        window.show()
        return window

    return make


start_errors = OutputErrorRuns.start  # for tests of it


@pytest.fixture(autouse=True)
def no_errors_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons start no worker for errors of outputs: it would outlive most tests."""
    monkeypatch.setattr(OutputErrorRuns, "start", lambda *_arguments: None)


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Fail a test that leaves one of our threads running."""
    before = set(threading.enumerate())
    yield
    left = [one for one in threading.enumerate() if one not in before]
    for one in left:
        one.join(3)
    assert not [one.name for one in left if one.is_alive()]


def interactive(root: QWidget) -> list[QWidget]:
    """Return the widgets below a widget that take the keyboard and can be seen."""
    return [
        widget
        for widget in root.findChildren(QWidget)
        if widget.focusPolicy().value & 1 and widget.isVisibleTo(root)
    ]
