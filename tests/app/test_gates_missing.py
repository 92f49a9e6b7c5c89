"""What gates lack is computed from their view: values logged and compared, a data set evaluated."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from devtools_app.viewmodels.gate_plan import StepKind
from devtools_app.views.gates import GatesPane
from inspector.experiments.gates.requirement import Kind, parse_requirement
from inspector.experiments.gates.several import GateSide, judge_sides
from inspector.files.load import load_session
from inspector.jobs import run as jobs
from inspector.jobs.messages import Ended, Outcome
from tests.app.view_bench import Bench
from tests.inspector.jobs_here import Here, Scripted
from tests.inspector.sessions import DATA

pytestmark = [pytest.mark.gui, pytest.mark.slow]
PORTABLE, XNNPACK = DATA / "runs/convnet_portable", DATA / "runs/convnet_xnnpack"
LOGGED = DATA / "corpus/v1.5.1/mm_xnnpack"
PATIENCE = 100_000  # ms


@pytest.fixture
def bench(qtbot) -> Bench:
    return Bench(qtbot, GatesPane)


def _pane(bench: Bench) -> GatesPane:
    assert isinstance(bench.pane, GatesPane)
    return bench.pane


def _open(bench: Bench, source: Path, folder: Path, *, leave: tuple[str, ...] = ()) -> None:
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(*leave))
    bench.open(load_session([str(folder)], strict=True))


def _require(bench: Bench, *gates: str) -> None:
    bench.store.update(gates=gates)
    bench.settle()


def _results(bench: Bench) -> list[str]:
    table = _pane(bench).table.rows
    return [table.text(row, 0) for row in range(table.length)]


def _kinds(bench: Bench) -> list[StepKind]:
    return [one.kind for one in _pane(bench).missing._plan.steps]


def test_values_are_logged_and_compared_for_each_program_that_lacks_them(
    bench: Bench, qtbot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "Worker", Here)
    _open(bench, PORTABLE, tmp_path / "one")
    _open(bench, LOGGED, tmp_path / "two")
    missing = _pane(bench).missing
    _require(bench, "size<=1GB")
    assert not missing.isVisible()
    _require(bench, "gap.max_abs<=0.1", "gap.coverage>=1%")
    assert _results(bench) == ["unknown"] * 4
    assert _kinds(bench) == [StepKind.LOG, StepKind.COMPARE, StepKind.COMPARE]
    assert "1. run A one with all values logged" in missing.words.text()
    assert "3. compare B two with its recorded program" in missing.words.text()
    sessions = bench.store.state.sessions
    missing.button.setFocus()
    qtbot.keyClick(missing.button, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not missing.evidence.running, timeout=PATIENCE)
    bench.settle()
    qtbot.waitUntil(lambda: _results(bench) == ["met"] * 4, timeout=PATIENCE)
    assert not missing.isVisible()
    assert missing.evidence.problems == []
    assert bench.store.state.sessions == sessions  # nothing is opened
    assert all(bench.store.state.gaps_of(one) is not None for one in sessions)
    assert (tmp_path / "one/model_run/run.json").is_file()


def test_data_set_is_evaluated_and_judged_at_once(
    bench: Bench, qtbot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "Worker", Here)
    _open(bench, PORTABLE, tmp_path / "one")
    _open(bench, XNNPACK, tmp_path / "two")
    missing = _pane(bench).missing
    _require(bench, "eval.snr>=20dB")
    assert _kinds(bench) == [StepKind.EVALUATE]
    assert missing.data.isVisible()
    assert not missing.measure.isVisible()
    missing.button.click()
    assert "expected FILE.py:NAME" in missing.problem.text()
    missing.data.setText("random")
    missing.samples.setText("2")
    qtbot.keyClick(missing.samples, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: _results(bench) == ["met", "met"], timeout=PATIENCE)
    assert not missing.isVisible()
    _require(bench, "eval.snr>=20dB", "eval.accuracy>=0.5")
    assert missing.measure.isVisible()
    assert missing.data.text() == "random"


def test_what_cannot_be_computed_is_named(bench: Bench, tmp_path: Path) -> None:
    _open(bench, PORTABLE, tmp_path / "one", leave=("*.etrecord",))
    _open(bench, PORTABLE, tmp_path / "two", leave=("*.pte", "run.*"))
    missing = _pane(bench).missing
    _require(bench, "gap.max_abs<=0.1")
    assert _kinds(bench) == []
    assert "A one has no ETRecord" in missing.words.text()
    assert "B two has no program" in missing.words.text()
    assert not missing.button.isVisible()
    _require(bench, "eval.snr>=20dB")
    assert _kinds(bench) == [StepKind.EVALUATE]
    assert "B two has no program (.pte) to evaluate" in missing.words.text()


def test_step_that_fails_is_reported_and_the_others_go_on(
    bench: Bench, qtbot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = [Scripted(outcome=Outcome(Ended.FAILED, "the disk is full")), Here("compare")]
    monkeypatch.setattr(jobs, "Worker", lambda *_args, **_more: workers.pop(0))
    _open(bench, PORTABLE, tmp_path / "one")
    _open(bench, LOGGED, tmp_path / "two")
    missing = _pane(bench).missing
    _require(bench, "gap.max_abs<=1")
    missing.button.click()
    qtbot.waitUntil(lambda: _results(bench) == ["unknown", "met"], timeout=PATIENCE)
    assert "A one: the disk is full" in missing.problem.text()
    assert _kinds(bench) == [StepKind.LOG, StepKind.COMPARE]


def test_cancel_ends_the_step_and_leaves_out_the_others(
    bench: Bench, qtbot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Scripted()
    monkeypatch.setattr(jobs, "Worker", lambda *_args, **_more: worker)
    _open(bench, PORTABLE, tmp_path / "one")
    missing = _pane(bench).missing
    _require(bench, "gap.max_abs<=1")
    missing.button.click()
    assert missing.evidence.running
    assert missing.words.text().startswith("Running A one with all values logged")
    assert missing.words.text().endswith("1 more to do")
    missing.cancel_button.click()
    qtbot.waitUntil(lambda: not missing.evidence.running, timeout=PATIENCE)
    assert missing.button.isVisible()
    assert _results(bench) == ["unknown"]


def test_gates_name_what_they_lack_of_which_program() -> None:
    session = load_session([str(PORTABLE)], strict=True)
    sides = (GateSide("A", session), GateSide("B", session))
    texts = ("gap.max_abs<=1x baseline", "eval.accuracy>=0.5", "size<=1GB")
    rows = judge_sides([*map(parse_requirement, texts)], sides, sides[1])
    assert [row.lacks for row in rows] == [
        ((Kind.GAP, "A"), (Kind.GAP, "B")),
        ((Kind.GAP, "B"), (Kind.GAP, "B")),
        ((Kind.EVAL, "A"),),
        ((Kind.EVAL, "B"),),
        (),
        (),
    ]
