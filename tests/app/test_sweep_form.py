"""A sweep put together in the window: fields, values, points and price, start, cancel, resume."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from devtools_app.dialogs.sweep_fields import SweepFields
from devtools_app.sample_data import LOOP
from devtools_app.shell.window import MainWindow
from devtools_app.state.trusted_code import agree
from devtools_app.viewmodels.sweep_axes import SweepField, known_times, sweep_fields, values_of
from devtools_app.views.sweep import SweepPane
from inspector.experiments.sweeps.grid import GridError
from inspector.experiments.sweeps.request import SweepRequest
from inspector.experiments.sweeps.results import Status, read_results
from inspector.jobs.history import JobEntry, request_content
from inspector.jobs.messages import Ended
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source
from tests.app.window_views import host_of, open_sample

pytestmark = pytest.mark.gui
PATIENCE = 200_000  # ms; each worker loads torch first


def test_fields_are_those_of_the_recipe_with_known_values() -> None:
    fields = {one.path: one for one in sweep_fields(CompileJob(Source("net.py", "build")))}
    assert "source.path" not in fields
    assert fields["rules.min_nodes"].text == "1"
    assert "xnnpack" in fields["partitioners"].known
    assert [value for value, _ in fields["external_constants"].choices] == [False, True]
    assert len(fields["rules.granularity"].choices) > 1


def test_points_that_are_not_run_have_no_runs(qtbot, theme) -> None:
    fields = SweepFields(theme, 2)
    qtbot.addWidget(fields)
    assert (fields.runs.value(), fields.runs.text()) == (0, "none")
    fields.runs.setValue(3)
    assert fields.runs.text() == "3"


def test_typed_values_are_those_of_the_field() -> None:
    number = SweepField("rules.min_nodes", "Rules: fewest nodes", "")
    assert values_of(number, "1, 5,5") == (1, 5)
    names = SweepField("partitioners", "Program: partitioners", "")
    assert values_of(names, "none, xnnpack+demo-all") == ([], ["xnnpack", "demo-all"])
    with pytest.raises(GridError, match="fewest nodes"):
        values_of(number, " ")


def test_last_compile_and_run_are_of_the_same_program(tmp_path: Path) -> None:
    job = CompileJob(Source("/a/net.py", "build"))
    other = replace(job, source=Source("/a/other.py", "build"))
    program = tmp_path / "model.pte"

    def entry(
        kind: str, request: object, seconds: float, ended: Ended = Ended.FINISHED
    ) -> JobEntry:
        content = request if isinstance(request, dict) else request_content(request)
        return JobEntry(f"{seconds}", kind, "", 0.0, request=content, seconds=seconds, ended=ended)

    entries = (
        entry("compile", job, 1.0, Ended.FAILED),
        entry("compile", other, 2.0),
        entry("compile", job, 3.0),
        entry("compile", job, 4.0),
        entry("run", {"program": "/elsewhere/model.pte"}, 5.0),
        entry("run", {"program": str(program)}, 6.0),
    )
    found = known_times(entries, job, [str(program)])
    assert (found.compile, found.run, found.started) == (3.0, 6.0, True)
    (tmp_path / "compile.json").write_text('{"total_ms": 1500}')
    found = known_times((), job, [str(program)])
    assert (found.compile, found.run, found.started) == (1.5, None, False)


# ---- in the window
@pytest.fixture
def program(tmp_path: Path) -> tuple[str, ...]:
    """The sample of the loop, where it may be written beside."""
    home = tmp_path / "demo"
    shutil.copytree(Path(LOOP[0]).parent, home)
    return tuple(str(home / Path(path).name) for path in LOOP[:2])


@pytest.fixture
def pane(make_window: Callable[..., MainWindow], qtbot, program: tuple[str, ...]) -> SweepPane:
    window = make_window()
    window.resize(1280, 800)
    open_sample(window, qtbot, program)
    window.show_view("sweep")
    found = host_of(window, "sweep").view
    assert isinstance(found, SweepPane)
    qtbot.waitUntil(found.form.isVisible, timeout=10_000)
    return found


def _window(pane: SweepPane) -> MainWindow:
    window = pane.window()
    assert isinstance(window, MainWindow)
    return window


@pytest.mark.slow
def test_points_are_counted_and_priced_while_fields_are_picked(pane: SweepPane, qtbot) -> None:
    form, fields = pane.form, pane.form.fields
    row = fields.rows[0]
    assert row.field.path == "rules.min_nodes"
    row.values.selectAll()
    qtbot.keyClicks(row.values, "1, 2, 8")
    qtbot.waitUntil(lambda: form.price.text().startswith("3 points · about "), timeout=5000)
    qtbot.mouseClick(fields.add, Qt.MouseButton.LeftButton)
    added = fields.rows[1]
    added.names.setCurrentIndex(added.names.findData("external_constants"))
    assert {*added.boxes} == {"off", "on"}
    qtbot.waitUntil(lambda: form.price.text().startswith("6 points"), timeout=5000)
    qtbot.mouseClick(added.boxes["on"], Qt.MouseButton.LeftButton, pos=_left_of(added.boxes["on"]))
    qtbot.waitUntil(lambda: form.price.text().startswith("3 points"), timeout=5000)
    row.values.setText("many")
    row.edited.emit()
    qtbot.waitUntil(lambda: "expected an integer" in row.problem.text(), timeout=5000)
    assert form.problem.startswith("Partition: min nodes: expected")
    assert not form._problem.isVisible()  # said once, at the field
    assert not form.start.isEnabled()
    qtbot.mouseClick(row.remove, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(form.start.isEnabled, timeout=5000)
    assert len(fields.rows) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("rules.min_nodes", "1, -3", "at least 1, found -3"),
        ("partitioners", "none, xnpack", "did you mean xnnpack"),
        ("memory_planner", "greedy, foo", "unknown memory planner 'foo'"),
        ("rules.deny_dtypes", "float99", "unknown dtype 'float99'"),
        ("quantising.calibration", "gone.pt", "gone.pt: file not found"),
    ],
)
def test_value_that_no_compile_can_use_is_refused_at_its_field(
    pane: SweepPane, qtbot, path: str, text: str, words: str
) -> None:
    row = pane.form.fields.rows[0]
    row.names.setCurrentIndex(row.names.findData(path))
    row.values.selectAll()
    qtbot.keyClicks(row.values, text)
    qtbot.waitUntil(lambda: words in row.problem.text(), timeout=5000)
    assert not pane.form.start.isEnabled()


@pytest.mark.slow
def test_method_and_folder_are_checked(pane: SweepPane, qtbot, tmp_path: Path) -> None:
    form = pane.form
    qtbot.keyClicks(form.fields.method, "nobody")
    qtbot.waitUntil(lambda: "available: forward" in form.problem, timeout=5000)
    form.fields.method.clear()
    (tmp_path / "file").write_text("")
    form.fields.folder.selectAll()
    qtbot.keyClicks(form.fields.folder, str(tmp_path / "file"))
    qtbot.waitUntil(lambda: "is a file, not a folder" in form.problem, timeout=5000)


@pytest.mark.slow
def test_data_set_is_checked_and_part_of_the_request(
    pane: SweepPane, qtbot, tmp_path: Path, monkeypatch
) -> None:
    window, form = _window(pane), pane.form
    qtbot.keyClicks(form.fields.data, str(tmp_path / "none.py:batches"))
    qtbot.waitUntil(lambda: "not found" in form.problem, timeout=5000)
    (tmp_path / "none.py").write_text("batches = []")
    qtbot.keyClicks(form.fields.samples, "5")
    qtbot.waitUntil(form.start.isEnabled, timeout=5000)
    found: list[SweepRequest] = []
    monkeypatch.setattr(
        window.jobs.sweeping, "start", lambda request, _target: found.append(request) or ""
    )
    code = window.recipe_store.variant.draft.present.source.path
    agree([code, str(tmp_path / "none.py")])
    qtbot.mouseClick(form.start, Qt.MouseButton.LeftButton)
    assert found[0].settings.data == str(tmp_path / "none.py:batches")
    assert found[0].settings.samples == 5
    assert found[0].grid == {"rules.min_nodes": [1]}


def _left_of(box):
    return box.rect().center().__class__(8, box.height() // 2)


@pytest.mark.slow
def test_sweep_asks_before_it_runs_code(pane: SweepPane, qtbot, monkeypatch) -> None:
    window = _window(pane)
    started: list[object] = []
    monkeypatch.setattr(
        window.jobs.sweeping, "start", lambda request, target: started.append(target) or ""
    )
    folder = pane.form.fields.folder.text()
    qtbot.mouseClick(pane.form.start, Qt.MouseButton.LeftButton)
    assert not started
    assert "keyword_spotter.py" in window.strip.text
    run_it = next(one for one in window.strip.findChildren(QPushButton) if one.text() == "Run it")
    qtbot.mouseClick(run_it, Qt.MouseButton.LeftButton)
    assert started == [folder]


@pytest.mark.slow
def test_sweep_is_started_cancelled_resumed_and_shown(
    pane: SweepPane, qtbot, program: tuple[str, ...]
) -> None:
    window, form = _window(pane), pane.form
    agree([str(Path(program[0]).parent / "keyword_spotter.py")])
    form.fields.rows[0].values.setText("1, 2, 3, 4, 5, 6")  # some are left when the first is done
    form.fields.workers.setValue(1)
    form.refresh()
    folder = Path(form.fields.folder.text())
    qtbot.mouseClick(form.start, Qt.MouseButton.LeftButton)
    sweeping = window.jobs.sweeping
    assert "sweeping" in window.jobs.labels()
    qtbot.waitUntil(lambda: (folder / "results.json").is_file(), timeout=PATIENCE)
    qtbot.waitUntil(lambda: pane.table.rows.length == 6, timeout=PATIENCE)
    qtbot.waitUntil(lambda: sweeping.current.done >= 1, timeout=PATIENCE)
    qtbot.mouseClick(pane.cancel_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not sweeping.running, timeout=PATIENCE)
    assert 1 <= read_results(folder).count(Status.DONE) < 6
    qtbot.waitUntil(pane.resume_button.isVisible, timeout=10_000)
    qtbot.mouseClick(pane.resume_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: sweeping.running, timeout=5000)
    qtbot.waitUntil(lambda: not sweeping.running, timeout=PATIENCE)
    results = read_results(folder)
    assert [one.status for one in results.points] == [Status.DONE] * 6
    qtbot.waitUntil(lambda: "6 of 6 points done" in pane.note.text(), timeout=10_000)
    kinds = [(one.kind, one.state) for one in window.jobs.history.entries]
    assert kinds[:2] == [("sweep", "finished"), ("sweep", "cancelled")]
    assert any("min_nodes=1: done" in line.text for line in window.jobs.history.entries[1].log)
    qtbot.mouseClick(pane.new_button, Qt.MouseButton.LeftButton)
    assert form.isVisible()
    qtbot.mouseClick(form.results, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(pane.table.isVisible, timeout=5000)
