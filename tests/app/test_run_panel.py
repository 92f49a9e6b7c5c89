"""The Run panel: what it offers, how a job goes, what opens then, what is survived."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton, QSpinBox, QTreeWidget

from devtools_app.dialogs.bundle_cases import Case, CaseList
from devtools_app.dialogs.bundle_dialog import BundleDialog
from devtools_app.shell.window import MainWindow
from devtools_app.state.run_form import RunForm, default_folder, run_form_from, runnable
from devtools_app.state.settings import Settings, settings_content, settings_from
from devtools_app.views.run import RunView
from inspector.files.load import load_session
from inspector.jobs import run as jobs
from inspector.jobs.messages import STOP, Ended, Expected, Outcome, StageProgress
from inspector.tables.runs import cases_table
from inspector.units import format_bytes
from tests.app.conftest import interactive
from tests.app.window_views import host_of
from tests.inspector.jobs_here import Here, Scripted

pytestmark = [pytest.mark.gui, pytest.mark.slow]

DATA = Path(__file__).parents[1] / "data"
SOURCES = Path(__file__).parents[1] / "compiler" / "job_sources.py"
PATIENCE = 100_000  # ms; a worker loads torch first


@pytest.fixture
def window(make_window) -> MainWindow:
    return make_window()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program with its record, and a bundled one, in a folder of their own."""
    found = tmp_path / "files"
    found.mkdir()
    for name in ("model.pte", "model.etrecord"):
        shutil.copy(DATA / "corpus/v1.5.1/mm_portable" / name, found)
    shutil.copy(DATA / "extra/bundled_cases/model.bpte", found / "cases.bpte")
    return found


@pytest.fixture
def here(monkeypatch) -> None:
    """Let jobs be done in this process, where torch is loaded already."""
    monkeypatch.setattr(jobs, "Worker", Here)


def panel(window: MainWindow, qtbot, *paths: Path) -> RunView:
    """Open files, then bring up the panel as Ctrl+Shift+R does."""
    window.controller.open(tuple(map(str, paths)))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.bound["run"].trigger()
    found = host_of(window, "run").view
    assert isinstance(found, RunView)
    assert found.isVisible()
    return found


def button(view: RunView, name: str) -> QPushButton:
    return next(b for b in view.findChildren(QPushButton) if b.accessibleName() == name)


def field(view: RunView, kind: type, name: str):
    return next(one for one in view.findChildren(kind) if one.accessibleName() == name)


def choose(view: RunView, name: str, key: str) -> None:
    box = field(view, QComboBox, name)
    place = box.findData(key)
    assert place >= 0
    box.setCurrentIndex(place)


def finish(window: MainWindow, qtbot) -> Outcome:
    qtbot.waitUntil(lambda: not window.jobs["run"].running, timeout=PATIENCE)
    current = window.jobs["run"].current
    assert current is not None
    assert current.outcome is not None
    qtbot.waitUntil(lambda: not window.controller.opener.busy, timeout=20_000)
    return current.outcome


def test_run_opens_its_trace_beside_the_program_and_again_in_the_same_session(
    window, qtbot, folder
) -> None:
    view = panel(window, qtbot, folder / "model.pte", folder / "model.etrecord")
    assert view.problem == ""
    assert button(view, "Run the program").hasFocus()
    choose(view, "Values to record", "intermediate")
    said = next(one.text() for one in view.findChildren(QLabel) if "of values" in one.text())
    field(view, QSpinBox, "Runs").setValue(3)
    qtbot.keyClick(button(view, "Run the program"), Qt.Key.Key_Space)
    assert window.jobs["run"].running
    assert button(view, "Cancel the run").isVisible()
    outcome = finish(window, qtbot)
    assert outcome.ended is Ended.FINISHED, outcome
    names = [Path(path).name for path in window.store.state.open_session.paths]
    assert names == ["model.pte", "model.etrecord", "run.etdp", "values.etdp", "values.debug"]
    assert len(window.store.state.sessions) == 1
    session = window.store.state.session
    assert session is not None
    assert [run.name for run in session.dumps[0].run_data][1:] == ["Execute"] * 3
    assert session.debug_buffer is not None
    # the buffer ends with 64 zeros
    written = (folder / "model_run/values.debug").stat().st_size - 64
    assert said == f"one run will write {format_bytes(-(-written // 64) * 64)} of values"
    assert "mean of the steady runs" in view.table.columns[0].values
    assert "output 0  float32 [2, 2]" in view.facts
    assert window.controller.settings.last_run == RunForm(runs=3)
    assert field(view, QComboBox, "Values to record").currentData() == "none"  # not again
    button(view, "Run the program").click()
    assert finish(window, qtbot).ended is Ended.FINISHED
    qtbot.waitUntil(lambda: len(window.store.state.open_session.paths) == 3, timeout=20_000)
    assert len(window.store.state.sessions) == 1
    assert window.store.state.open_session.paths[-1] == str(folder / "model_run_2/run.etdp")
    assert (folder / "model_run/values.debug").is_file()  # the earlier run is as it was


def test_lines_that_the_runtime_logs_reach_the_log_view(window, qtbot, folder, here) -> None:
    view = panel(window, qtbot, folder / "model.pte")
    button(view, "Run the program").click()
    assert finish(window, qtbot).ended is Ended.FINISHED
    history = window.jobs.history
    (key,) = [one.id for one in history.entries if one.kind == "run"]
    logged = [(one.level, one.text) for one in history.log_of(key) if one.origin == "runtime"]
    assert logged == [(logging.INFO, "method 'forward' is loaded")]
    assert not any("is loaded" in text for text in window.jobs["run"].lines)


def test_run_of_a_session_with_another_trace_opens_beside_it(window, qtbot, folder, here) -> None:
    shutil.copy(DATA / "corpus/v1.5.1/mm_portable/run.etdp", folder / "device.etdp")
    view = panel(window, qtbot, folder / "model.pte", folder / "device.etdp")
    button(view, "Run the program").click()
    assert finish(window, qtbot).ended is Ended.FINISHED
    qtbot.waitUntil(lambda: len(window.store.state.sessions) == 2, timeout=20_000)
    one, two = (tuple(map(Path, each.paths)) for each in window.store.state.sessions)
    assert [path.name for path in one] == ["model.pte", "device.etdp"]
    assert [path.name for path in two] == ["model.pte", "run.etdp"]


@pytest.mark.parametrize("trace", [True, False])
def test_a_run_that_ends_leaves_a_user_elsewhere_where_he_is(
    window, qtbot, folder, here, trace: bool
) -> None:
    """Its new session is offered, not shown; one that is open already gets the trace behind."""
    other = DATA / "corpus/v1.5.1/mm_portable"
    shutil.copy(other / "run.etdp", folder / "device.etdp")
    files = [folder / "model.pte", *([folder / "device.etdp"] if trace else [])]
    view = panel(window, qtbot, *files)
    window.controller.open((str(other / "model.etrecord"),))
    qtbot.waitUntil(lambda: len(window.store.state.sessions) == 2, timeout=20_000)
    first, second = (one.id for one in window.store.state.sessions)
    window.store.update(current=first, view="run")
    button(view, "Run the program").click()
    window.store.update(current=second, view="overview")
    assert finish(window, qtbot).ended is Ended.FINISHED
    state = window.store.state
    assert (state.current, state.view, len(state.sessions)) == (second, "overview", 2)
    if trace:
        assert "has run" in window.strip.text
        offer = next(b for b in window.strip.findChildren(QPushButton) if b.text() == "Open")
        offer.click()
        qtbot.waitUntil(lambda: len(window.store.state.sessions) == 3, timeout=20_000)
    else:
        assert Path(state.sessions[0].paths[-1]).name == "run.etdp"


def test_worker_killed_is_one_sentence_and_the_window_runs_again(window, qtbot, folder) -> None:
    # minutes of runs, of which a moment is seen
    shutil.copy(DATA / "corpus/v1.5.1/tinygpt_portable/model.pte", folder)
    view = panel(window, qtbot, folder / "model.pte")
    runs = field(view, QSpinBox, "Runs")
    runs.setValue(runs.maximum())
    button(view, "Run the program").click()
    qtbot.waitUntil(lambda: window.jobs["run"].current.counted is not None, timeout=PATIENCE)
    worker = window.jobs["run"]._run._worker
    os.kill(worker.pid, signal.SIGKILL)
    outcome = finish(window, qtbot)
    assert outcome.ended is Ended.CRASHED
    assert view.error.startswith("The process was killed (SIGKILL)")
    assert sorted(path.name for path in folder.iterdir()) == [
        "cases.bpte",
        "model.etrecord",
        "model.pte",
    ]
    assert len(window.store.state.sessions) == 1
    button(view, "Run the program").click()
    qtbot.waitUntil(lambda: window.jobs["run"].current.counted is not None, timeout=PATIENCE)
    qtbot.keyClick(button(view, "Cancel the run"), Qt.Key.Key_Space)
    assert finish(window, qtbot).ended is Ended.CANCELLED
    assert view.error == "Cancelled in stage measure"
    assert not (folder / "model_run").exists()
    assert button(view, "Run the program").isEnabled()


def test_slow_run_tells_its_cost_and_stops_with_the_runs_there_are(
    window, qtbot, folder, monkeypatch
) -> None:
    worker = Scripted()
    monkeypatch.setattr(jobs, "Worker", lambda _kind: worker)
    view = panel(window, qtbot, folder / "model.pte")
    button(view, "Run the program").click()
    stop = button(view, "Stop with the runs there are; their files are written and opened")
    assert not stop.isVisible()
    worker.said = [StageProgress("run"), Expected(6_200.0, 3, 3, 43.4)]
    qtbot.waitUntil(lambda: "about 43 s" in view.facts, timeout=2_000)
    assert view.facts.startswith("a run takes 6.2 s: 3 timed and 3 bare runs take about 43 s.")
    assert stop.isVisible()
    qtbot.keyClick(stop, Qt.Key.Key_Space)
    assert worker.request == STOP
    assert not stop.isEnabled()
    assert any(one.text().startswith("Stopping ") for one in view.findChildren(QLabel))
    button(view, "Cancel the run").click()
    assert finish(window, qtbot).ended is Ended.CANCELLED
    assert not stop.isVisible()


def test_cases_of_a_bundled_program_are_a_table(window, qtbot, folder, here) -> None:
    view = panel(window, qtbot, folder / "cases.bpte")
    assert field(view, QComboBox, "Inputs").currentData() == "case"
    button(view, "Run all cases of the bundle and compare").click()
    assert finish(window, qtbot).ended is Ended.FINISHED
    assert list(view.table.columns[2].values) == ["passed", "passed"]


def test_bundle_of_a_module_opens_when_it_is_made(window, qtbot, folder, here) -> None:
    view = panel(window, qtbot, folder / "model.pte")
    button(view, "Create a bundled program from this program").click()
    dialog = window.commands.runs.dialog
    assert dialog is not None
    several = [[torch.full((2, 2), float(at))] * 3 for at in range(3)]
    torch.save(several, folder / "in.pt")
    assert dialog.problem.startswith("Add a case")
    box = next(b for b in dialog.findChildren(QComboBox) if b.accessibleName() == "Inputs")
    add = next(b for b in dialog.findChildren(QPushButton) if b.text() == "Add")
    dialog._dialogs = Chooses(str(folder / "in.pt"))
    for kind in ("ones", "random", "file"):
        box.setCurrentIndex(box.findData(kind))
        add.click()
    assert dialog.job().inputs == ("ones", "random", str(folder / "in.pt"))
    assert dialog.problem == ""
    next(b for b in dialog.findChildren(QPushButton) if b.text() == "Make").click()
    assert not dialog.isVisible()
    assert finish(window, qtbot).ended is Ended.FINISHED
    qtbot.waitUntil(lambda: len(window.store.state.sessions) == 2, timeout=20_000)
    assert Path(window.store.state.open_session.paths[0]).name == "model.bpte"
    session = window.store.state.session
    assert session is not None
    assert session.bundled is not None
    assert [len(one.test_cases) for one in session.bundled.method_test_suites] == [5]


def test_cases_get_expected_outputs_and_can_be_taken_out(theme, qtbot, folder) -> None:
    for name in ("a.pt", "b.pt"):
        torch.save([torch.ones(2, 2)], folder / name)
    files = (str(folder / "a.pt"), str(folder / "b.pt"))
    found = CaseList(lambda _purpose: files)
    qtbot.addWidget(found)
    found.show_cases([Case("ones"), Case("zeros"), Case("random")])
    rows = found.findChild(QTreeWidget)
    named = {b.text(): b for b in found.findChildren(QPushButton)}
    assert not named["Remove"].isEnabled()
    for at in (0, 2):
        rows.topLevelItem(at).setSelected(True)
    named["Expected…"].click()
    assert found.cases == (Case("ones", files[0]), Case("zeros"), Case("random", files[1]))
    assert "all cases or none" in found.problem(has_module=False)
    assert found.problem(has_module=True) == ""
    rows.topLevelItem(1).setSelected(True)
    named["Remove"].click()
    assert [case.inputs for case in found.cases] == ["ones", "random"]
    assert found.problem(has_module=False) == ""
    (folder / "a.pt").unlink()
    assert found.problem(has_module=True) == f"{files[0]} not found."


def test_window_that_closes_ends_the_run(window, qtbot, folder) -> None:
    view = panel(window, qtbot, folder / "model.pte")
    button(view, "Run the program").click()
    worker = window.jobs["run"]._run._worker
    window.close()
    assert not window.jobs["run"].running
    assert worker.outcome is not None
    assert [path.name for path in folder.glob(".*")] == []


# -- without a worker ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"inputs": "file"}, "Choose a file of inputs."),
        ({"inputs": "file", "file": "/not/there.pt"}, "/not/there.pt not found."),
        ({"inputs": "case"}, "The method has no such bundled case."),
        ({"folder": str(SOURCES)}, "is a file, not a folder."),
        ({"folder": str(SOURCES.parent)}, "The folder contains files"),
    ],
)
def test_form_says_what_is_missing(changes, words, folder) -> None:
    what = runnable("s", load_session([str(folder / "model.pte")]))
    assert what is not None
    problem = replace(RunForm(), **changes).problem(what)
    assert words in problem
    assert bool(words) == bool(problem)
    assert RunForm().problem(None) == "Open a program to run it."


def test_form_becomes_the_job_of_the_session(folder) -> None:
    session = load_session([str(folder / "model.pte"), str(folder / "model.etrecord")])
    what = runnable("s", session)
    assert what is not None
    job = RunForm(method="gone", inputs="zeros", runs=4, threads=2).job(what)
    assert (job.method, job.inputs, job.case, job.runs, job.threads) == (
        "forward",
        "zeros",
        None,
        4,
        2,
    )
    assert (job.program, job.record) == (
        str(folder / "model.pte"),
        str(folder / "model.etrecord"),
    )
    bundled = runnable("s", load_session([str(folder / "cases.bpte")]))
    assert bundled is not None
    assert (bundled.cases_of("forward"), bundled.cases_of("backward")) == (2, 0)
    assert RunForm(inputs="case", case=1).job(bundled).case == 1
    record = load_session([str(folder / "model.etrecord")])
    assert runnable("s", record) is None


def test_engine_is_offered_for_delegates_that_have_several(window, qtbot, folder) -> None:
    shutil.copy(DATA / "corpus/special/xnnpack_int8_static/model.pte", folder / "q8.pte")
    view = panel(window, qtbot, folder / "q8.pte")
    engine, seed = (
        field(view, QComboBox, "Engine of delegates"),
        field(view, QSpinBox, "Seed of random inputs"),
    )
    assert engine.isVisible()
    assert seed.isVisible()
    choose(view, "Engine of delegates", "torch")
    seed.setValue(7)
    what = view._what
    assert what is not None
    job = window.jobs.run_form.job(what)
    assert (job.engine, job.seed) == ("torch", 7)
    choose(view, "Runtime", "executorch")
    assert not engine.isVisible()
    assert window.jobs.run_form.job(what).engine == "auto"
    choose(view, "Inputs", "ones")
    assert not seed.isVisible()
    window.controller.open((str(folder / "model.pte"),))
    choose(view, "Runtime", "")
    qtbot.waitUntil(lambda: len(window.store.state.sessions) == 2, timeout=20_000)
    window.show_view("run")
    qtbot.waitUntil(lambda: view._what is not what, timeout=20_000)
    assert not engine.isVisible()


def test_threads_are_a_number_auto_or_a_sweep(window, qtbot, folder) -> None:
    view = panel(window, qtbot, folder / "model.pte")
    threads = field(view, QSpinBox, "Threads")
    for text, value in (("sweep", -1), ("auto", 0), ("4", 4)):
        threads.lineEdit().clear()
        qtbot.keyClicks(threads, text)
        assert (threads.value(), threads.text()) == (value, text)
    form, what = RunForm(threads=-1), view._what
    job = form.job(what)
    assert (job.threads, job.sweep_threads, form.fixed_threads) == (1, True, 1)
    stock = replace(form, toolchain="executorch")
    assert (stock.problem(what), stock.job(what).sweep_threads) == ("", True)
    assert run_form_from({"threads": -1}).threads >= 0  # a sweep is of one run


def test_form_survives_settings_and_odd_content() -> None:
    form = RunForm(
        inputs="ones",
        file="a.pt",
        runs=7,
        warmup=1,
        threads=3,
        seed=12,
        engine="torch",
    )
    kept = settings_from(settings_content(Settings(last_run=form)))
    assert kept.last_run == form
    assert (
        run_form_from({"runs": -3, "inputs": 7, "level": "all", "threads": 1e9, "seed": -1})
        == RunForm()
    )


def test_folder_is_beside_the_program_or_where_one_may_write(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert default_folder(str(tmp_path / "net.pte")) == str(tmp_path / "net_run")
    packaged = Path(__file__).parents[2] / "devtools_app/sample_data/keyword_net/model.pte"
    found = default_folder(str(packaged))
    assert found == str(tmp_path / "cache/etscope/keyword_net_model_run")
    for number in ("", "_2"):
        (tmp_path / f"net_run{number}").mkdir()
        (tmp_path / f"net_run{number}/run.json").touch()
    (tmp_path / "net_run_3").touch()
    assert default_folder(str(tmp_path / "net.pte")) == str(tmp_path / "net_run_4")


def test_panel_without_a_program_teaches(window, qtbot) -> None:
    view = panel(window, qtbot, DATA / "corpus/v1.5.1/mm_portable/model.etrecord")
    shown = [one.text() for one in view.findChildren(QLabel) if one.isVisible()]
    assert "Nothing to run" in shown


def test_cases_that_cannot_be_run_say_why() -> None:
    failed = {"mismatched": 2, "elements": 6, "max_abs_error": 0.5}
    cases = [
        {
            "method": "forward",
            "case": 0,
            "verdict": "failed",
            "time_ms": 1.5,
            "error": "",
            "outputs": [failed, failed],
        },
        {
            "method": "forward",
            "case": 1,
            "verdict": "error",
            "time_ms": None,
            "error": "no kernel",
            "outputs": [],
        },
    ]
    table = cases_table({"cases": cases})
    assert list(table.columns[3].values) == ["4 of 12", "—"]
    assert list(table.columns[6].values) == ["", "no kernel"]


class Chooses:
    """Answers every question for files with the same ones."""

    def __init__(self, *paths: str) -> None:
        self._paths = paths

    def open_files(self, _parent, _title, _filters) -> tuple[str, ...]:
        return self._paths

    def open_folder(self, _parent, _title) -> str:
        return ""


class _Nobody:
    def open_files(self, _parent, _title, _filters) -> tuple[str, ...]:
        return (str(SOURCES),)

    def open_folder(self, _parent, _title) -> str:
        return ""


def test_bundle_dialog_says_what_it_runs_and_what_is_missing(theme, qtbot, folder) -> None:
    parent = QLabel()
    qtbot.addWidget(parent)
    dialog = BundleDialog(theme, str(folder / "cases.bpte"), _Nobody(), parent)
    dialog.show()
    assert dialog.runs == ""
    choose_module = next(
        b for b in dialog.findChildren(QPushButton) if b.accessibleName() == "Choose the module"
    )
    choose_module.click()
    assert dialog.runs == f"This runs the code in {SOURCES}, with your rights."
    job = dialog.job()
    assert (job.module, job.inputs, job.expected) == (f"{SOURCES}:good", (), ())
    assert dialog.problem == ""
    for path, words in (
        ("", "Choose a file for the bundled program."),
        (str(folder / "cases.bpte"), "cannot be replaced by its bundle"),
        (str(folder / "model.pte"), "The file exists"),
    ):
        dialog.set_target(path)
        assert words in dialog.problem
    dialog.set_module("/not/there.py")
    assert dialog.problem == "/not/there.py not found."
    fields = interactive(dialog)
    assert len(fields) > 8
    for one in fields:
        above = one.parentWidget()
        assert one.accessibleName() or (above is not None and above.accessibleName())
