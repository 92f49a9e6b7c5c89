"""What to do next on the page of a session: one click does what the line says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from devtools_app.shell.window import MainWindow
from devtools_app.views.gap import GapPane
from devtools_app.views.overview import OverviewPane
from devtools_app.widgets.link_row import LinkRow
from inspector.jobs import run as jobs
from tests.app.window_views import host_of
from tests.inspector.jobs_here import Here

pytestmark = [pytest.mark.gui, pytest.mark.slow]

DATA = Path(__file__).parents[1] / "data/corpus/v1.5.1/mm_portable"
PATIENCE = 100_000  # ms


@pytest.fixture
def window(make_window, qtbot, tmp_path: Path, monkeypatch) -> MainWindow:
    """A window with a program and its record; jobs are done in this process."""
    monkeypatch.setattr(jobs, "Worker", Here)
    for name in ("model.pte", "model.etrecord"):
        shutil.copy(DATA / name, tmp_path)
    made = make_window()
    made.controller.open((str(tmp_path),))
    qtbot.waitUntil(lambda: made.store.state.session is not None, timeout=20_000)
    return made


def step(window: MainWindow, qtbot, text: str) -> LinkRow:
    page = host_of(window, "overview").view
    assert isinstance(page, OverviewPane)

    def found() -> LinkRow | None:
        return next((r for r in page.findChildren(LinkRow) if text in r.accessibleName()), None)

    qtbot.waitUntil(lambda: found() is not None, timeout=20_000)
    row = found()
    assert row is not None
    return row


def test_running_the_program_starts_at_once(window, qtbot) -> None:
    step(window, qtbot, "Run the program").click()
    assert window.store.state.view == "run"
    assert window.jobs["run"].running
    qtbot.waitUntil(lambda: not window.jobs["run"].running, timeout=PATIENCE)
    qtbot.waitUntil(lambda: bool(window.store.state.session.dumps), timeout=20_000)


def test_values_are_logged_and_compared_at_once(window, qtbot) -> None:
    step(window, qtbot, "Run it with values").click()
    assert window.store.state.view == "gap"
    qtbot.waitUntil(
        lambda: isinstance(host_of(window, "gap").view, GapPane), timeout=20_000
    )  # its parts may still be loaded
    view = host_of(window, "gap").view
    assert isinstance(view, GapPane)
    qtbot.waitUntil(lambda: view.gap_runner.current is not None, timeout=PATIENCE)
    qtbot.waitUntil(lambda: not view.gap_runner.running, timeout=PATIENCE)
    found = view.gap_runner.current
    assert found is not None
    assert found.state is not None
    assert found.state.runs
