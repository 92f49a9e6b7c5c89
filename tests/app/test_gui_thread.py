"""Results of threads meet the death of who asked for them."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from PySide6.QtCore import QObject, QTimer

from devtools_app.jobs.gui_thread import gui_thread

# In a process of its own, since what is looked for ends it: where threads emitted signals of what
# dies, each of four such processes ended within a second, by the fast switch of threads.
DYING_OWNERS = """
import random, sys, time
from PySide6.QtCore import QCoreApplication, QEvent, QObject
import shiboken6
from devtools_app.jobs.latest import Latest
from devtools_app.jobs.imports import Imports

sys.setswitchinterval(1e-6)
app = QCoreApplication([])
arrived = []
for turn in range(1000):
    owner = QObject()
    runners = [Latest("dying", owner) for _ in range(3)]
    for runner in runners:
        runner.ready.connect(arrived.append)
        runner.submit(lambda _token: turn)
    imports = Imports(owner)
    imports.start(["json", "csv"])
    end = time.perf_counter() + random.random() * 3e-4
    while time.perf_counter() < end:
        pass
    if turn % 2:
        shiboken6.delete(owner)
    else:
        owner.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    del owner, runners, runner, imports
    if turn % 100 == 0:
        app.processEvents()
app.processEvents()
print(len(arrived))
"""


@pytest.mark.gui
@pytest.mark.slow
def test_a_thread_may_end_while_its_owner_dies() -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", DYING_OWNERS],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert "has been deleted" not in ended.stderr  # nor does a thread post to what is destroyed
    assert ended.stdout.strip() == "0"  # who is gone hears of nothing


@pytest.mark.gui
def test_events_come_between_calls_that_take_long(qtbot) -> None:
    order: list[str] = []
    owner = QObject()

    def slow(name: str) -> None:
        time.sleep(0.02)
        order.append(name)

    for name in ("one", "two"):
        gui_thread().post(owner, slow, name)
    for name in ("three", "four"):
        gui_thread().post(owner, order.append, name)
    QTimer.singleShot(0, owner, lambda: order.append("event"))
    qtbot.waitUntil(lambda: len(order) == 5)
    assert order.index("event") < order.index("two")
    assert [one for one in order if one != "event"] == ["one", "two", "three", "four"]


@pytest.mark.gui
def test_call_that_fails_holds_up_no_other(qtbot) -> None:
    owner, made = QObject(), []
    with qtbot.captureExceptions() as failed:
        gui_thread().post(owner, lambda: 1 / 0)
        gui_thread().post(owner, made.append, 1)
        qtbot.waitUntil(lambda: made == [1])
    assert [kind for kind, *_ in failed] == [ZeroDivisionError]
