"""Operators of a library in the window: the fields that ask for it, a compile, a run, a gap."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLineEdit, QPushButton, QToolButton, QWidget

from devtools_app.dialogs.compile_dialog import CompileDialog
from devtools_app.shell.window import MainWindow
from devtools_app.state.compile_form import CompileForm, form_from
from devtools_app.state.run_form import RunForm, run_form_from, runnable
from devtools_app.state.trusted_code import agree
from devtools_app.views.gap import GapPane
from devtools_app.views.run import RunView
from inspector.files.load import load_session
from inspector.jobs.messages import Ended
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source
from tests.app.window_views import host_of
from tests.inspector.cli_runs import run
from tests.inspector.test_cli_libraries import LIBRARY, SOURCE

pytestmark = [pytest.mark.gui, pytest.mark.slow]

PATIENCE = 240_000  # ms; a worker loads torch first


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a library, a source and its compile."""
    folder = tmp_path_factory.mktemp("operators")
    (folder / "operators.py").write_text(LIBRARY, "utf-8")
    (folder / "source.py").write_text(SOURCE, "utf-8")
    answer = run("compile", f"{folder}/source.py:net", "-o", folder / "built")
    assert answer.code == 0, answer.err
    return folder


@pytest.fixture
def window(make_window) -> MainWindow:
    return make_window()


def library_field(view: QWidget) -> QLineEdit:
    name = "Operator libraries"
    return next(one for one in view.findChildren(QLineEdit) if one.accessibleName() == name)


def panel(window: MainWindow, qtbot, *paths: Path) -> RunView:
    window.controller.open(tuple(map(str, paths)))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=PATIENCE)
    window.bound["run"].trigger()
    found = host_of(window, "run").view
    assert isinstance(found, RunView)
    return found


def press(view: QWidget, name: str) -> None:
    next(b for b in view.findChildren(QPushButton) if b.accessibleName() == name).click()


def finish(window: MainWindow, qtbot) -> Ended:
    qtbot.waitUntil(lambda: not window.jobs["run"].running, timeout=PATIENCE)
    current = window.jobs["run"].current
    assert current is not None
    assert current.outcome is not None
    qtbot.waitUntil(lambda: not window.controller.opener.busy, timeout=PATIENCE)
    return current.outcome.ended


def test_run_panel_asks_for_a_library_where_one_is_needed(window, qtbot, made, tmp_path) -> None:
    view = panel(window, qtbot, made / "built")
    field = library_field(view)
    assert field.isVisible()
    assert "handmade::scaled.out" in field.placeholderText()
    field.setText(str(made / "absent.py"))
    assert view.problem == f"{made}/absent.py not found."
    field.setText("")
    press(view, "Run the program")
    assert finish(window, qtbot) is Ended.FAILED
    field.setText(str(made / "operators.py"))
    press(view, "Run the program")
    assert finish(window, qtbot) is Ended.FINISHED
    assert window.controller.settings.last_run.libraries == str(made / "operators.py")
    window.show_view("gap")
    gap = next(host.view for host in window.hosts if isinstance(host.view, GapPane))
    gap.run_and_compare()
    assert finish(window, qtbot) is Ended.FINISHED
    qtbot.waitUntil(lambda: gap.gap_runner.current is not None, timeout=PATIENCE)
    qtbot.waitUntil(lambda: not gap.gap_runner.running, timeout=PATIENCE)
    current = gap.gap_runner.current
    assert current is not None
    report = current.state
    assert report is not None
    compared = {row.operator: row.compared for each in report.runs for row in each.rows}
    assert compared.pop("handmade::noted.out") is False
    assert set(compared.values()) == {True}


def test_code_of_the_recipe_is_loaded_once_the_user_has_agreed_to_it(
    window, qtbot, made, tmp_path
) -> None:
    source = shutil.copytree(made, tmp_path / "copy") / "source.py"
    answer = run("compile", f"{source}:net", "-o", tmp_path / "built")
    assert answer.code == 0, answer.err
    view = panel(window, qtbot, tmp_path / "built")
    assert "library that registers" in library_field(view).placeholderText()
    found = window.store.state.open_session
    assert found is not None
    what = runnable(found.id, found.session)
    assert what is not None
    assert what.code == (str(source),)
    assert RunForm().job(what).libraries == ()
    agree((str(source),))
    assert RunForm().job(what).libraries == (str(source),)
    assert RunForm(libraries="/mine.py").job(what).libraries == ("/mine.py",)
    press(view, "Run the program")
    assert finish(window, qtbot) is Ended.FINISHED


def test_no_library_is_asked_for_or_loaded_where_none_is_needed(window, qtbot, made) -> None:
    plain = Path(__file__).parents[1] / "data/corpus/v1.5.1/mm_portable/model.pte"
    view = panel(window, qtbot, plain)
    assert not library_field(view).isVisible()
    form = RunForm(libraries=str(made / "operators.py"))
    what = runnable("A", load_session([str(plain)]))
    assert what is not None
    assert form.job(what).libraries == ()
    assert form.job(replace(what, foreign=("my::op",))).libraries == (str(made / "operators.py"),)


def test_dialog_says_that_a_library_is_run_and_the_job_has_it(qtbot, theme, made, tmp_path) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    paths = (str(made / "operators.py"), str(made / "source.py"))
    job = CompileJob(Source(str(made / "built/model.etrecord")), libraries=paths)
    given = CompileForm(job, str(tmp_path / "out"))
    dialog = CompileDialog(theme, given, _NoPaths(), parent)
    dialog.show()
    assert dialog.problem == ""
    assert f"{made}/operators.py and {made}/source.py" in dialog.runs
    assert dialog.form().request().libraries == paths
    (made / "operators.py").rename(made / "elsewhere.py")
    remove = f"Remove {made}/source.py from operator libraries"
    buttons = [one for one in dialog.findChildren(QToolButton) if one.isVisible()]
    next(one for one in buttons if one.accessibleName() == remove).click()
    assert dialog.form().request().libraries == paths[:1]
    assert dialog.problem_of("libraries") == f"{made}/operators.py: file not found."
    (made / "elsewhere.py").rename(made / "operators.py")


class _NoPaths:
    def open_files(self, parent: QWidget, title: str, filters: str) -> tuple[str, ...]:
        return ()

    def open_folder(self, parent: QWidget, title: str) -> str:
        return ""


def test_fields_are_remembered() -> None:
    old = {"libraries": os.pathsep.join(("a.py", "b.py"))}  # as earlier versions wrote it
    assert form_from(old).job.libraries == ("a.py", "b.py")
    assert run_form_from({"libraries": "a.py"}).libraries == "a.py"
    assert form_from({"libraries": 3}) == CompileForm()
