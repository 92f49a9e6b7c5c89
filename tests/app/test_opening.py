"""Files are read off the GUI thread; the newest request wins; watching is patient."""

from __future__ import annotations

import shutil
import threading
from contextlib import ExitStack

import pytest

from devtools_app.sessions.opening import Opener, OpenTarget
from devtools_app.sessions.watching import Watcher
from devtools_app.state.state import State
from devtools_app.state.transitions import add_session
from inspector.files.load import LoadCancelled, load_session
from inspector.files.session import LoadedFile, Session, SessionOptions
from schema.errors import FormatError

pytestmark = [pytest.mark.gui, pytest.mark.slow]
OPTIONS = SessionOptions()


class Slow:
    """A load function that waits until it is let go or cancelled."""

    def __init__(self):
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.cancelled = []

    def __call__(self, paths, options=None, *, cancel=None, progress=None):
        if paths[0] == "fast":
            return Session("fast", ())
        self.begun.set()
        progress("/some/model.pte", 0.5)
        while not self.gate.wait(0.005):
            if cancel.is_set():
                self.cancelled.append(paths[0])
                raise LoadCancelled
        return Session("slow", ())


@pytest.fixture
def opener_with(qtbot):
    made = []

    def make(load):
        made.append(Opener(load))
        return made[-1]

    yield make
    for one in made:
        one.shut_down()


def test_opener_reads_real_files_and_reports_progress(qtbot, opener_with, data):
    opener = opener_with(load_session)
    told = []
    opener.progressed.connect(lambda what, share: told.append((what, share)))
    folder = data / "corpus" / "v1.5.1"
    target = OpenTarget((str(next(iter(sorted(folder.iterdir())))),))
    with qtbot.waitSignal(opener.loaded, timeout=20_000) as loaded:
        opener.open((target,), lambda: OPTIONS)
    (result,) = loaded.args[0]
    assert result.error == ""
    assert result.session.files
    qtbot.waitUntil(lambda: bool(told))
    assert told[0][0].startswith("reading ")


def test_opener_newest_request_wins(qtbot, opener_with):
    slow = Slow()
    opener = opener_with(slow)
    results = []
    opener.loaded.connect(lambda found: results.append(found[0].session.name))
    opener.open((OpenTarget(("slow",)),), lambda: OPTIONS)
    assert slow.begun.wait(60)
    with qtbot.waitSignal(opener.loaded):
        opener.open((OpenTarget(("fast",)),), lambda: OPTIONS)
    qtbot.wait(50)
    assert results == ["fast"]
    assert slow.cancelled == ["slow"]


def test_opener_cancel_ends_without_result(qtbot, opener_with):
    slow = Slow()
    opener = opener_with(slow)
    with qtbot.assertNotEmitted(opener.loaded, wait=50):
        opener.open((OpenTarget(("slow",)),), lambda: OPTIONS)
        assert slow.begun.wait(60)
        with qtbot.waitSignal(opener.ended):
            opener.cancel()
    assert not opener.busy
    assert slow.cancelled == ["slow"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FormatError("a program", "a picture", file="x.pte", offset=0), "expected a program"),
        (FileNotFoundError(2, "No such file or directory", "x.pte"), "x.pte: No such file"),
        (PermissionError("denied"), "denied"),
        (RuntimeError("odd"), "this is a bug"),
    ],
)
def test_opener_errors_become_sentences(qtbot, opener_with, error, words):
    def load(*_args, **_kwargs):
        raise error

    opener = opener_with(load)
    with qtbot.waitSignal(opener.loaded) as loaded:
        opener.open((OpenTarget(("x.pte",)),), lambda: OPTIONS)
    (result,) = loaded.args[0]
    assert result.session is None
    assert words in result.error
    assert "\n" not in result.error


def test_opener_several_targets_fail_one_by_one(qtbot, opener_with):
    def load(paths, options=None, **_kwargs):
        if paths[0] == "bad":
            raise FormatError("a program", "nothing", file="bad")
        return Session(paths[0], ())

    opener = opener_with(load)
    with qtbot.waitSignal(opener.loaded) as loaded:
        opener.open((OpenTarget(("a",)), OpenTarget(("bad",)), OpenTarget(("c",))), lambda: OPTIONS)
    assert [result.session is not None for result in loaded.args[0]] == [True, False, True]


def test_opener_pairs_a_single_file_with_its_siblings(qtbot, opener_with, data, tmp_path):
    source = next(
        one
        for one in sorted((data / "corpus" / "v1.5.1").iterdir())
        if (one / "model.pte").exists()
    )
    folder = tmp_path / "pair"
    shutil.copytree(source, folder)
    opener = opener_with(load_session)
    chosen = str(folder / "model.pte")
    for pair, more in ((True, True), (False, False)):
        with qtbot.waitSignal(opener.loaded, timeout=20_000) as loaded:
            opener.open((OpenTarget((chosen,), pair=pair),), lambda: OPTIONS)
        (result,) = loaded.args[0]
        assert result.paths[0] == chosen
        assert (len(result.paths) > 1) is more


def test_opener_nothing_to_open_is_nothing(qtbot, opener_with):
    opener = opener_with(load_session)
    with qtbot.assertNotEmitted(opener.started):
        opener.open((), lambda: OPTIONS)


def state_of(path) -> State:
    file = LoadedFile(str(path), "pte", 1, memoryview(b"x"), None)
    return add_session(State(), Session("s", (file,)), (str(path),))


@pytest.fixture
def watched(qtbot, tmp_path):
    path = tmp_path / "model.pte"
    path.write_bytes(b"one")
    watcher = Watcher()
    watcher.show_state(state_of(path))
    watcher.set_on(True)
    yield watcher, path
    watcher.set_on(False)


def test_watcher_tells_once_for_many_writes(qtbot, watched):
    watcher, path = watched
    told = []
    watcher.changed.connect(told.append)
    for number in range(4):
        path.write_bytes(b"x" * number)
        qtbot.wait(20)
    qtbot.waitUntil(lambda: bool(told), timeout=5000)
    qtbot.wait(600)
    assert told == [("A",)]


def test_watcher_survives_files_that_are_replaced(qtbot, watched):
    watcher, path = watched
    for number in range(2):
        other = path.with_suffix(".new")
        other.write_bytes(b"new" * (number + 1))
        with qtbot.waitSignal(watcher.changed, timeout=5000):
            other.replace(path)


def test_watcher_survives_files_that_are_replaced_while_a_program_reads_them(qtbot, watched):
    watcher, path = watched
    with ExitStack() as readers:
        for number in range(3):
            other = path.with_suffix(".new")
            other.write_bytes(b"new" * (number + 1))
            readers.enter_context(path.open("rb"))  # the replaced file lives on with its watch
            with qtbot.waitSignal(watcher.changed, timeout=5000):
                other.replace(path)


def test_watcher_waits_for_a_file_that_comes_back(qtbot, watched):
    watcher, path = watched
    with qtbot.assertNotEmitted(watcher.changed, wait=700):
        path.unlink()
    with qtbot.waitSignal(watcher.changed, timeout=5000):
        path.write_bytes(b"back")


def test_watcher_tells_of_a_file_that_stays_away_and_of_its_return(qtbot, watched):
    watcher, path = watched
    watcher._patience.setInterval(50)
    told = []
    watcher.changed.connect(told.append)
    kept = path.rename(path.with_suffix(".kept"))
    qtbot.waitUntil(lambda: told == [("A",)], timeout=5000)
    kept.rename(path)
    qtbot.waitUntil(lambda: told == [("A",)] * 2, timeout=5000)


def test_watcher_off_says_nothing(qtbot, watched):
    watcher, path = watched
    watcher.set_on(False)
    with qtbot.assertNotEmitted(watcher.changed, wait=600):
        path.write_bytes(b"two")
