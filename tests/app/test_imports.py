"""Modules are imported off the GUI thread, and views wait for theirs."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QTabBar
from pytestqt.qtbot import QtBot

from devtools_app import views
from devtools_app.jobs.imports import Imports, _Turns, import_later, is_imported
from devtools_app.shell.view_host import ViewHost
from devtools_app.views import VIEWS
from devtools_app.views.spec import Area, entry

pytestmark = pytest.mark.gui

VIEW = """
import threading

from PySide6.QtWidgets import QLineEdit

from devtools_app.views.spec import Area, ViewSpec

IMPORTED_IN = threading.current_thread()


class LateView(QLineEdit):
    def __init__(self, context):
        super().__init__()
        self.setAccessibleName("late")

    def show_state(self, state):
        self.setText(state.view)


SPEC = ViewSpec("NAME", "Late", Area.CENTRE, LateView, "size", without_session=True)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(views, "__path__", [*views.__path__, str(tmp_path)])
    return tmp_path


def test_imports_all_survives_a_bad_one_and_what_is_wanted_comes_first(
    qtbot: QtBot, caplog: pytest.LogCaptureFixture, folder: Path
) -> None:
    for name in ("first_one", "second_one", "third_one"):
        (folder / f"{name}.py").write_text("import time\ntime.sleep(0.2)\n", "utf-8")
    imports, arrived = Imports(), []
    imports.arrived.connect(arrived.append)
    names = [f"devtools_app.views.{one}_one" for one in ("first", "second", "third")]
    imports.start((names[0], "no.such.module", *names[1:]))
    assert not imports.ready(names[2])
    qtbot.waitUntil(lambda: len(arrived) == 4)
    assert arrived.index(names[2]) < arrived.index(names[1])
    assert "no.such.module cannot be imported" in caplog.text
    assert imports.ready("no.such.module")  # who imports it reports why
    assert all(map(imports.ready, names))
    imports.stop()


def test_a_module_is_not_there_before_its_content(qtbot: QtBot, folder: Path) -> None:
    (folder / "slow_one.py").write_text("import time\ntime.sleep(0.3)\nDONE = 1\n", "utf-8")
    name = "devtools_app.views.slow_one"
    assert not import_later(name)
    qtbot.waitUntil(lambda: name in sys.modules)
    assert not is_imported(name)
    qtbot.waitUntil(lambda: import_later(name))
    assert sys.modules[name].DONE == 1


def test_imports_that_were_not_started_leave_it_to_who_needs_a_module() -> None:
    assert Imports().ready("no.such.module")


def _nested(folder: Path, kind: str, count: int, seconds: float) -> list[str]:
    """Return a module that imports others, and those, each of which takes some seconds."""
    inner = [f"{kind}_inner_{number}" for number in range(count)]
    for name in inner:
        (folder / f"{name}.py").write_text(f"import time\ntime.sleep({seconds})\n", "utf-8")
    names = [f"devtools_app.views.{name}" for name in inner]
    (folder / f"{kind}_outer.py").write_text("".join(f"import {one}\n" for one in names), "utf-8")
    return [f"devtools_app.views.{kind}_outer", *names]


@pytest.mark.parametrize("later", [True, False])
def test_a_thread_that_imports_lets_the_gui_thread_finish_before_each_module(
    qtbot: QtBot, folder: Path, *, later: bool
) -> None:
    outer, *inner = _nested(folder, "later" if later else "queued", 3, 0.01)
    imports = Imports()
    if later:
        import_later(outer)
    else:
        imports.start([outer])
    event = time.perf_counter() + 0.05
    while time.perf_counter() < event:  # an event that gives the interpreter away all the time
        time.sleep(0.0005)
        seen = [name for name in inner if name in sys.modules]
    assert len(seen) < len(inner)
    qtbot.waitUntil(lambda: is_imported(outer))
    imports.stop()


@pytest.mark.parametrize("stopped", [True, False])
def test_a_thread_that_the_gui_thread_waits_for_hurries(
    qtbot: QtBot, folder: Path, *, stopped: bool
) -> None:
    outer = _nested(folder, "stopped" if stopped else "wanted", 60, 0.003)[0]
    imports = Imports()
    imports.start([outer])
    began = time.perf_counter()
    time.sleep(0.03)
    if stopped:
        imports.stop()
    else:
        importlib.import_module(outer)  # the thread holds its lock
    assert time.perf_counter() - began < 2.0, "60 times 0.1 s"
    assert is_imported(outer)
    imports.stop()
    assert not any(isinstance(one, _Turns) for one in sys.meta_path)


def _written(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / f"{name}.py").write_text(
            "import threading\nIMPORTED_IN = threading.current_thread()\n", "utf-8"
        )
    return [f"devtools_app.views.{name}" for name in names]


@pytest.fixture
def screen_reader() -> Iterator[None]:
    QAccessible.setActive(True)
    yield
    QAccessible.setActive(False)


def test_for_a_screen_reader_modules_are_imported_on_the_gui_thread_between_events(
    qtbot: QtBot, folder: Path, screen_reader: None
) -> None:
    names = _written(folder, "read_one", "read_two", "read_three")
    imports, arrived = Imports(), []
    imports.arrived.connect(arrived.append)
    imports.start(names[:2])
    assert not any(map(is_imported, names))  # not within the call
    assert not imports.ready(names[2])
    qtbot.waitUntil(lambda: len(arrived) == 3)
    assert arrived == [names[2], names[0], names[1]]
    assert {sys.modules[name].IMPORTED_IN for name in names} == {threading.main_thread()}
    (late,) = _written(folder, "read_late")
    assert import_later(late)
    imports.stop()


def test_the_thread_hands_over_when_a_screen_reader_comes(qtbot: QtBot, folder: Path) -> None:
    (folder / "held_one.py").write_text(
        "import threading, time\n"
        "from PySide6.QtGui import QAccessible\n"
        "while not QAccessible.isActive():\n    time.sleep(0.01)\n"
        "IMPORTED_IN = threading.current_thread()\n",
        "utf-8",
    )
    names = ["devtools_app.views.held_one", *_written(folder, "held_two", "held_three")]
    imports, arrived = Imports(), []
    imports.arrived.connect(arrived.append)
    imports.start(names)
    qtbot.waitUntil(lambda: names[0] in sys.modules)
    QAccessible.setActive(True)
    try:
        qtbot.waitUntil(lambda: arrived == names)
    finally:
        QAccessible.setActive(False)
    threads = [sys.modules[name].IMPORTED_IN is threading.main_thread() for name in names]
    assert threads == [False, True, True]
    imports.stop()


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [True, False])
def test_a_view_is_made_once_its_module_was_imported_in_the_thread(
    qtbot: QtBot, make_window, folder: Path, *, ahead: bool
) -> None:
    name = f"late_{ahead}".lower()
    (folder / f"{name}.py").write_text(VIEW.replace("NAME", name), "utf-8")
    line = entry(name, "Late", Area.CENTRE, "size", without_session=True)
    window = make_window(views=(*VIEWS, line))
    if ahead:
        window.context.imports.start(())
    window.activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is window)
    window.centralWidget().findChildren(QTabBar)[0].setFocus()  # which a placeholder leaves there
    window.show_view(name)
    host = next(one for one in window.hosts if isinstance(one, ViewHost) and one.spec is line)
    module = f"devtools_app.views.{name}"
    if ahead:
        assert host.view is None
        assert host.isVisible()
        assert "Preparing the view" in host._empty.accessibleName()
    qtbot.waitUntil(lambda: host.view is not None)
    in_main = sys.modules[module].IMPORTED_IN is threading.main_thread()
    assert in_main is not ahead
    qtbot.waitUntil(lambda: host.view.text() == name)
    assert QApplication.focusWidget() is host.view


_DEFINES = """
import os, sys, threading
from devtools_app.jobs import imports
from PySide6.QtWidgets import *
from PySide6.QtCore import *
app = QApplication([])
imports._ROOM = int(sys.argv[1])
imports.make_room_for_types()
class W(QLabel): pass
class P(QWidget): pass
top = P()
layout = QVBoxLayout(top)
for _ in range(300): layout.addWidget(W("x"))
app.setStyleSheet('QLabel[a="1"]{color:red} P{color:blue} W{color:green} QLabel#x{color:red}')
top.show()
app.processEvents()
ended = []
def define():
    kept = []
    for number in range(6000):
        kept.append(type(f"T{number}", (QObject,), {}))
    ended.append(1)
thread = threading.Thread(target=define)
thread.start()
count = 0
while not ended:
    top.setStyleSheet("" if count % 2 else "W{color:red}")
    app.processEvents()
    count += 1
thread.join()
os._exit(0)
"""


@pytest.mark.gui
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="types have their data in themselves")
@pytest.mark.parametrize("attempt", range(4))
def test_types_that_a_thread_defines_do_not_end_the_process(attempt: int) -> None:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    code = [sys.executable, "-c", _DEFINES, "12000"]  # without it most end by a signal
    done = subprocess.run(code, env=environment, capture_output=True, timeout=100, check=False)
    assert done.returncode == 0, (attempt, done.returncode)
