"""The Calls view: a sequence with its plots and tables, a call shown in the Timeline, a text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from compiler import to_edge_transform_and_lower
from devtools_app.shell.window import MainWindow
from devtools_app.viewmodels.call_series import call_content
from devtools_app.views.calls import CallsPane
from devtools_app.views.memory import MemoryPane
from devtools_app.views.timeline import TimelinePane
from devtools_app.widgets.call_plot import CallDots
from inspector.files.load import load_session
from inspector.tables.selection import AUTOMATIC, SelectionKind
from tests.app.test_access import nameless
from tests.app.test_generate_view import REPORT
from tests.app.window_views import host_of, open_sample
from tests.inspector.cli_runs import run
from tests.inspector.test_sequence_methods import ORDER, part_folder, run_of

pytestmark = [pytest.mark.gui, pytest.mark.slow]
CALLS = 210  # more than the chooser of the Timeline lists
SOURCE = f"""
import torch

def chunks():
    for number in range({CALLS}):
        yield (torch.full((3,), float(number)),)
"""


class Sum(torch.nn.Module):
    """Adds up what it is given, and keeps the last."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = self.last * 2
        self.total.add_(x)
        self.last.copy_(x)
        return self.total + before


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program and the run of a sequence of it."""
    home = tmp_path_factory.mktemp("sum")
    exported = torch.export.export(Sum(), (torch.ones(3),))
    (home / "model.pte").write_bytes(to_edge_transform_and_lower(exported).to_executorch().buffer)
    (home / "data.py").write_text(SOURCE)
    words = ("--sequence", f"{home / 'data.py'}:chunks", "-o", str(home / "run"))
    found = run("run", str(home / "model.pte"), *words)
    assert found.code == 0, found.err
    return home


def shown(window: MainWindow, qtbot: QtBot, *paths: Path) -> CallsPane:
    open_sample(window, qtbot, tuple(map(str, paths)))
    window.show_view("calls")
    qtbot.waitUntil(lambda: isinstance(host_of(window, "calls").view, CallsPane))
    found = host_of(window, "calls").view
    assert isinstance(found, CallsPane)
    qtbot.waitUntil(lambda: not found.working)
    return found


@pytest.fixture
def pane(make_window: Any, qtbot: QtBot, folder: Path) -> CallsPane:
    window = make_window()
    window.resize(1280, 800)
    found = shown(window, qtbot, folder / "model.pte", folder / "run" / "run.etdp")
    qtbot.waitUntil(lambda: found.calls.rows.length == CALLS)
    return found


def timeline(pane: CallsPane, qtbot: QtBot) -> TimelinePane:
    window = pane.window()
    assert isinstance(window, MainWindow)
    window.show_view("timeline")
    qtbot.waitUntil(lambda: isinstance(host_of(window, "timeline").view, TimelinePane))
    found = host_of(window, "timeline").view
    assert isinstance(found, TimelinePane)
    qtbot.waitUntil(lambda: not found.working)
    return found


def click(qtbot: QtBot, plot: CallDots, place: int) -> None:
    qtbot.waitUntil(lambda: plot.chart is not None and not plot.waiting)
    x, y = (float(one[place]) for one in plot.places())
    QTest.mouseClick(plot, Qt.MouseButton.LeftButton, pos=plot.pixel_of(x, y).toPoint())


def test_a_click_on_a_call_shows_its_run_in_the_timeline(pane: CallsPane, qtbot: QtBot) -> None:
    assert not pane.show_button.isEnabled()
    click(qtbot, pane.plot, 204)  # the first call is no later one
    assert pane.calls.current_key() == 205
    selection = pane.state.selection
    assert selection.kind is SelectionKind.EVENT
    assert pane.bytes.current == 205
    assert nameless(pane) == []
    QTest.mouseClick(pane.show_button, Qt.MouseButton.LeftButton)
    assert pane.state.view == "timeline"
    other = timeline(pane, qtbot)
    qtbot.waitUntil(lambda: other.runs.currentText() == "call 205")
    assert other.canvas.marks.selected

    # keys of the plot walk from call to call, and Return goes there
    window = pane.window()
    assert isinstance(window, MainWindow)
    window.show_view("calls")
    pane.plot.setFocus()
    QTest.keyClick(pane.plot, Qt.Key.Key_Left)
    assert pane.calls.current_key() == 204
    QTest.keyClick(pane.plot, Qt.Key.Key_Return)
    assert pane.state.view == "timeline"
    qtbot.waitUntil(lambda: other.runs.currentText() == "call 204")


def test_a_run_that_the_user_chose_stays_until_another_event_is_selected(
    pane: CallsPane, qtbot: QtBot
) -> None:
    click(qtbot, pane.bytes, 30)
    other = timeline(pane, qtbot)
    qtbot.waitUntil(lambda: other.runs.currentText() == "call 30")
    other.canvas.setFocus()
    QTest.keyClick(other.canvas, Qt.Key.Key_BracketRight)
    qtbot.waitUntil(lambda: other.runs.currentText() == "call 31" and not other.working)
    pane.store.update(overlay="bytes")
    qtbot.wait(50)
    assert other.runs.currentText() == "call 31"
    QTest.keyClick(other.canvas, Qt.Key.Key_J)
    window = pane.window()
    assert isinstance(window, MainWindow)
    window.show_view("calls")
    qtbot.waitUntil(lambda: pane.calls.current_key() == 31)


def test_times_growth_and_state_of_each_tensor_are_shown(pane: CallsPane, qtbot: QtBot) -> None:
    names = [pane.times.rows.text(row, 0) for row in range(pane.times.rows.length)]
    assert names[:3] == ["load", "first call", "later calls"]
    assert names[-1] == "growth per call"
    assert "growth" in pane.plot.title.text()
    assert "later calls" in pane.plot.title.text()
    assert pane.plot.hover_text(0).startswith("position 1: ")
    assert pane.tensor.itemData(0) == "all"
    assert pane.tensor.count() == 3
    assert pane.bytes.hover_text(5) == "call 5: 24 B in use, 24 B changed"
    assert pane.bytes.note.text() == "24 B of 24 B in the end"
    pane.tensor.setCurrentIndex(2)
    pane.tensor.activated.emit(2)
    assert pane.bytes.note.text() == "12 B of 12 B in the end"
    pane.rows_of.setCurrentIndex(1)
    pane.rows_of.activated.emit(1)
    assert pane.state_changes.isVisible()
    assert pane.state_changes.rows.length == 2 * CALLS
    key = pane.state_changes.rows.key(9)
    pane.state_changes.row_chosen.emit(9)
    assert pane.calls.current_key() == key[0]


def test_memory_shows_the_state_over_the_calls_as_the_table_of_the_command_line(
    pane: CallsPane, qtbot: QtBot, folder: Path
) -> None:
    window = pane.window()
    assert isinstance(window, MainWindow)
    window.show_view("memory")
    qtbot.waitUntil(lambda: isinstance(host_of(window, "memory").view, MemoryPane))
    memory = host_of(window, "memory").view
    assert isinstance(memory, MemoryPane)
    qtbot.waitUntil(lambda: not memory.working and memory.scope.findText("state over calls") > 0)
    assert not memory.calls.isVisible()
    place = memory.scope.findText("state over calls")
    memory.scope.setCurrentIndex(place)
    memory.scope.activated.emit(place)
    qtbot.waitUntil(lambda: memory.table.rows.length == CALLS and memory.calls.isVisible())
    assert not memory.curve.isVisible()
    click(qtbot, memory.calls, 7)
    assert memory.table.current_key() == 7
    assert nameless(memory) == []
    files = (str(folder / "model.pte"), str(folder / "run"))
    lines = run("table", "memory-calls", *files, "--format", "tsv").out.splitlines()
    assert len(lines) == CALLS + 1
    assert lines[8].split("\t")[:3] == ["7", "24", "1"]
    assert lines[0].split("\t")[:3] == ["call", "state in use (B)", "of state"]

    # what one call did to the state is in sight
    window.show_view("calls")
    pane.rows_of.setCurrentIndex(1)
    pane.rows_of.activated.emit(1)
    click(qtbot, pane.bytes, 205)
    assert pane.state_changes.current_key() == (205, "v0")
    assert "[:]" in [pane.state_changes.rows.text(410, at) for at in range(9)]


def test_calls_of_a_text_need_no_trace(
    make_window: Any, qtbot: QtBot, folder: Path, tmp_path: Path
) -> None:
    shutil.copyfile(folder / "model.pte", tmp_path / "model.pte")
    report = tmp_path / "generation.json"
    report.write_text(json.dumps(REPORT))
    window = make_window()
    pane = shown(window, qtbot, tmp_path / "model.pte")
    qtbot.waitUntil(lambda: pane.calls.rows.length == 3)
    assert pane.note.text() == "3 calls · 3 new tokens · without a trace"
    assert not pane.bytes.isVisible()
    assert "later tokens" in pane.plot.title.text()
    click(qtbot, pane.plot, 1)
    assert pane.calls.current_key() == 2
    assert not pane.show_button.isEnabled()

    report.write_text('{"prefill_ms": 3}')
    pane.forget()
    pane.show_state(pane.state)
    qtbot.waitUntil(lambda: not pane.working)
    assert pane.empty.isVisible()


def test_reports_are_opened_and_others_are_refused_in_words(
    make_window: Any, qtbot: QtBot, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    window = make_window()
    pane = shown(window, qtbot, folder / "model.pte")
    assert pane.empty.isVisible()
    chosen = [str(folder / "run" / "run.json")]
    monkeypatch.setattr(pane.context.paths, "open_file", lambda *_words: chosen[0])
    QTest.mouseClick(pane.empty.action, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: pane.calls.rows.length == CALLS)
    for number, text in enumerate(('{"calls": 3}', "[]", '{"calls": [{}]}', "{", "3")):
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        session = load_session([folder / "model.pte"])
        found = call_content(session, str(path), AUTOMATIC)
        assert found is not None
        assert found.error, text


def test_a_call_of_several_methods_is_shown_in_the_timeline_of_its_own(
    make_window: Any, qtbot: QtBot, tmp_path: Path
) -> None:
    program = part_folder(tmp_path / "parts", shares=True, names=True)
    files = (program / "model.pte", run_of(program) / "run.etdp")
    content = call_content(load_session(list(map(str, files))), "", AUTOMATIC)
    assert content is not None
    assert [one.method for one in content.events] == list(ORDER)
    window = make_window()
    pane = shown(window, qtbot, *files)
    qtbot.waitUntil(lambda: pane.calls.rows.length == len(ORDER))
    for place in (1, 3):  # of later calls: calls 2 and 4 are of two methods
        click(qtbot, pane.plot, place)
        call = pane.calls.current_key()
        assert pane.state.selection.method == ORDER[call]
        QTest.mouseClick(pane.show_button, Qt.MouseButton.LeftButton)
        other = timeline(pane, qtbot)
        named = f"call {call}"
        qtbot.waitUntil(lambda named=named, other=other: other.runs.currentText() == named)
        window.show_view("calls")
