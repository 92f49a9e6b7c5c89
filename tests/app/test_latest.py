"""Work off the GUI thread: the newest request wins, nothing is left behind."""

from __future__ import annotations

import threading
import time

import pytest
from PySide6.QtCore import QThread, QTimer
from PySide6.QtWidgets import QApplication

from devtools_app.jobs.computed import Computed
from devtools_app.jobs.latest import Latest

pytestmark = pytest.mark.gui


@pytest.fixture
def latest(qtbot):
    found = Latest("test")
    yield found
    found.close()


def test_latest_delivers_on_the_gui_thread(qtbot, latest):
    threads = []
    latest.ready.connect(lambda value: threads.append((value, QThread.currentThread())))
    with qtbot.waitSignal(latest.ended):
        latest.submit(lambda _token: threading.current_thread().name)
    assert threads == [("test", QApplication.instance().thread())]


def test_latest_drops_older_requests(qtbot, latest):
    got, cancelled = [], []
    latest.ready.connect(got.append)
    begun = threading.Event()

    def old(token):
        begun.set()
        cancelled.append(token.wait(5))
        return "old"

    latest.submit(old)
    assert begun.wait(60)
    latest.submit(lambda _token: "skipped")
    with qtbot.waitSignal(latest.ready):
        latest.submit(lambda _token: "new")
    qtbot.wait(50)
    assert got == ["new"]
    assert cancelled == [True]


def test_latest_result_that_is_already_on_its_way_is_dropped(qtbot, latest):
    got = []
    latest.ready.connect(got.append)
    latest.submit(lambda _token: "old")
    time.sleep(0.5)  # finished and queued, not delivered: the event loop did not run
    with qtbot.waitSignal(latest.ready):
        latest.submit(lambda _token: "new")
    assert got == ["new"]


def test_latest_cancel_ends_without_result(qtbot, latest):
    got = []
    latest.ready.connect(got.append)
    latest.failed.connect(got.append)
    token = latest.submit(lambda token: token.wait(5))
    with qtbot.waitSignal(latest.ended):
        latest.cancel()
    assert token.is_set()
    assert not latest.busy
    qtbot.wait(30)
    assert got == []


@pytest.mark.parametrize("error", [ZeroDivisionError, MemoryError, KeyboardInterrupt])
def test_latest_reports_errors(qtbot, latest, error):
    def work(_token):
        raise error

    with qtbot.waitSignal(latest.failed) as caught:
        latest.submit(work)
    assert isinstance(caught.args[0], error)
    assert not latest.busy


def test_latest_check_gives_up_silently(qtbot, latest):
    got = []
    latest.failed.connect(got.append)

    def loop(token):
        while True:
            token.check()
            time.sleep(0.001)

    latest.submit(loop)
    with qtbot.waitSignal(latest.ready):
        latest.submit(lambda _token: 1)
    assert got == []


def test_latest_thread_ends_when_idle(qtbot, latest):
    with qtbot.waitSignal(latest.ready):
        latest.submit(lambda _token: 1)
    qtbot.waitUntil(lambda: "test" not in [one.name for one in threading.enumerate()])


def test_latest_closed_takes_nothing_more(qtbot):
    latest = Latest("closing")
    token = latest.submit(lambda token: token.wait(5))
    latest.close()
    assert token.is_set()
    assert latest.submit(lambda _token: 1).is_set()
    assert not latest.busy


def test_work_begins_after_the_event_that_asked_for_it(qtbot, latest):
    order = []
    latest.ready.connect(order.append)

    def asked():
        latest.submit(lambda _token: order.append("work") or "result")
        QTimer.singleShot(0, lambda: order.append("later"))
        time.sleep(0.05)  # what the click did
        order.append("event")

    QTimer.singleShot(0, asked)
    with qtbot.waitSignal(latest.ready):
        pass
    assert order[0] == "event"
    assert order[-1] == "result"


@pytest.mark.parametrize("seconds", [0.03, 0.6])
def test_short_work_runs_one_after_the_other_and_long_work_delays_no_other(qtbot, seconds):
    lock, running, most = threading.Lock(), [], []

    def work(token):
        with lock:
            running.append(token)
            most.append(len(running))
        time.sleep(seconds)
        with lock:
            running.remove(token)

    several = [Latest(f"turn {one}") for one in range(4)]
    began = time.perf_counter()
    for one in several:
        one.submit(work)
    qtbot.waitUntil(lambda: len(most) == 4 and not any(one.busy for one in several))
    if seconds < 0.1:
        assert max(most) == 1
    else:
        assert max(most) > 1
        assert time.perf_counter() - began < 4 * seconds
    for one in several:
        one.close()


def test_work_that_waits_for_its_turn_can_be_cancelled(qtbot, latest):
    gate, first = threading.Event(), Latest("first")
    first.submit(lambda _token: gate.wait(5))
    ran = []
    latest.submit(lambda _token: ran.append(1))
    latest.cancel()
    qtbot.wait(300)
    gate.set()
    first.close()
    assert not ran


def test_latest_outlived_by_its_work_is_quiet(qtbot):
    latest = Latest("outlived")
    gate = threading.Event()
    latest.submit(lambda _token: gate.wait(5))
    latest.deleteLater()
    QApplication.sendPostedEvents(latest, 0)
    gate.set()
    qtbot.wait(50)


def test_computed_keeps_values_by_key(qtbot):
    computed = Computed("kept")
    calls = []

    def work(_token):
        calls.append(1)
        return "value"

    with qtbot.waitSignal(computed.ready):
        assert computed.ask("a", work) is None
        assert computed.ask("a", work) is None
    assert computed.ask("a", work) == "value"
    assert calls == [1]
    computed.forget()
    with qtbot.waitSignal(computed.ready):
        computed.ask("a", work)
    assert calls == [1, 1]
    computed.close()


def test_computed_failure_is_told_once(qtbot):
    computed = Computed("failing")
    errors = []
    computed.failed.connect(errors.append)

    def work(_token):
        raise ValueError("no")

    with qtbot.waitSignal(computed.failed):
        computed.ask("a", work)
    computed.ask("a", work)
    qtbot.wait(30)
    assert len(errors) == 1
    with qtbot.waitSignal(computed.ready):
        computed.ask("b", lambda _token: 2)
    assert computed.ask("b", work) == 2
    computed.close()


def test_computed_going_back_to_a_known_key_drops_work(qtbot):
    computed = Computed("back")
    with qtbot.waitSignal(computed.ready):
        computed.ask("a", lambda _token: 1)
    tokens = []

    def slow(token):
        tokens.append(token)
        token.wait(5)

    computed.ask("b", slow)
    qtbot.waitUntil(lambda: bool(tokens))
    assert computed.ask("a", slow) == 1
    assert tokens[0].is_set()
    assert not computed.busy
    computed.close()
