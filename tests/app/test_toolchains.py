"""The choice of the toolchain in the compile dialog and the Run panel, and how results name it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox, QLineEdit

from devtools_app.dialogs.compile_dialog import CompileDialog
from devtools_app.shell.window import MainWindow
from devtools_app.state.compile_form import CompileForm, form_content, form_from
from devtools_app.state.run_form import RunForm, run_form_from, runnable
from devtools_app.state.settings import Settings, settings_content, settings_from
from devtools_app.views.run import RunView
from inspector.files.load import load_session
from inspector.jobs.messages import Ended
from inspector.recipes.compile_job import EXECUTORCH, CompileJob
from inspector.recipes.source import Source
from inspector.tables.runs import outputs_text
from tests.app.window_views import host_of

pytestmark = [pytest.mark.gui, pytest.mark.slow]

DATA = Path(__file__).parents[1] / "data"
SOURCES = Path(__file__).parents[1] / "compiler" / "job_sources.py"
PATIENCE = 100_000  # ms; a worker loads torch first


class NoPaths:
    """Chooses nothing."""

    def open_files(self, _parent, _title, _filters) -> tuple[str, ...]:
        return ()

    def open_folder(self, _parent, _title) -> str:
        return ""


@pytest.fixture
def window(make_window) -> MainWindow:
    return make_window()


def field(parent, kind: type, name: str):
    return next(one for one in parent.findChildren(kind) if one.accessibleName() == name)


def choose(box: QComboBox, key: str) -> None:
    place = box.findData(key)
    assert place >= 0
    box.setCurrentIndex(place)


def offered(dialog: CompileDialog) -> list[str]:
    box = field(dialog, QComboBox, "Add to Partitioners")
    return [box.itemText(row) for row in range(box.count())]


def test_dialog_offers_the_toolchain_and_asks_for_its_interpreter(
    window: MainWindow, qtbot, tmp_path: Path
) -> None:
    form = CompileForm(CompileJob(Source(str(tmp_path / "model.pt2"))), str(tmp_path / "out"))
    (tmp_path / "model.pt2").write_bytes(b"PK")
    dialog = CompileDialog(window.theme, form, NoPaths(), window)
    qtbot.addWidget(dialog)
    python, box = field(dialog, QLineEdit, "Interpreter"), field(dialog, QComboBox, "Toolchain")
    assert not python.isEnabled()  # a .pt2 file runs no function
    choose(box, EXECUTORCH)
    assert python.isEnabled()
    python.setText("/there/python")
    job = dialog.form().request()
    assert (job.toolchain, job.python) == (EXECUTORCH, "/there/python")
    choose(box, "")
    qtbot.waitUntil(lambda: any(text.startswith("demo-all") for text in offered(dialog)))
    assert (dialog.form().request().toolchain, dialog.form().request().python) == ("", "")
    dialog.shut_down()


def test_forms_keep_the_toolchain_in_the_settings() -> None:
    compiled = CompileForm(CompileJob(Source("a.py"), "/p", toolchain=EXECUTORCH))
    ran = RunForm(toolchain=EXECUTORCH, python="/p")
    settings = replace(Settings(), last_compile=form_content(compiled), last_run=ran)
    found = settings_from(settings_content(settings))
    assert (form_from(found.last_compile), found.last_run) == (compiled, ran)
    assert (
        form_from({"toolchain": "gcc"}).job.toolchain
        == run_form_from({"toolchain": 3}).toolchain
        == ""
    )


def test_run_panel_says_why_another_runtime_cannot_be_asked(
    window: MainWindow, qtbot, tmp_path: Path
) -> None:
    program = tmp_path / "model.pte"
    shutil.copy(DATA / "corpus/v1.5.1/mm_portable/model.pte", program)
    window.controller.open((str(program),))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.bound["run"].trigger()
    view = host_of(window, "run").view
    assert isinstance(view, RunView)
    python = field(view, QLineEdit, "Interpreter with executorch")
    assert python.isHidden()
    choose(field(view, QComboBox, "Runtime"), EXECUTORCH)
    assert not python.isHidden()
    python.setText(str(tmp_path / "none"))
    view._start()
    qtbot.waitUntil(lambda: not window.jobs["run"].running, timeout=PATIENCE)
    assert window.jobs["run"].current is not None
    outcome = window.jobs["run"].current.outcome
    assert outcome is not None
    assert outcome.ended is Ended.FAILED
    assert f"{tmp_path / 'none'} cannot be started" in view.error
    assert not any("run" in path.name for path in tmp_path.iterdir())


def test_results_name_the_runtime_and_what_had_no_effect() -> None:
    report = {
        "where": "ExecuTorch 9.9 on this machine",
        "outputs": [],
        "memory": {"planned_bytes": [1], "peak_bytes": None},
        "partitions": [],
        "trace": {"events": 0, "debug_bytes": 0},
        "files": [],
        "ignored": ["--engine has no effect"],
        "warnings": ["the cores were busy"],
    }
    text = outputs_text(report)
    assert "runtime   ExecuTorch 9.9 on this machine" in text
    assert "warning   --engine has no effect\nwarning   the cores were busy" in text
    what = runnable("1", load_session([str(DATA / "corpus/v1.5.1/mm_portable/model.pte")]))
    assert what is not None
    job = RunForm(toolchain=EXECUTORCH, python="/p").job(what)
    assert (job.toolchain, job.python) == (EXECUTORCH, "/p")
    assert RunForm(python="/p").job(what).python == ""
    known = replace(what, record="model.etrecord")  # which the stock runtime has no use for
    assert RunForm().job(known).record == "model.etrecord"
    assert RunForm(toolchain=EXECUTORCH, python="/p").job(known).record == ""
