"""Jobs and their logs in the window: recorded as they run, filtered, kept, cleaned, copied."""

from __future__ import annotations

import json
import logging
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QPushButton, QTableView

from devtools_app.actions.job_restart import JobRestart
from devtools_app.jobs.history import JobHistory
from devtools_app.jobs.window_jobs import WindowJobs
from devtools_app.sample_data import LOOP
from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import JobAction, Notice, OpenSource
from devtools_app.viewmodels.log_lines import LogLine
from devtools_app.views.jobs import JobsView
from devtools_app.views.log import LogView
from devtools_app.widgets.log_panel import LogPanel, LogStore
from devtools_app.widgets.log_text import LogText
from inspector.jobs.executing import RunJob
from inspector.jobs.gap import GapJob
from inspector.jobs.history import EntryReader, read_entries
from inspector.jobs.messages import Ended, Log, Outcome, StageProgress, Warned
from inspector.jobs.planning import PlanJob
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source
from tests.app.fake_jobs import FakeRun
from tests.app.window_views import host_of, open_sample

pytestmark = pytest.mark.gui
FAILED = Outcome(
    Ended.FAILED,
    "/home/ada/net.py:7: no such operator",
    file="/home/ada/net.py",
    line=7,
    details="Traceback",
)


def _build(folder: Path) -> Path:
    """Return a folder that a compile wrote, with a file of the user."""
    folder.mkdir(parents=True)
    (folder / "model.pte").write_bytes(bytes(2048))
    (folder / "notes.txt").write_text("mine")
    report = {"etscope": "1", "files": [{"path": "model.pte"}]}
    (folder / "compile.json").write_text(json.dumps(report))
    return folder


def _run_compile(jobs: WindowJobs, qtbot, target: str, outcome: Outcome) -> FakeRun:
    run = FakeRun(CompileJob(Source("/home/ada/net.py", "build")))
    jobs["compile"].follow(run, target=target)
    run.messages = [
        StageProgress("export"),
        StageProgress("export", "forward", 1.5, 12),
        Warned("two inputs share a name", "/home/ada/net.py", 4),
        Log("hello from the model"),
        Log("lowering", logger="torch", level=logging.DEBUG),
    ]
    qtbot.waitUntil(lambda: not run.messages, timeout=5000)
    run.outcome = outcome
    qtbot.waitUntil(lambda: not jobs["compile"].running, timeout=5000)
    return run


# ---- without a window
def test_jobs_are_recorded_with_all_that_they_log(qtbot, tmp_path: Path) -> None:
    jobs = WindowJobs()
    jobs.history.folder = tmp_path
    _run_compile(jobs, qtbot, str(tmp_path / "out"), FAILED)
    (entry,) = jobs.history.entries
    assert (entry.kind, entry.subject, entry.state) == ("compile", "ada/net.py:build", "failed")
    texts = [line.text for line in entry.log]
    assert texts == [
        "started",
        "export of forward: 1.50 s, 12 nodes",
        "/home/ada/net.py:4: two inputs share a name",
        "hello from the model",
        "lowering",
        f"failed after {entry.seconds:.1f} s: /home/ada/net.py:7: no such operator",
    ]
    assert [line.level for line in entry.log][2:] == [
        logging.WARNING,
        logging.INFO,
        logging.DEBUG,
        logging.ERROR,
    ]
    assert read_entries(tmp_path) == (entry,)
    jobs.shut_down()


def test_job_that_begins_when_another_ends_is_not_mixed_up(qtbot, tmp_path: Path) -> None:
    """Ctrl+R starts its run in the moment in which its compile has ended."""
    jobs = WindowJobs()
    follower = jobs["compile"]
    second = FakeRun(RunJob("/home/ada/model.pte"))
    follower.ended.connect(
        lambda progress: follower.follow(second) if progress.job is not second.job else None
    )
    recorder = JobHistory()
    recorder.watch(follower)  # after the slot that starts the next
    first = FakeRun(CompileJob(Source("/home/ada/net.py", "build")))
    follower.follow(first)
    first.outcome = Outcome(Ended.FINISHED)
    qtbot.waitUntil(lambda: len(recorder.entries) == 2, timeout=5000)
    assert {one.kind: one.state for one in recorder.entries} == {
        "compile": "finished",
        "run": "running",
    }
    jobs.shut_down()
    assert {one.state for one in recorder.entries} == {"finished", "cancelled"}


def test_jobs_of_another_window_appear_while_this_one_is_open(qtbot, tmp_path: Path) -> None:
    folder = tmp_path / "not there yet"
    here, there = JobHistory(), JobHistory()
    here.folder = there.folder = folder
    there._started = 50  # ids have the process in them, which is one here
    here.read()
    own = here.begin("run", "ada/own.pte", RunJob("/home/ada/own.pte"))
    here.note(own, [(logging.INFO, "a line that is not in its file yet", "")])
    key = there.begin("run", "ada/model.pte", RunJob("/home/ada/model.pte"))
    qtbot.waitUntil(lambda: here.find(key) is not None, timeout=10_000)
    assert here.find(key).state == "running"
    assert not here.may_cancel(key)
    there.end(key, FAILED)
    qtbot.waitUntil(lambda: here.find(key).state == "failed", timeout=10_000)
    assert here.find(key).log[-1].text.startswith("failed after")
    assert [line.text for line in here.log_of(own)][-1] == "a line that is not in its file yet"
    here.end(own, Outcome(Ended.FINISHED))
    (folder / f"{key}.json").unlink()
    qtbot.waitUntil(lambda: here.find(key) is None, timeout=10_000)
    assert [one.id for one in here.entries] == [own]
    for one in (here, there):
        one.close()


def test_log_of_a_running_job_outlives_a_crash_of_the_window(qtbot, tmp_path: Path) -> None:
    here = JobHistory()
    here.folder = tmp_path
    key = here.begin("run", "ada/model.pte", RunJob("/home/ada/model.pte"))
    here.note(key, [(logging.INFO, "loading", "stage")])

    def kept() -> list[str]:
        (found,) = read_entries(tmp_path)
        return [line.text for line in found.log]

    qtbot.waitUntil(lambda: kept() == ["started", "loading"])
    here.note(key, [(logging.INFO, "measuring", "stage")])
    qtbot.waitUntil(lambda: kept() == ["started", "loading", "measuring"])
    here.end(key, Outcome(Ended.FINISHED))
    assert kept()[-1].startswith("finished after")
    here.close()


def test_only_changed_files_of_jobs_are_read_again(tmp_path: Path) -> None:
    for number in range(3):
        history = JobHistory()
        history.folder = tmp_path
        history.end(history.begin("run", f"{number}", RunJob(f"/{number}.pte")), FAILED)
        os.rename(next(tmp_path.glob("2*-0001-*.json")), tmp_path / f"{number}-1-1.json")
    (tmp_path / "3-1-1.json").write_text("{")
    reader = EntryReader(tmp_path)
    first = reader.read()
    assert [one.subject for one in first] == ["2", "1", "0"]
    os.utime(tmp_path / "1-1-1.json", (1, 1))
    second = reader.read()
    assert second == first
    assert [one is other for one, other in zip(first, second, strict=True)] == [True, False, True]


def test_folder_that_cannot_be_written_costs_the_history_only(
    qtbot, tmp_path: Path, caplog
) -> None:
    jobs = WindowJobs()
    (tmp_path / "file").write_text("")
    jobs.history.folder = tmp_path / "file"
    _run_compile(jobs, qtbot, "", Outcome(Ended.FINISHED))
    assert [one.state for one in jobs.history.entries] == ["finished"]
    assert len([text for text in caplog.messages if "not kept" in text]) == 1
    jobs.shut_down()


def test_long_lines_of_a_log_are_wrapped(qtbot, theme) -> None:
    log = LogText(theme, "log")
    qtbot.addWidget(log)
    log.resize(400, 300)
    log.show()
    words, path = "partition of the graph " * 20, f"/{'folder' * 40}/model.pte"
    log.add([LogLine(logging.INFO, text) for text in (words, path)])
    assert log.text.horizontalScrollBar().maximum() == 0
    assert log.shown.split() == [*words.split(), path]  # copied as the lines that they are


def test_empty_log_says_what_appears_in_it_and_a_filtered_one_why_it_is_empty(qtbot, theme) -> None:
    log = LogText(theme, "log")
    qtbot.addWidget(log)
    assert log.text.placeholderText().startswith("No messages yet")
    log.add([LogLine(logging.INFO, "partition of the graph")])
    assert log.shown
    qtbot.keyClicks(log.box, "nowhere")
    qtbot.waitUntil(lambda: not log.shown)
    assert log.text.placeholderText().startswith("No message matches")
    log.show_lines([])
    assert log.text.placeholderText().startswith("No messages yet")


def test_log_is_searched_and_filtered_by_level_and_job(qtbot, theme, tmp_path: Path) -> None:
    jobs, store = WindowJobs(), LogStore()
    jobs.history.logged.connect(store.add_job)
    panel = LogPanel(theme, store)
    qtbot.addWidget(panel)
    panel.resize(900, 240)
    panel.show()
    _run_compile(jobs, qtbot, "", FAILED)
    run = FakeRun(RunJob("/home/ada/model.pte"))
    jobs["run"].follow(run)
    store.handler.emit(
        logging.LogRecord("app", logging.WARNING, "", 0, "of the window", None, None)
    )
    assert "two inputs share a name" in panel.shown
    assert "compile ada/net.py:build" in panel.shown
    box = panel._text.box
    qtbot.keyClicks(box, "share NAME")
    qtbot.waitUntil(lambda: panel.shown.count("\n") == 1, timeout=2000)
    panel.copy_all()
    assert (
        QGuiApplication.clipboard().text().endswith("/home/ada/net.py:4: two inputs share a name")
    )
    qtbot.keyClick(box, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: "hello" in panel.shown, timeout=2000)
    qtbot.keyClicks(box, "/(/")
    qtbot.waitUntil(lambda: "regular expression" in box.toolTip(), timeout=2000)
    box.clear()
    levels = panel._text.levels
    levels.setCurrentIndex(levels.findData(str(logging.WARNING)))
    levels.activated.emit(levels.currentIndex())
    assert [line.split()[1] for line in panel.shown.splitlines()] == ["WARNING", "ERROR", "WARNING"]
    assert panel.jobs.count() == 4  # everything, the window, and two jobs
    panel.jobs.setCurrentIndex(1)
    panel.jobs.activated.emit(1)
    assert "of the window" in panel.shown
    assert panel.shown.count("\n") == 1
    jobs.shut_down()


# ---- in the window
@pytest.fixture
def window(make_window: Callable[..., MainWindow], qtbot) -> MainWindow:
    made = make_window()
    made.resize(1280, 900)
    open_sample(made, qtbot)
    return made


def _panel(window: MainWindow, qtbot) -> JobsView:
    window.show_view("jobs")
    view = host_of(window, "jobs").view
    assert isinstance(view, JobsView)
    qtbot.waitUntil(view.isVisible, timeout=5000)
    return view


def _rows(view: JobsView) -> list[tuple[str, str]]:
    table = view.table.rows
    return [(table.text(row, 0), table.text(row, 1)) for row in range(table.length)]


@pytest.mark.slow
def test_panel_shows_state_error_and_log_and_does_what_it_offers(
    window, qtbot, tmp_path: Path, monkeypatch
) -> None:
    view = _panel(window, qtbot)
    assert view.table.rows.length == 0
    folder = _build(tmp_path / "build")
    _run_compile(window.jobs, qtbot, str(folder), FAILED)
    qtbot.waitUntil(lambda: _rows(view) == [("failed", "compile")], timeout=5000)
    size = 2048 + (folder / "compile.json").stat().st_size
    qtbot.waitUntil(lambda: view.table.rows.columns[5].values[0] == size, timeout=5000)
    assert "hello from the model" in view.log.shown
    assert view.error.text == "No such operator"
    asked: list[object] = []
    monkeypatch.setattr(window.commands, "open_source", lambda *place: asked.append(place))
    link = next(one for one in view.error.findChildren(QPushButton) if one.text() == "net.py:7")
    qtbot.mouseClick(link, Qt.MouseButton.LeftButton)
    assert asked == [(OpenSource("/home/ada/net.py", 7).file, 7)]
    qtbot.mouseClick(view.buttons[JobAction.COPY], Qt.MouseButton.LeftButton)
    words = shlex.split(QGuiApplication.clipboard().text())
    qtbot.mouseClick(view.buttons[JobAction.OPEN], Qt.MouseButton.LeftButton)
    assert window.strip.text == "This compile has no result: failed."
    assert len(window.store.state.sessions) == 1  # not the program of a former compile
    source = "/home/ada/net.py:build"
    assert words == ["etscope", "compile", source, "--force", "-o", str(folder)]
    _clean(window, view, qtbot, folder)


@pytest.mark.slow
@pytest.mark.parametrize("jobs_before", [0, 2])
def test_the_list_of_jobs_has_the_keyboard_once_it_has_any(
    window, qtbot, tmp_path: Path, jobs_before: int
) -> None:
    for number in range(jobs_before):
        _run_compile(window.jobs, qtbot, str(_build(tmp_path / str(number))), FAILED)
    view = _panel(window, qtbot)
    _run_compile(window.jobs, qtbot, str(_build(tmp_path / "build")), FAILED)
    qtbot.waitUntil(lambda: view.table.rows.length == jobs_before + 1, timeout=5000)
    qtbot.waitUntil(lambda: isinstance(window.focusWidget(), QTableView), timeout=5000)
    assert view.table.isAncestorOf(window.focusWidget())


def _clean(window: MainWindow, view: JobsView, qtbot, folder: Path) -> None:
    qtbot.mouseClick(view.buttons[JobAction.CLEAN], Qt.MouseButton.LeftButton)
    assert "2 files" in window.strip.text
    assert "other job" not in window.strip.text
    run = RunJob(str(folder / "model.pte"))
    window.jobs.history.end(window.jobs.history.begin("run", "m", run), FAILED)
    qtbot.mouseClick(view.buttons[JobAction.CLEAN], Qt.MouseButton.LeftButton)
    assert window.strip.text.endswith("1 other job began with them.")
    assert (folder / "model.pte").exists()
    delete = next(
        one for one in window.strip.findChildren(QPushButton) if one.text().startswith("Delete")
    )
    qtbot.mouseClick(delete, Qt.MouseButton.LeftButton)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    qtbot.waitUntil(lambda: view.table.rows.columns[5].values[0] is None, timeout=5000)


@pytest.mark.slow
def test_running_job_is_counted_and_cancelled(window, qtbot) -> None:
    view = _panel(window, qtbot)
    run = FakeRun(RunJob("/home/ada/model.pte"))
    window.jobs["run"].follow(run, target="/home/ada/out")
    qtbot.waitUntil(lambda: _rows(view) == [("running", "run")], timeout=5000)
    assert window.fold_bar.buttons["jobs"].text() == "Jobs · 1 running"
    assert not view.buttons[JobAction.AGAIN].isEnabled()
    qtbot.mouseClick(view.cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: _rows(view) == [("cancelled", "run")], timeout=5000)
    qtbot.waitUntil(lambda: not view.cancel.isVisible(), timeout=5000)
    assert window.fold_bar.buttons["jobs"].text() == "Jobs"


@pytest.mark.slow
def test_jobs_are_there_after_a_restart_and_a_damaged_file_is_left_out(
    make_window, qtbot, settings_file
) -> None:
    first = make_window()
    open_sample(first, qtbot)
    _run_compile(first.jobs, qtbot, "", FAILED)
    running = FakeRun(RunJob("/home/ada/model.pte"))
    first.jobs["run"].follow(running)
    first.close()
    assert running.closed
    kept = settings_file.path.with_name("jobs")
    (kept / "20200101-000000-0001-1.json").write_text('{"etscope_job"')
    second = make_window()
    open_sample(second, qtbot)
    view = _panel(second, qtbot)
    expected = [("cancelled", "run"), ("failed", "compile")]
    qtbot.waitUntil(lambda: _rows(view) == expected, timeout=5000)
    view.table.show_current(view.table.rows.key(1))
    view._show_chosen()
    assert "hello from the model" in view.log.shown


@pytest.mark.slow
def test_run_again_asks_for_a_folder_of_its_own(window, qtbot, tmp_path: Path, monkeypatch) -> None:
    view = _panel(window, qtbot)
    program = _build(tmp_path / "net") / "model.pte"
    run = FakeRun(RunJob(str(program), runs=3))
    window.jobs["run"].follow(run, target=str(tmp_path / "net/model_run"))
    run.outcome = Outcome(Ended.FAILED, "no kernel")
    qtbot.waitUntil(lambda: _rows(view) == [("failed", "run")], timeout=5000)
    started: list[tuple[object, str]] = []
    monkeypatch.setattr(
        window.jobs["run"],
        "start",
        lambda job, target, **_more: started.append((job, target)) or "",
    )
    qtbot.waitUntil(view.buttons[JobAction.AGAIN].isEnabled, timeout=5000)
    qtbot.mouseClick(view.buttons[JobAction.AGAIN], Qt.MouseButton.LeftButton)
    assert started == [(run.job, str(tmp_path / "net/model_run"))]
    assert window.store.state.view == "run"


@pytest.mark.slow
def test_compile_again_asks_before_it_runs_code(window, qtbot, monkeypatch) -> None:
    view = _panel(window, qtbot)
    _run_compile(window.jobs, qtbot, "/home/ada/out", FAILED)
    qtbot.waitUntil(lambda: _rows(view) == [("failed", "compile")], timeout=5000)
    started: list[object] = []
    monkeypatch.setattr(
        window.jobs["compile"], "start", lambda job, *_a, **_m: started.append(job) or ""
    )
    qtbot.mouseClick(view.buttons[JobAction.AGAIN], Qt.MouseButton.LeftButton)
    assert not started
    assert "/home/ada/net.py" in window.strip.text
    run_it = next(one for one in window.strip.findChildren(QPushButton) if one.text() == "Run it")
    qtbot.mouseClick(run_it, Qt.MouseButton.LeftButton)
    assert started == [CompileJob(Source("/home/ada/net.py", "build"))]


@pytest.mark.slow
def test_bug_report_is_written_where_the_user_chooses(
    window, qtbot, tmp_path: Path, monkeypatch
) -> None:
    view = _panel(window, qtbot)
    _run_compile(window.jobs, qtbot, "", FAILED)
    qtbot.waitUntil(lambda: view.table.rows.length == 1, timeout=5000)
    monkeypatch.setattr(
        window.commands.jobs._services.paths,
        "save_file",
        lambda *_arguments: str(tmp_path / "bug.txt"),
    )
    qtbot.waitUntil(view.buttons[JobAction.REPORT].isEnabled, timeout=5000)
    qtbot.mouseClick(view.buttons[JobAction.REPORT], Qt.MouseButton.LeftButton)
    text = (tmp_path / "bug.txt").read_text("utf-8")
    assert "no such operator" in text
    assert "hello from the model" in text


@pytest.mark.slow
def test_job_without_a_command_says_so(window, qtbot) -> None:
    view = _panel(window, qtbot)
    QGuiApplication.clipboard().setText("before")
    history = window.jobs.history
    history.end(history.begin("plan", "ada/m.pte", PlanJob("/home/ada/m.pte")), FAILED)
    qtbot.waitUntil(lambda: view.table.rows.length == 1, timeout=5000)
    qtbot.mouseClick(view.buttons[JobAction.COPY], Qt.MouseButton.LeftButton)
    assert window.strip.text.startswith("No command does the same")
    assert QGuiApplication.clipboard().text() == "before"


@pytest.mark.slow
def test_log_view_has_the_lines_of_jobs(window, qtbot) -> None:
    _run_compile(window.jobs, qtbot, "", FAILED)
    window.show_view("log")
    view = host_of(window, "log").view
    assert isinstance(view, LogView)
    QApplication.processEvents()
    assert "hello from the model" in view.shown


@pytest.mark.slow
def test_comparison_of_values_again_is_of_its_session(make_window, qtbot, monkeypatch) -> None:
    window = make_window()
    open_sample(window, qtbot, (LOOP[0], LOOP[1]))
    one = window.store.state.open_session
    files = tuple(file.path for file in one.session.files)
    view = _panel(window, qtbot)
    started: list[object] = []
    for job in (GapJob(files), GapJob((str(Path(files[0]).with_name("gone.pte")),))):
        run = FakeRun(job)
        window.jobs["gap"].follow(run)
        run.outcome = Outcome(Ended.CANCELLED, "cancelled")
        qtbot.waitUntil(lambda: not window.jobs["gap"].running, timeout=5000)
    qtbot.waitUntil(lambda: view.table.rows.length == 2, timeout=5000)
    monkeypatch.setattr(
        window.jobs["gap"], "start", lambda _job, about, **_more: started.append(about) or ""
    )
    view.table.show_current(view.table.rows.key(0))
    qtbot.waitUntil(view.buttons[JobAction.AGAIN].isEnabled, timeout=5000)
    qtbot.mouseClick(view.buttons[JobAction.AGAIN], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "gone.pte is not open" in window.strip.text, timeout=5000)
    assert not started
    view.table.show_current(view.table.rows.key(1))
    qtbot.mouseClick(view.buttons[JobAction.AGAIN], Qt.MouseButton.LeftButton)
    assert started == [one]
    assert window.store.state.view == "gap"


@pytest.mark.slow
def test_list_is_of_all_programs_or_of_the_open_ones(window, qtbot) -> None:
    view = _panel(window, qtbot)
    one = window.store.state.open_session
    program = next(file.path for file in one.session.files if file.kind == "pte")
    for path in ("/home/ada/other.pte", os.path.abspath(program)):
        run = FakeRun(RunJob(path))
        window.jobs["run"].follow(run)
        run.outcome = Outcome(Ended.FAILED, "no kernel")
        qtbot.waitUntil(lambda: not window.jobs["run"].running, timeout=5000)
    qtbot.waitUntil(lambda: view.table.rows.length == 2, timeout=5000)
    view.scope.setCurrentIndex(1)
    view.scope.activated.emit(1)
    assert [view.table.rows.text(row, 2) for row in range(view.table.rows.length)] == [
        str(Path(*Path(program).parts[-2:]))
    ]


def test_jobs_that_the_window_does_not_start_again_say_what_does() -> None:
    notices: list[Notice] = []
    window: Any = SimpleNamespace(notice=notices.append)
    services: Any = SimpleNamespace(jobs={})
    restart = JobRestart(services, window)
    entry: Any = SimpleNamespace(kind="llm_gap", id=1)
    restart.start(entry, object())
    assert [one.text for one in notices] == [
        "Jobs of this kind start from their own view or from a terminal: Copy as command."
    ]
