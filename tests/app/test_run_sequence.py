"""A sequence of inputs in the Run panel: a folder or a name in a file, one call for each item."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLineEdit, QSpinBox

from devtools_app.shell.window import MainWindow
from devtools_app.state.run_form import SEQUENCE, RunForm, Runnable, run_form_from, runnable
from devtools_app.state.settings import Settings, settings_content, settings_from
from devtools_app.views.run import RunView
from inspector.files.load import load_session
from schema.program.model import Tensor
from tests.app.window_views import host_of

pytestmark = [pytest.mark.gui]

PORTABLE = Path(__file__).parents[1] / "data/corpus/v1.5.1/mm_portable/model.pte"


@pytest.fixture(scope="module")
def what() -> Runnable:
    found = runnable("A", load_session([PORTABLE]))
    assert found is not None
    return found


def test_the_job_has_the_sequence_and_no_repeated_runs(what: Runnable, tmp_path: Path) -> None:
    form = RunForm(
        inputs=SEQUENCE,
        sequence=str(tmp_path),
        runs=7,
        warmup=3,
        threads=-1,
        folder=str(tmp_path / "run"),
    )
    assert form.problem(what) == ""
    job = form.job(what)
    assert (job.sequence, job.inputs) == (str(tmp_path), "random")
    assert (job.runs, job.warmup, job.sweep_threads, job.threads) == (None, None, False, 1)
    assert form.logging_values(what).job(what).sequence == str(tmp_path)
    others = RunForm(sequence=str(tmp_path)).job(what)
    assert others.sequence == ""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Choose a folder of inputs, or FILE.py:NAME."),
        ("random", "random not found."),
        ("/not/there", "/not/there not found."),
        ("/not/there.py", "Choose a folder of inputs, or FILE.py:NAME."),
    ],
)
def test_what_is_no_sequence_is_one_sentence(what: Runnable, text: str, sentence: str) -> None:
    assert RunForm(inputs=SEQUENCE, sequence=text).problem(what) == sentence


@pytest.mark.parametrize("place", [{"device": "pi"}, {"toolchain": "executorch"}])
def test_a_sequence_runs_on_our_runtime(
    what: Runnable, tmp_path: Path, place: dict[str, Any]
) -> None:
    form = RunForm(inputs=SEQUENCE, sequence=str(tmp_path), **place)
    assert "own runtime" in form.problem(what)


def test_it_is_remembered(tmp_path: Path) -> None:
    settings = Settings(last_run=RunForm(inputs=SEQUENCE, sequence=str(tmp_path)))
    found = settings_from(settings_content(settings)).last_run
    assert (found.inputs, found.sequence) == (SEQUENCE, str(tmp_path))
    assert run_form_from({}).sequence == ""


@pytest.mark.slow
def test_panel_runs_a_folder_and_shows_its_calls(make_window, qtbot, tmp_path: Path) -> None:
    window: MainWindow = make_window()
    model = Path(shutil.copy(PORTABLE, tmp_path / "model.pte"))
    program = load_session([model]).program
    assert program is not None
    plan = program.plans[0]
    (tmp_path / "calls").mkdir()
    for at in range(3):
        held = [plan.values[index].val for index in plan.inputs]
        sizes = [one.sizes for one in held if isinstance(one, Tensor)]
        torch.save([torch.randn(*one) for one in sizes], tmp_path / f"calls/{at}.pt")
    window.controller.open((str(model),))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.bound["run"].trigger()
    view = host_of(window, "run").view
    assert isinstance(view, RunView)
    kinds = _named(view, QComboBox, "Inputs")
    kinds.setCurrentIndex(kinds.findData(SEQUENCE))
    field = _named(view, QLineEdit, "Sequence of inputs")
    assert field.isVisible()
    assert not _named(view, QSpinBox, "Runs").isEnabled()
    assert view.problem == "Choose a folder of inputs, or FILE.py:NAME."
    field.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClicks(field, str(tmp_path / "calls"))
    assert view.problem == ""
    view.take_focus()
    qtbot.keyClick(view.focusWidget(), Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: view.title.endswith("3 calls"), timeout=60_000)
    assert [view.table.text(row, 0) for row in range(2)] == ["load", "first call"]


def _named(view: RunView, kind: type, name: str):
    return next(one for one in view.findChildren(kind) if one.accessibleName() == name)
