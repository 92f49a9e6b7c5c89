"""Jobs and the window: what is said of them, and what those that were given up leave behind."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QLabel

from devtools_app.appearance.look import ThemeMode
from devtools_app.appearance.theme import Theme
from devtools_app.jobs.recompile import Phase, RecompileJob
from devtools_app.jobs.recompiling import Recompiling
from devtools_app.shell.job_line import JobLine
from devtools_app.shell.status_bar import StatusLine
from devtools_app.state.run_form import RunForm, Runnable
from devtools_app.widgets.card_page import CardPage
from devtools_app.widgets.cell_delegate import NameDelegate
from devtools_app.widgets.gap_plots import DifferencePlot, GrowthPlot
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.text_label import breakable
from inspector.files.load import session_name
from inspector.jobs.table import JOBS, JobKind
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source
from inspector.tables.table import Table, text_column
from tests.app.fake_jobs import FakeRun

pytestmark = pytest.mark.gui

ROOT = Path(__file__).parents[2]
BUSY = (Phase.COMPILE, Phase.RUN)


@pytest.fixture
def theme(qapp) -> Theme:
    return Theme(qapp, ThemeMode.LIGHT)


# ---- a recompile that is given up
@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("others", [False, True])
def test_round_that_a_newer_one_replaces_leaves_no_folder(
    tmp_path: Path, qapp, phase: Phase, others: bool
) -> None:
    place = tmp_path / "model_variants"
    folder = place / "model_2"
    (folder / "run").mkdir(parents=True)
    (folder / "model.pte").write_bytes(b"made")
    if others:
        (place / "model_1").mkdir()
    recompiling = Recompiling(lambda: pytest.fail("nothing is asked"))
    job = CompileJob(Source("net.py", "build"))
    recompiling._current = RecompileJob(0, job, str(folder), RunForm(), Runnable("A", ""), phase)
    recompiling.give_up()
    assert folder.exists() == (phase not in BUSY)
    assert place.exists() == (others or phase not in BUSY)
    assert not recompiling.busy
    assert tmp_path.exists()


def test_program_of_a_former_round_that_opens_during_a_compile_ends_no_step(qapp) -> None:
    class Server:
        runner = SimpleNamespace(start=lambda: None, take=lambda: None)

        def start_compile(self, job: CompileJob, _folder: Path, *, stages: bool) -> FakeRun:
            assert stages
            return FakeRun(job)

    recompiling = Recompiling(Server)
    job = CompileJob(Source("net.py", "build"))
    recompiling.start(RecompileJob(0, job, "made", RunForm(), Runnable("A", "")))
    recompiling.answer()
    assert recompiling.current is not None
    assert recompiling.current.phase is Phase.COMPILE
    recompiling.shut_down()


# ---- what the status bar says
class Jobs(QObject):
    """Jobs that run when they are told to."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.at_work: list[str] = []

    def labels(self) -> tuple[str, ...]:
        return tuple(self.at_work)

    def run(self, *labels: str) -> None:
        self.at_work = list(labels)
        self.changed.emit()


def test_all_jobs_at_work_are_named_once_and_told_when_they_change(qapp) -> None:
    said: list[str] = []
    jobs = Jobs()
    line = JobLine(said.append, jobs)
    jobs.run("running")
    jobs.changed.emit()  # it got further: nothing new
    jobs.run("running", "measuring")
    jobs.run("running", "measuring", "running")
    line.opening("opening a.pte")
    jobs.run("measuring", "running")
    line.opening("")
    jobs.at_work = ["measuring"]  # one was released, which it does not report by itself
    line.look()
    jobs.run()
    assert said == [
        "running",
        "running, measuring",
        "opening a.pte, running, measuring",
        "opening a.pte, measuring, running",
        "measuring, running",
        "measuring",
        "",
    ]


@pytest.mark.parametrize("kind", JOBS, ids=lambda kind: kind.name)
def test_every_job_of_the_table_is_complete(kind: JobKind) -> None:
    assert kind.label
    for name in filter(None, (kind.request, kind.supervisor, kind.result)):
        module, _, member = name.partition(":")
        assert isinstance(getattr(import_module(module), member), type), name
    path = ROOT / f"{kind.entry.partition(':')[0].replace('.', '/')}.py"
    assert f"def {kind.entry.partition(':')[2]}(" in path.read_text("utf-8")


def test_sentence_takes_the_place_of_the_numbers_whatever_shows_itself(qtbot, theme) -> None:
    line = StatusLine(theme)
    qtbot.addWidget(line)
    line.show()
    assert line.message == ""
    assert line._time.isVisible()
    line.show_message("done")
    for part in (line.busy, line.recompile):
        part.setVisible(True)
        QApplication.processEvents()
        assert line.message == "done"
        assert not line._time.isVisible()
    line._quiet.timeout.emit()
    assert line.message == ""
    assert line._time.isVisible()


# ---- words that fit
@pytest.mark.parametrize("mono", [True, False])
@pytest.mark.parametrize("place", [0, 1])
def test_texts_are_cut_by_what_they_are(qtbot, theme, mono: bool, place: int) -> None:
    other = text_column("other", ["x"], mono=not mono)
    mine = text_column("mine", ["aten_convolution_default_12"], mono=mono)
    table = TableView(theme, "names")
    qtbot.addWidget(table)
    table.show_table(Table((mine, other) if place == 0 else (other, mine), 1, keys=[0]))
    assert isinstance(table._grid.itemDelegateForColumn(place), NameDelegate)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("aten.convolution.default", ["aten.", "convolution.", "default"]),
        ("peak 9.188 MiB", ["peak 9.188 MiB"]),
        ("_native_batch", ["_", "native_", "batch"]),
        ("the hash 4145d380c49e8e5d6cb4", ["the hash 4145d380", "c49e8e5d6cb4"]),
    ],
)
def test_long_names_go_on_in_the_next_line_and_numbers_do_not(text: str, pieces: list[str]) -> None:
    assert breakable(text).split("\u200b") == pieces


def test_plots_of_the_gap_leave_room_for_their_words(qtbot, theme) -> None:
    import numpy as np

    plot = GrowthPlot(theme, 1e-12)
    qtbot.addWidget(plot)
    plot.resize(400, plot.minimumHeight())
    plot.show()
    without = plot.grab().toImage()
    plot.show_errors(np.array([1.0, 4.0]), np.array([1.0, 2.0]), frozenset({1}))
    qtbot.waitUntil(lambda: plot.chart is not None)
    with_words = plot.grab().toImage()
    assert plot.chart.geometry().top() >= plot.note.geometry().bottom() > 10
    strip = [with_words.pixel(x, 12) for x in range(400)]
    assert strip != [without.pixel(x, 12) for x in range(400)]
    look = DifferencePlot(theme)
    qtbot.addWidget(look)
    look.resize(look.minimumSize())
    look.show()
    look.show_differences(np.array([1, 2, 1]), 0.5, np.zeros((2, 2)))
    assert not look.grab().isNull()


@pytest.mark.parametrize("heights", [(900, 100), (100, 900), (400, 400)])
def test_page_is_as_high_as_cards_that_grow_while_it_is_shown(qtbot, heights) -> None:
    page = CardPage("cards")
    qtbot.addWidget(page)
    page.resize(800, 300)
    page.show()
    for height in heights:
        page.clear()
        card = QLabel("card")
        page.add_left(card)
        page.end()
        card.setMinimumHeight(height)
        qtbot.waitUntil(lambda height=height: page.widget().height() >= height, timeout=20_000)


# ---- points of sweeps
@pytest.mark.parametrize(
    ("content", "name"),
    [
        (json.dumps({"number": 6, "key": "abc"}), "grid point 6"),
        ("{", "abc"),
        ("[]", "abc"),
        ('{"number": "x"}', "abc"),
        ('{"number": null}', "abc"),
        ("[" * 20_000, "abc"),
        (None, "abc"),
    ],
)
def test_point_of_a_sweep_is_called_by_its_number(
    tmp_path: Path, content: str | None, name: str
) -> None:
    folder = tmp_path / "grid" / "points" / "abc"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / "point.json").write_text(content)
    assert session_name([str(folder / "model.pte")]) == name
    assert session_name([str(folder / "other.pte")]) == "other"
