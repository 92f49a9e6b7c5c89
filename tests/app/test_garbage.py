"""Widgets that only cyclic garbage holds die between events, on the GUI thread."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QGuiApplication

from devtools_app.shell.cyclic_gc import GarbageCollector

pytestmark = [pytest.mark.gui, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]

# Every widget makes enough objects in its event for Python to collect, and holds itself in a cycle.
_RESTYLED = """
import sys
from PySide6.QtWidgets import QApplication, QLabel
from devtools_app.shell.cyclic_gc import GarbageCollector
from devtools_app.appearance.theme import Theme
from devtools_app.appearance.look import ThemeMode

class Busy(QLabel):
    def changeEvent(self, event):
        self.kept = [[] for _ in range(1200)]
        super().changeEvent(event)

app = QApplication([])
collector = GarbageCollector() if sys.argv[1] == "ours" else None
for turn in range(20):
    for number in range(21):
        label = Busy("x") if number % 3 else QLabel("y")
        label.me = [label]
        label.ensurePolished()
    del label
    Theme(app, ThemeMode.DARK if turn % 2 else ThemeMode.LIGHT)
    if collector is not None:
        collector.collect_due()
print(len(app.allWidgets()))
"""


class _Cycle:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def collector(qapp):
    found = GarbageCollector()
    yield found
    found.stop()


def test_restyling_with_garbage_widgets_does_not_end_the_process():
    place = {"PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", _RESTYLED, "ours"],
        env={**os.environ, **place},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) < 20 * 21, "garbage is collected all the same"


def test_collector_lets_no_other_thread_collect(collector):
    died = weakref.ref(_Cycle())
    kept: list[list[int]] = []
    other = threading.Thread(target=lambda: kept.extend([] for _ in range(20_000)))
    other.start()
    other.join()
    assert died() is not None
    collector.collect_due()
    assert died() is None


def test_collector_collects_all_ages_in_the_end(collector):
    died = weakref.ref(_Cycle())
    gc.collect(0)
    gc.collect(1)  # it is old now
    kept: list[list[int]] = []
    for _ in range(200):
        kept[:] = ([] for _ in range(1000))
        collector.collect_due()
    assert kept
    assert died() is None


def test_collector_works_from_the_event_loop(qtbot, collector):
    died = weakref.ref(_Cycle())
    kept: list[list[int]] = []

    def collected() -> bool:
        kept.extend([] for _ in range(200))  # others are freed meanwhile, which counts against it
        return died() is None

    qtbot.waitUntil(collected, timeout=20_000)


def test_collector_stopped_gives_the_collector_back(qapp):
    gc.enable()
    owner = QObject()
    found = GarbageCollector(owner)
    assert not gc.isenabled()
    found.stop()
    assert gc.isenabled()


def test_large_models_are_frozen_and_looked_at_once_a_session_is_closed_and_nobody_waits(
    collector, monkeypatch
):
    where = Qt.ApplicationState.ApplicationActive
    monkeypatch.setattr(QGuiApplication, "applicationState", lambda: where)
    kept = [[number] for number in range(300_000)]
    died = weakref.ref(_Cycle())
    collector.collect_due()
    assert gc.get_freeze_count() > len(kept)
    assert died() is not None  # frozen with the rest
    collector.thaw()
    collector.collect_due()
    assert gc.get_freeze_count() > len(kept), "the user is at work in the window"
    where = Qt.ApplicationState.ApplicationInactive
    collector.collect_due()
    assert gc.get_freeze_count() < len(kept)
    assert died() is None


@pytest.mark.parametrize("generation", [0, 1, 2])
def test_no_collection_looks_at_more_objects_than_fit_into_a_frame(
    collector, monkeypatch, generation
):
    looked: list[int] = []
    collect = gc.collect

    def counted(generation: int = 2) -> int:
        looked.append(sum(len(gc.get_objects(one)) for one in range(generation + 1)))
        return collect(generation)

    monkeypatch.setattr(gc, "collect", counted)
    gc.freeze()
    kept: list[list[int]] = []
    for _ in range(60):
        kept.extend([] for _ in range(2_000 * 10**generation // 10))
        collector.collect_due()
    assert looked
    assert max(looked) < 60_000
