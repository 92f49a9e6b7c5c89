"""What is chosen to be compared is measured, once."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QTableView

from devtools_app.actions.recipe_command import typical_ms
from devtools_app.jobs.follower import JobFollower, JobProgress
from devtools_app.jobs.measuring import OutputErrorRuns, session_keys
from devtools_app.shell.window import MainWindow
from devtools_app.state.transitions import add_session, close_session
from devtools_app.state.trusted_code import untrusted_source
from devtools_app.state.variant_steps import compared_sessions
from devtools_app.views import compare
from devtools_app.views.compare import ComparePane
from devtools_app.views.overview import OverviewPane
from inspector.compare.statistics import judge
from inspector.files.load import load_session
from inspector.jobs.executing import MeasureJob, RunJob
from inspector.jobs.measure import Measurement, ProgramTimes
from inspector.recipes.source import Source
from tests.app.compare_panes import CORPUS, compare_pane, open_recorded
from tests.app.conftest import start_errors
from tests.inspector.jobs_here import Here, Scripted

pytestmark = [pytest.mark.gui, pytest.mark.slow]

NAMES = ("convnet_portable", "convnet_xnnpack", "mm_xnnpack")


@pytest.fixture
def started(monkeypatch) -> list[MeasureJob]:
    """The measurements that were wished for; none is made."""
    found: list[MeasureJob] = []

    def start(self: JobFollower, job: MeasureJob, *, about: object, **_options: object) -> str:
        found.append(job)
        self.ended.emit(JobProgress(job, about, state=Measurement(())))
        return ""

    monkeypatch.setattr(JobFollower, "start", start)
    return found


@pytest.fixture
def pane(make_window, started) -> ComparePane:
    return compare_pane(make_window(), *NAMES)


def choose(pane: ComparePane, newer: str) -> None:
    pane.newer.setCurrentIndex(pane.newer.findData(newer))
    pane.newer.activated.emit(pane.newer.currentIndex())


def test_all_sessions_against_one_are_measured_at_once_and_once(pane, started) -> None:
    assert started == []
    choose(pane, "*")
    assert [len(job.programs) for job in started] == [3]
    choose(pane, "B")
    assert [len(job.programs) for job in started] == [3, 2]
    choose(pane, "*")
    assert len(started) == 2
    assert pane.measurer.known(compared_sessions(pane.state)) is not None


def test_session_without_a_program_is_named_and_not_measured(pane, started) -> None:
    record = load_session([str(CORPUS / NAMES[0] / "model.etrecord")])
    pane.store.put(add_session(pane.state, record, ("record",)))
    choose(pane, "D")
    assert started == []
    assert not pane._measure.isEnabled()
    assert "D" in pane._measure.toolTip()
    choose(pane, "C")
    assert pane._measure.isEnabled()


def test_programs_run_the_method_they_share_or_are_not_measured(pane, started) -> None:
    data = CORPUS.parents[1] / "extra"
    for name in ("two_methods", "bundled_two_suites"):  # decode and encode; forward and score
        found = load_session([str(data / name)])
        pane.store.put(add_session(pane.state, found, (name,)))
    choose(pane, "D")
    assert started == []
    assert not pane._measure.isEnabled()
    assert pane._measure.toolTip() == "The programs have no method in common to measure"
    choose(pane, "E")
    assert [one.method for one in started[-1].programs] == ["forward", "forward"]
    assert pane._measure.isEnabled()


@pytest.mark.parametrize("files", [("model.pte", "model.etrecord"), ("model.etrecord",)])
def test_only_a_session_with_a_program_is_offered_to_be_measured(make_window, files) -> None:
    window = make_window()
    folder = CORPUS / NAMES[0]
    for names in (("model.pte", "model.etrecord"), files):
        paths = [str(folder / name) for name in names]
        window.store.put(add_session(window.store.state, load_session(paths), tuple(paths)))
    window.show_view("overview")
    host = window.centre.current
    assert host is not None
    assert isinstance(host.view, OverviewPane)
    offered = host.view._unmeasured(window.store.state)
    assert bool(offered) == ("model.pte" in files)


def test_what_was_measured_is_that_of_these_sessions_only(pane, started) -> None:
    choose(pane, "B")
    shown = compared_sessions(pane.state)
    assert pane.measurer.known(shown) is not None
    assert pane.measurer.known(shown[::-1]) is None
    assert session_keys(shown) == (("A", 0), ("B", 0))
    pane.store.put(close_session(pane.state, "C"))
    assert pane.measurer.known(compared_sessions(pane.state)) is not None


def test_errors_of_outputs_are_computed_unasked_and_end_with_the_comparison(
    make_window, qtbot, monkeypatch
) -> None:
    monkeypatch.setattr(OutputErrorRuns, "start", start_errors)
    workers: list[Scripted] = []
    monkeypatch.setattr(
        "inspector.jobs.run.Worker", lambda *_arguments: workers.append(Scripted()) or workers[-1]
    )
    window: MainWindow = make_window()
    pane = compare_pane(window, *NAMES[:2])
    qtbot.waitUntil(lambda: pane.errors.follower.running, timeout=10_000)
    assert workers[0].request["kind"] == "evaluate"
    assert "error being computed" in pane.headline.text()
    window.store.put(close_session(window.store.state, "B"))
    qtbot.waitUntil(lambda: not pane.errors.follower.running, timeout=10_000)
    monkeypatch.setattr("inspector.jobs.run.Worker", Here)
    open_recorded(window, NAMES[1])
    window.store.update(compared=("A", "C"))
    qtbot.waitUntil(lambda: "equal within rounding" in pane.headline.text(), timeout=20_000)


@pytest.mark.parametrize(
    ("source", "trusted"),
    [
        (Source("/far/model.etrecord", "float"), True),  # kept in the record that was quantized
        (Source("/far/model.pt2"), True),
        (Source("/far/model.yaml", "model.use_kv_cache=true"), True),
        (Source("/far/model.py", "build"), False),
    ],
    ids=str,
)
def test_only_code_of_python_files_has_to_be_trusted(source: Source, trusted: bool) -> None:
    assert untrusted_source(source) == ("" if trusted else "/far/model.py:build")
    assert untrusted_source(None) == ""


def test_errors_that_are_being_computed_are_never_called_not_computed(
    make_window, qtbot, monkeypatch
) -> None:
    said: list[str] = []
    put = compare._put
    monkeypatch.setattr(compare, "_put", lambda label, text: (said.append(text), put(label, text)))
    monkeypatch.setattr(OutputErrorRuns, "start", start_errors)
    monkeypatch.setattr("inspector.jobs.run.Worker", Here)
    pane = compare_pane(make_window(), *NAMES[:2])
    qtbot.waitUntil(lambda: "equal within rounding" in pane.headline.text(), timeout=20_000)
    assert any("error being computed" in text for text in said)
    assert [text for text in said if "error not computed" in text] == []


def test_errors_whose_computation_was_cancelled_are_not_being_computed(
    make_window, qtbot, monkeypatch
) -> None:
    monkeypatch.setattr(OutputErrorRuns, "start", start_errors)
    monkeypatch.setattr("inspector.jobs.run.Worker", lambda *_arguments: Scripted())
    pane = compare_pane(make_window(), *NAMES[:2])
    qtbot.waitUntil(lambda: "error being computed" in pane.headline.text(), timeout=10_000)
    pane.errors.follower.cancel()
    qtbot.waitUntil(lambda: "error not computed" in pane.headline.text(), timeout=10_000)


def test_latency_is_being_measured_until_it_is(make_window, qtbot, monkeypatch) -> None:
    monkeypatch.setattr("inspector.jobs.run.Worker", lambda *_arguments: Scripted())
    pane = compare_pane(make_window(), *NAMES)
    qtbot.waitUntil(lambda: "latency not measured" in pane.headline.text(), timeout=10_000)
    pane.measure()
    assert "latency being measured" in pane.headline.text()
    pane.store.update(compared=("A", "B", "C"))  # these are not measured
    qtbot.waitUntil(lambda: "B, C against A" in pane.headline.text(), timeout=10_000)
    assert "measured" not in pane.headline.text()
    pane.measurer.follower.cancel()
    pane.store.update(compared=("A", "B"))
    qtbot.waitUntil(lambda: "latency not measured" in pane.headline.text(), timeout=10_000)


def test_another_pair_or_list_begins_at_its_first_row(make_window, qtbot) -> None:
    window = make_window()
    pane = compare_pane(window, "tinygpt_portable", "tinygpt_xnnpack")
    qtbot.waitUntil(lambda: pane.details.rows.length > 20, timeout=30_000)
    bar = pane.details.findChild(QTableView).verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    bar.setValue(bar.maximum())
    window.store.update(compared=("B", "A"))
    qtbot.waitUntil(lambda: pane._content.letters == ("B", "A"), timeout=30_000)
    assert bar.value() == 0


def test_time_of_a_variant_is_the_one_that_compare_shows() -> None:
    blocks = ([(1.0,), (1.1,), (2.0,)], [(1.2,), (3.3,), (2.2,)])
    job = RunJob("model.pte")
    measured = Measurement(tuple(ProgramTimes(job, tuple(one)) for one in blocks))
    verdict = judge(*blocks)
    shown = [typical_ms(measured, number) for number in range(2)]
    assert shown == [verdict.old, verdict.new]
    assert shown[1] != measured.programs[1].fastest_ms  # which is of no pairs
