"""The watchdog of the benchmarks measures how long the GUI thread is busy, and what it does."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QCoreApplication

from tests.bench.child import ask
from tests.bench.watchdog import Watchdog

pytestmark = pytest.mark.gui

CODE = """
import dataclasses, json, time
from PySide6.QtCore import QCoreApplication, QTimer
from devtools_app.viewmodels.layout import axis
from tests.bench.watchdog import Watchdog
app = QCoreApplication([])
watchdog = Watchdog(0.03)
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
def busy():
    watchdog.step = "busy"
    spin(0.1)
def asleep():
    watchdog.step = "asleep"
    time.sleep(0.1)
def short():
    watchdog.step = "short"
    spin(0.001)
# as if it were of the product
exec(compile("def product(work):\\n    work()\\n", axis.__file__, "exec"))
def measuring():
    watchdog.step = "measuring"
    with watchdog.left_out():
        spin(0.1)
for at, act in (
    (50, lambda: product(busy)), (400, asleep), (700, short), (900, measuring), (1300, app.quit)
):
    QTimer.singleShot(at, act)
watchdog.start()
app.exec()
watchdog.stop()
print(json.dumps([{**dataclasses.asdict(one), "seconds": one.seconds, "what": one.what}
                  for one in watchdog.blocks]))
"""


def test_a_busy_thread_is_a_block_with_what_ran_and_an_idle_one_is_none() -> None:
    blocks = {one["step"]: one for one in ask(CODE)}
    assert "busy" in blocks
    assert blocks["busy"]["seconds"] >= 0.08
    assert "axis.product" in blocks["busy"]["what"]
    assert "short" not in blocks
    assert "measuring" not in blocks or blocks["measuring"]["seconds"] < 0.05
    # a wait that costs no processor time of the process is not what the program did
    assert blocks["asleep"]["wall"] >= 0.08
    assert blocks["asleep"]["seconds"] < 0.05


def test_watchdog_ends_at_any_moment(qapp: QCoreApplication) -> None:
    """Also while its thread is about to post an event that no loop handles any more."""
    for number in range(60):
        watchdog = Watchdog(0.05)
        watchdog.start()
        time.sleep(0.004 + 0.0001 * number)
        qapp.processEvents()
        watchdog.stop()
        assert not watchdog._watcher.is_alive()
