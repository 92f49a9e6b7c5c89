"""Options of backends in the Run panel: offered where they matter, checked, kept, passed on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLineEdit

from devtools_app.shell.window import MainWindow
from devtools_app.state.run_form import LEVELS, RunForm, run_form_from, runnable
from devtools_app.state.settings import Settings, settings_content, settings_from
from devtools_app.views.run import RunView
from inspector.files.load import load_session
from inspector.jobs.executing import RunJob
from tests.app.window_views import host_of

pytestmark = [pytest.mark.gui]

DATA = Path(__file__).parents[1] / "data"
VENDOR = DATA / "backends/openvino/openvino_m1.pte"
PORTABLE = DATA / "corpus/v1.5.1/mm_portable/model.pte"
WORD = "openvino:precision=f32"


def test_options_are_of_programs_whose_backend_has_some() -> None:
    with_options = runnable("A", load_session([VENDOR]))
    without = runnable("A", load_session([PORTABLE]))
    assert with_options is not None
    assert without is not None
    assert (with_options.options_of, without.options_of) == (("openvino",), ())
    form = RunForm(options=f" {WORD}  openvino:threads=1 ")
    assert form.job(with_options).backend_options == (WORD, "openvino:threads=1")
    assert form.job(without).backend_options == ()
    assert RunForm(options=WORD, toolchain="executorch").job(with_options).backend_options == ()
    assert RunForm(options=WORD, device="pi").job(with_options).backend_options == ()
    logging = form.logging_values(with_options).job(with_options)
    assert logging.backend_options == form.job(with_options).backend_options


def test_wrong_options_are_a_sentence_where_they_matter() -> None:
    one, other = runnable("A", load_session([VENDOR])), runnable("A", load_session([PORTABLE]))
    assert RunForm(options="f32").problem(one) == "'f32': expected NAME:OPTION=VALUE, found no '='."
    assert RunForm(options="f32").problem(other) == ""
    assert RunForm(options=WORD).problem(one) == ""


def test_options_are_remembered() -> None:
    settings = Settings(last_run=RunForm(options=WORD))
    assert settings_from(settings_content(settings)).last_run.options == WORD
    assert run_form_from({}).options == ""


@pytest.mark.parametrize("level", [level for level in LEVELS if level != "none"])
def test_values_to_log_are_chosen_for_one_run_only(level: str) -> None:
    """They cost time and space: neither the next start nor a gap's own run keeps the choice."""
    form = RunForm(level=level, runs=3, threads=2)
    kept = settings_from(settings_content(Settings(last_run=form))).last_run
    assert kept == RunForm(runs=3, threads=2)
    what = runnable("A", load_session([PORTABLE]))
    assert what is not None
    assert kept.job(what).debug_level == "none"
    assert kept.logging_values(what).job(what).debug_level == "intermediate"
    assert kept.job(what).debug_level == "none"  # the run for values was a copy


@pytest.mark.slow
def test_panel_takes_options_by_keyboard_and_runs_with_them(
    make_window, qtbot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window: MainWindow = make_window()
    model = Path(shutil.copy(VENDOR, tmp_path / "model.pte"))
    window.controller.open((str(model),))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.bound["run"].trigger()
    view = host_of(window, "run").view
    assert isinstance(view, RunView)
    field = _named(view, QLineEdit, "Options of backends")
    assert field.isVisible()
    assert field.placeholderText() == WORD
    field.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClicks(field, "openvino:precision")
    assert view.problem == ("'openvino:precision': expected NAME:OPTION=VALUE, found no '='.")
    qtbot.keyClicks(field, "=f32")
    assert view.problem == ""
    started: list[object] = []
    monkeypatch.setattr(window.jobs["run"], "start", lambda job, *_a, **_k: started.append(job))
    view.take_focus()
    qtbot.keyClick(view.focusWidget(), Qt.Key.Key_Space)
    (job,) = started
    assert isinstance(job, RunJob)
    assert job.backend_options == (WORD,)
    runtime = _named(view, QComboBox, "Runtime")
    runtime.setCurrentIndex(runtime.findData("executorch"))
    assert not field.isVisible()


def _named(view: RunView, kind: type, name: str):
    return next(one for one in view.findChildren(kind) if one.accessibleName() == name)
