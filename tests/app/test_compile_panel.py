"""File > Compile…: what the dialog asks and says, the panel while it runs, what opens then."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QLabel, QLineEdit, QPushButton, QScrollArea

from devtools_app.dialogs.compile_dialog import CompileDialog
from devtools_app.shell.window import MainWindow
from devtools_app.state.compile_form import CompileForm, form_content, form_from
from devtools_app.state.requests import OpenSource
from devtools_app.state.settings import Settings, settings_content, settings_from
from devtools_app.views.compile import CompileView
from inspector.jobs.messages import Ended, Outcome, StageProgress
from inspector.recipes.compile_job import CompileJob, Quantization, Rules
from inspector.recipes.source import Source
from inspector.tables.compile_stages import stage_table
from tests.app.conftest import interactive
from tests.app.window_views import host_of

pytestmark = [pytest.mark.gui, pytest.mark.slow]

SOURCES = Path(__file__).parents[1] / "compiler" / "job_sources.py"
PATIENCE = 100_000  # ms; a worker loads torch first


class Paths:
    """Answers where a person would choose."""

    def __init__(self, files: tuple[str, ...] = (), folder: str = "") -> None:
        self.files, self.folder = files, folder

    def open_files(self, _parent, _title, _filters) -> tuple[str, ...]:
        return self.files

    def open_folder(self, _parent, _title) -> str:
        return self.folder


@pytest.fixture
def window(make_window) -> MainWindow:
    return make_window()


def form(function: str, folder: Path) -> CompileForm:
    return CompileForm(CompileJob(Source(str(SOURCES), function)), str(folder))


def panel(window: MainWindow) -> CompileView:
    found = host_of(window, "compile").view
    assert isinstance(found, CompileView)
    return found


def ask(window: MainWindow, wanted: CompileForm) -> CompileDialog:
    """Open the dialog as File > Compile… does, with these fields."""
    settings = window.controller.settings
    window.controller.put_settings(replace(settings, last_compile=form_content(wanted)))
    window.bound["compile"].trigger()
    dialog = window.commands.compiles.dialog
    assert dialog is not None
    assert dialog.isVisible()
    field(dialog, QLineEdit, "Output folder").setText(wanted.folder)
    return dialog


def field(dialog: CompileDialog, kind: type, name: str):
    return next(one for one in dialog.findChildren(kind) if one.accessibleName() == name)


def press(dialog: CompileDialog, name: str) -> None:
    button = next(b for b in dialog.findChildren(QPushButton) if b.accessibleName() == name)
    assert button.isEnabled()
    button.click()


def finish(window: MainWindow, qtbot) -> Outcome:
    qtbot.waitUntil(lambda: not window.jobs["compile"].running, timeout=PATIENCE)
    current = window.jobs["compile"].current
    assert current is not None
    assert current.outcome is not None
    return current.outcome


def test_compile_from_the_menu_opens_what_it_made(window, qtbot, tmp_path) -> None:
    folder = tmp_path / "out"
    dialog = ask(window, form("prints", folder))
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert not dialog.isVisible()
    assert host_of(window, "compile").isVisible()
    assert window.jobs["compile"].running
    outcome = finish(window, qtbot)
    assert outcome.ended is Ended.FINISHED, outcome
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    paths = {Path(path).name for path in window.store.state.open_session.paths}
    assert paths == {"model.pte", "model.etrecord"}
    view = panel(window)
    table = view.stages
    assert [str(value) for value in table.columns[0].values][:2] == ["load", "export"]
    assert set(table.columns[2].values) == {"done"}
    assert "printed by python" in view.printed
    assert form_from(window.controller.settings.last_compile).job.source.function == "prints"
    again = ask(window, form("good", folder))
    field(again, QCheckBox, "Replace files in the folder").setChecked(True)
    press(again, "Compile")
    assert finish(window, qtbot).ended is Ended.FINISHED
    qtbot.waitUntil(lambda: not window.controller.opener.busy, timeout=20_000)
    assert len(window.store.state.sessions) == 1  # read again, not opened twice


def test_compile_never_takes_over_what_the_user_went_to(window, qtbot, tmp_path) -> None:
    ended = []
    window.jobs["compile"].finished.connect(ended.append)
    for number in range(2):  # the second result is of a session that is open
        dialog = ask(window, form("good", tmp_path / "out"))
        field(dialog, QCheckBox, "Replace files in the folder").setChecked(True)
        press(dialog, "Compile")
        window.show_view("jobs")
        window.store.update(view="overview")
        assert finish(window, qtbot).ended is Ended.FINISHED
        qtbot.waitUntil(lambda number=number: len(ended) == number + 1)
        qtbot.waitUntil(lambda: not window.controller.opener.busy, timeout=20_000)
        assert window.store.state.view == "overview"
        assert len(window.store.state.sessions) == number
        shown = [one.text() for one in window.findChildren(QLabel)]
        assert any("out is compiled." in one for one in shown)
        button = next(
            one
            for one in window.findChildren(QPushButton)
            if one.text() == "Open" and one.isVisible()
        )
        button.click()
        qtbot.waitUntil(lambda: len(window.store.state.sessions) == 1, timeout=20_000)


def test_error_leads_to_the_line_of_the_user(window, qtbot, tmp_path, monkeypatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(
        window.commands, "open_source", lambda file, line: asked.append(OpenSource(file, line))
    )
    press(ask(window, form("raises", tmp_path / "out")), "Compile")
    outcome = finish(window, qtbot)
    assert outcome.ended is Ended.FAILED
    view = panel(window)
    assert view.error == "ValueError: deliberate: no weights"
    button = next(b for b in view.findChildren(QPushButton) if "job_sources.py:" in b.text())
    button.click()
    assert asked == [OpenSource(str(SOURCES), outcome.line)]
    next(b for b in view.findChildren(QPushButton) if b.text() == "Copy" and b.isVisible()).click()
    assert "Traceback" in QGuiApplication.clipboard().text()
    assert window.store.state.session is None
    assert list(tmp_path.glob("out*")) == []


def test_cancel_ends_an_endless_function_while_the_window_goes_on(window, qtbot, tmp_path) -> None:
    press(ask(window, form("stubborn", tmp_path / "out")), "Compile")
    view = panel(window)
    qtbot.waitUntil(lambda: "begun" in view.printed, timeout=PATIENCE)
    assert window.commands.compiles.dialog is not None
    window.bound["compile"].trigger()  # shows the panel, asks nothing
    assert not window.commands.compiles.dialog.isVisible()
    cancel = next(
        b for b in view.findChildren(QPushButton) if b.accessibleName() == "Cancel the compile"
    )
    qtbot.keyClick(cancel, Qt.Key.Key_Space)
    assert window.jobs["compile"].running, "the window did not wait for the end"
    assert finish(window, qtbot).ended is Ended.CANCELLED
    assert view.error == "Cancelled in stage load"
    assert list(tmp_path.glob("*out*")) == []


def test_crash_is_shown_and_the_window_goes_on(window, qtbot, tmp_path) -> None:
    press(ask(window, form("crashes", tmp_path / "out")), "Compile")
    outcome = finish(window, qtbot)
    assert outcome.ended is Ended.CRASHED
    assert panel(window).error == "The process crashed (SIGSEGV) in stage load"
    assert set(panel(window).stages.columns[2].values) == {"crashed"}


def test_window_that_closes_ends_the_worker(window, qtbot, tmp_path) -> None:
    press(ask(window, form("never", tmp_path / "out")), "Compile")
    qtbot.waitUntil(lambda: bool(window.jobs["compile"].lines), timeout=PATIENCE)
    window.close()
    assert not window.jobs["compile"].running
    assert list(tmp_path.glob("*out*")) == []


# -- the dialog alone ------------------------------------------------------------------------


@pytest.fixture
def dialog(qtbot, theme, tmp_path):
    parent = QLabel()
    qtbot.addWidget(parent)

    def make(given: CompileForm, paths: Paths | None = None) -> CompileDialog:
        found = CompileDialog(theme, given, paths or Paths(), parent)
        found.show()
        return found

    return make


def test_dialog_says_which_code_it_runs(dialog, tmp_path) -> None:
    shown = dialog(form("good", tmp_path / "out"))
    assert shown.runs == f"This runs the code in {SOURCES}, with your rights."
    record = dialog(CompileForm(CompileJob(Source(str(tmp_path / "model.etrecord")))))
    assert record.runs == ""
    partitioners = ("demo-all", "mine.py:Mine:a=1")
    own = dialog(CompileForm(CompileJob(Source("model.etrecord"), partitioners=partitioners)))
    assert own.runs == "This runs the code in mine.py, with your rights."


def test_dialog_offers_the_functions_of_the_file(dialog, tmp_path) -> None:
    paths = Paths((str(SOURCES),), str(tmp_path))
    shown = dialog(CompileForm(), paths)
    press(shown, "Choose: File")
    found = shown.form()
    assert found.job.source == Source(str(SOURCES), "good")
    assert found.folder == str(SOURCES.with_name("job_sources_build"))
    press(shown, "Choose the folder")
    assert shown.form().folder == str(tmp_path)


def test_function_may_be_named_behind_its_file(dialog, qtbot) -> None:
    shown = dialog(CompileForm())
    file = field(shown, QLineEdit, "File")
    qtbot.keyClicks(file, f"{SOURCES}:products")
    qtbot.keyClick(file, Qt.Key.Key_Return)
    assert shown.form().job.source == Source(str(SOURCES), "products")
    assert file.text() == str(SOURCES)
    assert shown.form().problem() == ""


def test_home_folder_is_understood(dialog, qtbot, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    shutil.copy(SOURCES, tmp_path / "net.py")
    shown = dialog(CompileForm())
    qtbot.keyClicks(field(shown, QLineEdit, "File"), "~/net.py")
    assert shown.form().request().source == Source(str(tmp_path / "net.py"), "good")
    folder = field(shown, QLineEdit, "Output folder")
    assert folder.text() == str(tmp_path / "net_build")
    folder.setText("~/other")
    assert shown.form().folder == str(tmp_path / "other")


def test_dialog_hands_back_what_it_was_given(dialog, tmp_path) -> None:
    quantized = Quantization(
        "static",
        __file__,
        per_tensor=True,
        modules=("blocks.0=none",),
        operators=("aten.linear=dynamic",),
    )
    job = CompileJob(
        Source(str(SOURCES), "products"),
        "/usr/bin/python3",
        "openvino",
        ("forward",),
        ("demo-all", "demo-add-mul"),
        Rules(deny_ops=("aten.add.*",), deny_nodes=("aten_mm_default",), min_nodes=3),
        "greedy",
        True,
        quantized,
    )
    given = CompileForm(job, str(tmp_path), True)
    shown = dialog(given)
    assert shown.form() == given
    assert given.request() == job
    kept = settings_from(settings_content(Settings(last_compile=form_content(given))))
    assert form_from(kept.last_compile) == given


def test_form_of_an_earlier_version_still_opens(tmp_path) -> None:
    old = {
        "source": str(SOURCES),
        "function": "products",
        "methods": "forward",
        "partitioners": "demo-all\ndemo-add-mul",
        "deny_ops": "aten.add.*",
        "deny_nodes": "aten_mm_default",
        "min_nodes": 3,
        "planner": "greedy",
        "external_constants": True,
        "quantize": "static",
        "calibration": __file__,
        "overrides": "blocks.0=none aten.linear=dynamic",
        "per_tensor": True,
        "folder": str(tmp_path),
        "replace": True,
    }
    found = form_from(old)
    assert (found.folder, found.replace) == (str(tmp_path), True)
    job = found.request()
    assert job.partitioners == ("demo-all", "demo-add-mul")
    assert job.rules == Rules(
        deny_ops=("aten.add.*",), deny_nodes=("aten_mm_default",), min_nodes=3
    )
    assert (job.memory_planner, job.methods, job.external_constants) == (
        "greedy",
        ("forward",),
        True,
    )
    assert job.quantising == Quantization(
        "static",
        __file__,
        per_tensor=True,
        modules=("blocks.0=none",),
        operators=("aten.linear=dynamic",),
    )
    assert form_from({"min_nodes": -3, "source": 7}) == CompileForm()


def test_form_that_is_damaged_is_logged_with_the_path_of_its_bad_field(caplog) -> None:
    caplog.set_level("INFO")
    assert form_from({"job": {"source": {"path": "a.py"}, "rules": {"deny_ops": [3]}}}) == (
        CompileForm()
    )
    assert "job.rules.deny_ops[0]: expected a string, found 3" in caplog.text


def test_dialog_refuses_what_cannot_be_quantized_so(dialog, tmp_path) -> None:
    given = form("good", tmp_path / "out")

    def quantized(**fields) -> CompileForm:
        return replace(given, job=replace(given.job, quantising=Quantization(**fields)))

    missing = quantized(mode="static", calibration=str(tmp_path / "none.pt"))
    assert missing.problem() == f"{tmp_path / 'none.pt'}: file not found."
    wrong = quantized(mode="static", modules=("blocks.0",))
    assert "'blocks.0': expected NAME=MODE, found no '='" in wrong.problem()
    assert quantized(calibration=str(tmp_path / "none.pt")).problem() == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"job": CompileJob(Source(""))}, "Choose a Python file"),
        ({"job": CompileJob(Source("/not/there.py"))}, "/not/there.py: file not found."),
        ({"folder": ""}, "Choose a folder"),
        ({"folder": str(SOURCES.parent)}, "The folder is not empty"),
        ({"folder": str(SOURCES)}, "is a file, not a folder."),
    ],
)
def test_dialog_says_what_is_missing_and_does_not_start(changes, words, dialog, tmp_path) -> None:
    given = replace(form("good", tmp_path / "out"), **changes)
    assert words in given.problem()
    shown = dialog(given)
    button = next(b for b in shown.findChildren(QPushButton) if b.accessibleName() == "Compile")
    assert not button.isEnabled()
    assert words in button.toolTip()
    assert shown.problem == ""  # nothing has been done yet


def test_form_needs_the_name_of_a_function(tmp_path) -> None:
    assert "Name the function" in form("a b", tmp_path / "out").problem()


def test_dialog_on_a_low_screen_keeps_its_buttons_in_sight(dialog, tmp_path, qtbot) -> None:
    shown = dialog(form("good", tmp_path / "out"))
    shown.show()
    shown.resize(640, 420)
    button = next(b for b in shown.findChildren(QPushButton) if b.text() == "Compile")
    assert shown.rect().contains(button.geometry().translated(button.parentWidget().pos()))
    replace_files = next(b for b in shown.findChildren(QCheckBox) if "Replace" in b.text())
    assert shown.rect().contains(replace_files.geometry())
    area = shown.findChild(QScrollArea)
    last = list(area.widgets.values())[-1]
    last.setFocus(Qt.FocusReason.TabFocusReason)
    area.ensureWidgetVisible(last)
    place = last.mapTo(area.viewport(), last.rect().center())
    assert area.viewport().rect().contains(place)


def test_dialog_every_field_has_a_name_and_is_reached_by_tab(dialog, tmp_path, qtbot) -> None:
    shown = dialog(form("good", tmp_path / "out"))
    fields = interactive(shown)
    named = [
        f
        for f in fields
        if f.accessibleName()
        or (f.parentWidget() is not None and f.parentWidget().accessibleName())
    ]
    assert named == fields
    assert len(fields) > 12


def test_stage_table_says_what_runs_and_what_ended() -> None:
    stages = (StageProgress("load", "", 0.5), StageProgress("export", "forward"))
    running = stage_table(stages, 1.5, None)
    assert list(running.columns[2].values) == ["done", "running"]
    assert list(running.columns[3].values) == [0.5e9, 1.5e9]
    ended = stage_table(stages, 1.5, Outcome(Ended.CRASHED))
    assert list(ended.columns[2].values) == ["done", "crashed"]
    done = stage_table((StageProgress("edge", "forward", 0.1, 1234),), 0.0, Outcome(Ended.FINISHED))
    assert list(done.columns[4].values) == ["1,234"]
