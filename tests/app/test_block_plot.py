"""The plot of measured blocks: a lane for each session, the same figures as the table beside it."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPointF

from devtools_app.appearance.look import ThemeMode
from devtools_app.appearance.theme import Theme
from devtools_app.jobs.follower import JobFollower, JobProgress
from devtools_app.views.compare import ComparePane
from devtools_app.widgets.block_plot import BlockLane, BlockPlot
from devtools_app.widgets.plot import NOTHING
from inspector.compare.sessions import compare_sessions
from inspector.files.load import load_session
from inspector.jobs.executing import MeasureJob, RunJob
from inspector.jobs.measure import Measurement, ProgramTimes
from inspector.tables.compare import summary_table
from inspector.tables.compare_lists import BLOCKS, detail_table
from inspector.units import MISSING
from tests.app.compare_panes import CORPUS, compare_pane

PLACE = "Compare, the list of measured blocks"
FAST = ((1.2, 1.0), (1.1, 1.3), (), (1.05, 1.06))  # ms; the third block failed
SLOW = ((2.2, 2.0), (2.1, 2.3), (2.2, 2.4), (2.05, 2.06))


def measurement() -> Measurement:
    return Measurement(tuple(ProgramTimes(RunJob("model.pte"), one) for one in (SLOW, FAST)))


@pytest.fixture
def pane(make_window, monkeypatch) -> ComparePane:
    def start(self: JobFollower, job: MeasureJob, *, about: object, **_options: object) -> str:
        self.ended.emit(JobProgress(job, about, state=measurement()))
        return ""

    monkeypatch.setattr(JobFollower, "start", start)
    return compare_pane(make_window(), "convnet_portable", "convnet_xnnpack")


def test_list_of_blocks_has_the_fastest_run_of_each_and_none_of_a_failed_one() -> None:
    sessions = [load_session([CORPUS / name]) for name in ("convnet_portable", "convnet_xnnpack")]
    found = compare_sessions(sessions, measurement())
    assert found.blocks == ((2.0, 1.0), (2.1, 1.1), (2.2, None), (2.05, 1.05))
    table = detail_table(found, BLOCKS, ("A", "B"))
    rows = [[table.text(row, column) for column in range(4)] for row in range(table.length)]
    assert rows[0] == ["1", "2.000", "1.000", "−1.000"]
    assert rows[2] == ["3", "2.200", MISSING, MISSING]
    assert compare_sessions(sessions).blocks == ()


def test_what_differs_is_in_the_order_of_the_headline() -> None:
    sessions = [load_session([CORPUS / name]) for name in ("convnet_portable", "convnet_xnnpack")]
    table = summary_table(compare_sessions(sessions, measurement()), ("A", "B"))
    last = len(table.columns) - 1
    seen = list(dict.fromkeys(table.text(row, last) for row in range(table.length)))
    assert seen[:4] == ["time", "size", "memory", "work"]


@pytest.mark.slow
def test_plot_is_hidden_until_the_programs_are_measured_together(pane: ComparePane, qtbot) -> None:
    qtbot.waitUntil(lambda: pane._content is not None)
    assert pane.blocks.isHidden()
    pane.measure()
    pane.show_state(pane.state)
    qtbot.waitUntil(lambda: not pane.blocks.isHidden())
    said = "4 blocks, fastest run of each, A 2.0"
    assert pane.blocks.accessibleDescription().startswith(said)


def test_lines_of_the_lanes_are_the_times_of_the_table(pane: ComparePane, qtbot) -> None:
    pane.measure()
    pane.show_state(pane.state)
    qtbot.waitUntil(lambda: not pane.blocks.isHidden())
    content = pane._content
    assert content is not None
    table = summary_table(content.comparison, content.letters)
    shown = pane.blocks.accessibleDescription()
    assert table.text(0, 0) == "latency, measured here"
    assert shown.endswith(f"A {table.text(0, 1)}, B {table.text(0, 2)}. As a table: {PLACE}")


def test_a_dot_names_its_block(theme: Theme, qtbot) -> None:
    plot = BlockPlot(theme)
    qtbot.addWidget(plot)
    plot.resize(400, 120)
    times = [np.array([2.0e6, 2.1e6]), np.array([1.0e6, np.nan, 1.1e6])]
    plot.show_lanes((BlockLane("A", times[0], 2.0e6), BlockLane("B", times[1], None)))
    qtbot.waitUntil(lambda: not plot.waiting)
    at = plot.pixel_of(1.1e6, float(plot._heights(1)[2]))
    assert plot.hover_text(plot.pick(at)) == "B, block 3: 1.1 ms"
    assert plot.pick(QPointF(-100.0, -100.0)) == NOTHING
    plot.show_lanes((BlockLane("A", np.array([np.nan]), None),))
    assert plot.isHidden()


@pytest.mark.slow
def test_dots_of_variants_follow_the_palette(pane: ComparePane, qtbot) -> None:
    entries = pane.tree.entries
    assert entries
    dark = pane.theme.mode is ThemeMode.DARK
    pane.theme.set_mode(ThemeMode.LIGHT if dark else ThemeMode.DARK)
    qtbot.waitUntil(lambda: not pane.theme.busy)
    assert [one.tone for one in pane.tree.entries] != [one.tone for one in entries]
