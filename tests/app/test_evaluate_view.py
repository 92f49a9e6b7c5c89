"""The Evaluate view: its fields, the job, figures, and a sample that opens in the numeric gap."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from devtools_app.state.requests import Execute, ShowView
from devtools_app.views.evaluate import EvaluatePane
from devtools_app.widgets.error_histogram import error_counts
from inspector.compare.alignment import origin
from inspector.experiments.evaluate.report import evaluation_report
from inspector.graph.model_graph import model_graph
from inspector.jobs.eval_samples import read_evaluation
from inspector.jobs.executing import RunJob
from inspector.jobs.messages import Counted
from inspector.tables.evaluate import RangeKey, ranges_table
from tests.app.window_views import open_sample
from tests.inspector.jobs_here import Here, Scripted
from tests.inspector.sessions import DATA

pytestmark = [pytest.mark.gui, pytest.mark.slow]
_SOURCE = DATA / "runs" / "convnet_xnnpack"


@pytest.fixture
def pane(make_window: Any, qtbot: QtBot, tmp_path: Path) -> EvaluatePane:
    folder = tmp_path / "net"
    folder.mkdir()
    for name in ("model.pte", "model.etrecord"):
        shutil.copyfile(_SOURCE / name, folder / name)
    window = make_window()
    open_sample(window, qtbot, (str(folder),))
    window.show_view("evaluate")
    found: EvaluatePane = window.findChild(EvaluatePane)
    return found


def _message(pane: EvaluatePane) -> str:
    return pane.empty._text.text()


def test_programs_are_evaluated_and_a_sample_opens_in_the_gap(
    pane: EvaluatePane, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.jobs.run.Worker", Here)
    folder = tmp_path / "set"
    folder.mkdir()
    for number in range(3):
        image = np.full((1, 3, 32, 32), number / 3, np.float32)
        np.save(folder / f"{number}.npy", image)
    pane.data.setText(str(folder))
    pane.evaluate()
    qtbot.waitUntil(lambda: pane.figures.rows.length == 2, timeout=20_000)
    assert pane.summary.text().startswith("3 samples · compared with the exported program of net")
    assert (tmp_path / "net/model_eval/samples.jsonl").is_file()
    assert pane.histogram.content is not None
    bar = int(pane.histogram.content.counts.argmax())
    assert "with a largest error of" in pane.histogram.hover_text(bar)
    requests: list[object] = []
    monkeypatch.setattr(pane, "_ask", requests.append)
    pane.worst.show_current(pane.worst.rows.key(0))
    pane.open_sample()
    view, run = requests
    assert view == ShowView("gap")
    assert isinstance(run, Execute)
    assert isinstance(run.job, RunJob)
    assert run.job.inputs.startswith(f"{folder}#")
    assert run.job.debug_level == "intermediate"


def test_wrong_fields_are_one_sentence(pane: EvaluatePane, tmp_path: Path) -> None:
    for data, samples, words in (
        ("", "", "nothing': expected FILE.py:NAME"),
        ("random", "", "Random has no end: set a number of samples"),
        (str(tmp_path / "none.py") + ":batches", "", "not found"),
        ("random", "many", "expected a number of samples"),
    ):
        pane.data.setText(data)
        pane.samples.setText(samples)
        pane.evaluate()
        assert words in _message(pane), data


def test_progress_is_shown_and_cancelled(
    pane: EvaluatePane, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Scripted([Counted(2, 5)])
    monkeypatch.setattr("inspector.jobs.run.Worker", lambda *_args, **_more: worker)
    pane.data.setText("random")
    pane.samples.setText("5")
    pane.evaluate()
    qtbot.waitUntil(lambda: "2 of 5 samples" in _message(pane), timeout=5_000)
    pane.runner.cancel()
    qtbot.waitUntil(lambda: "Cancelled" in _message(pane), timeout=5_000)


def test_ranges_of_quantized_values_are_listed_and_a_row_opens_its_node(
    make_window: Any, qtbot: QtBot, tmp_path: Path
) -> None:
    folder = tmp_path / "int8"
    shutil.copytree(DATA / "corpus/special/xnnpack_int8_static", folder)
    window = make_window()
    open_sample(window, qtbot, (str(folder),))
    window.show_view("evaluate")
    pane: EvaluatePane = window.findChild(EvaluatePane)
    pane.data.setText("random")
    pane.samples.setText("3")
    pane.evaluate()
    qtbot.waitUntil(lambda: pane.figures.rows.length > 0, timeout=60_000)
    assert pane.panel is pane.worst
    assert not pane.ranges.rows.length
    pane.lists.setCurrentIndex(1)
    pane.lists.activated.emit(1)
    assert pane.panel is pane.ranges
    assert pane._below.currentWidget() is pane.ranges
    assert not pane.histogram.isVisible()
    assert not pane._open.isVisible()
    pane.evaluate()
    qtbot.waitUntil(lambda: pane.ranges.rows.length > 0, timeout=60_000)
    assert pane.panel is pane.ranges
    report = evaluation_report(read_evaluation(folder / "model_eval"))
    assert pane.ranges.rows.length == len(report.variants[0].ranges)
    titles = [column.title for column in pane.ranges.rows.columns]
    assert titles == [column.title for column in ranges_table(report).columns]
    graph = model_graph(window.store.state.session, "forward")
    assert graph is not None
    for row in range(pane.ranges.rows.length):
        pane.ranges.row_activated.emit(row)
        assert window.store.state.view == "graph"
        selection = window.store.state.selection
        assert selection.node in graph.by_name
        key, node = pane.ranges.rows.key(row), graph.nodes[graph.by_name[selection.node]]
        assert isinstance(key, RangeKey)
        assert {node.name, origin(node)} & {key.made_by, key.node}


_WAITING = """
import time
from pathlib import Path
import torch

def images():
    for number in range(5):
        while number == 3 and not Path(__file__).with_name("open").exists():
            time.sleep(0.01)
        yield torch.full((1, 3, 32, 32), number / 5)
"""


@pytest.mark.usefixtures("real_workers")
@pytest.mark.parametrize("killed", [False, True], ids=["cancelled", "killed"])
def test_evaluation_that_was_ended_keeps_its_samples_and_goes_on(
    pane: EvaluatePane, qtbot: QtBot, tmp_path: Path, killed: bool
) -> None:
    data = tmp_path / "data.py"
    data.write_text(_WAITING, "utf-8")
    pane.data.setText(f"{data}:images")
    pane.evaluate()
    qtbot.waitUntil(
        lambda: "3 of 5" in _message(pane) or "3 samples" in _message(pane), timeout=100_000
    )
    if killed:
        os.kill(pane.runner.pid, signal.SIGKILL)
    else:
        pane._cancel.click()
    qtbot.waitUntil(lambda: pane.summary.text().startswith("3 samples"), timeout=20_000)
    why = "the process was killed (SIGKILL)" if killed else "cancelled in stage evaluate"
    assert why in pane.summary.text()
    data.with_name("open").touch()
    pane._start.click()
    qtbot.waitUntil(lambda: pane.summary.text().startswith("5 samples"), timeout=100_000)
    assert why not in pane.summary.text()
    lines = (tmp_path / "net/model_eval/samples.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["index"] for line in lines] == list(range(5))


def test_histogram_counts_errors_by_decade() -> None:
    assert error_counts([0.0, 0.0]) is None
    found = error_counts([0.0, 1e-6, 2e-6, 1e-3])
    assert found is not None
    assert (found.low, found.high, found.exact, int(found.counts.sum())) == (-6.0, -3.0, 1, 3)
