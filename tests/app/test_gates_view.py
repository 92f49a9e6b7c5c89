"""Gates in the window: added, judged on all sessions, saved, read, copied; the trend of some."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from devtools_app.state.requests import ShowSession, ShowView
from devtools_app.views.gates import GatesPane
from inspector.experiments.gates.gates_file import read_gates
from inspector.files.load import load_session
from tests.app.view_bench import Bench
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.gui
PORTABLE, XNNPACK = DATA / "runs/convnet_portable", DATA / "runs/convnet_xnnpack"


class Paths:
    """Answers where a person would choose."""

    def __init__(self) -> None:
        self.path = ""

    def open_file(self, *_arguments: object) -> str:
        return self.path

    def save_file(self, *_arguments: object) -> str:
        return self.path


@pytest.fixture
def bench(qtbot) -> Bench:
    made = Bench(qtbot, GatesPane)
    object.__setattr__(made.context, "paths", Paths())
    for path in (PORTABLE, XNNPACK):
        made.open(load_session([str(path)], strict=True))
    return made


def _pane(bench: Bench) -> GatesPane:
    assert isinstance(bench.pane, GatesPane)
    return bench.pane


def _rows(bench: Bench) -> list[tuple[str, ...]]:
    table = _pane(bench).table.rows
    return [tuple(table.text(row, place) for place in range(4)) for row in range(table.length)]


def _add(bench: Bench, metric: str, bound: str) -> None:
    pane = _pane(bench)
    pane.metrics.setCurrentIndex(pane.metrics.findData(metric))
    pane.metrics.activated.emit(pane.metrics.currentIndex())
    bench.qtbot.keyClicks(pane.bound, bound)
    bench.qtbot.keyClick(pane.bound, Qt.Key.Key_Return)
    bench.settle()


def test_gate_is_added_and_judged_for_every_session(bench: Bench) -> None:
    pane = _pane(bench)
    assert _rows(bench) == []
    _add(bench, "delegated", "50%")
    assert bench.store.state.gates == ("delegated>=50%",)
    assert [row[:2] for row in _rows(bench)] == [
        ("not met", "delegated>=50%"),
        ("met", "delegated>=50%"),
    ]
    assert (pane.result.text, pane.note.text()) == ("not met", "1 met · 1 not met")
    _add(bench, "gap.max_abs", "1e-3")
    assert [row[0] for row in _rows(bench)][2:] == ["unknown", "unknown"]
    pane.table.show_current(pane.table.rows.key(0))
    bench.qtbot.keyClick(pane.table._grid, Qt.Key.Key_Delete)
    bench.settle()
    assert bench.store.state.gates == ("gap.max_abs<=1e-3",)
    assert pane.result.text == "unknown"


def test_bound_that_does_not_fit_is_named(bench: Bench) -> None:
    pane = _pane(bench)
    _add(bench, "arena", "5ms")
    assert "arena is compared with bytes" in pane.problem.text()
    assert pane.problem.isVisible()
    pane.bound.clear()
    _add(bench, "arena", "5MiB")
    assert not pane.problem.isVisible()


def test_relative_gate_needs_a_baseline(bench: Bench) -> None:
    pane = _pane(bench)
    _add(bench, "size", "1x baseline")
    assert {row[0] for row in _rows(bench)} == {"unknown"}
    pane.baseline.setCurrentIndex(1)
    pane.baseline.activated.emit(1)
    bench.settle()
    assert [row[0] for row in _rows(bench)] == ["met", "not met"]
    pane.copy_command()
    words = shlex.split(QGuiApplication.clipboard().text())
    assert words[:2] == ["etscope", "gate"]
    assert words[words.index("--require") + 1] == "size<=1x baseline"
    assert str(XNNPACK / "model.pte") in words[: words.index("--require")]
    assert str(PORTABLE / "model.pte") in words[words.index("--baseline") :]


def test_gates_are_saved_and_read(bench: Bench, tmp_path: Path) -> None:
    pane, path = _pane(bench), tmp_path / "gates.txt"
    _add(bench, "arena", "5MiB")
    pane.context.paths.path = str(path)
    pane.save_gates()
    assert [one.text for one in read_gates(path)] == ["arena<=5MiB"]
    path.write_text("delegates>=1\n")
    pane.open_gates()
    bench.settle()
    assert bench.store.state.gates == ("delegates>=1",)
    path.write_text("delegates>>1\n")
    pane.open_gates()
    assert "line 1" in pane.problem.text()
    assert bench.store.state.gates == ("delegates>=1",)


def test_row_leads_to_what_it_is_of(bench: Bench) -> None:
    pane = _pane(bench)
    _add(bench, "arena", "5MiB")
    pane.table.show_current(pane.table.rows.key(0))
    bench.qtbot.keyClick(pane.table._grid, Qt.Key.Key_Return)
    assert bench.asked[-2:] == [ShowSession("A"), ShowView("memory")]


def test_history_is_shown_as_a_trend(bench: Bench, tmp_path: Path) -> None:
    pane, path = _pane(bench), tmp_path / "history.jsonl"
    entry = {"date": "2026-01-01", "program": "m", "sha256": "", "met": True}
    lines = [json.dumps({**entry, "figures": {"size": size}}) for size in (1000, 2000)]
    path.write_text("\n".join(lines))
    pane.context.paths.path = str(path)
    pane.open_history()
    bench.settle()
    assert pane.trend.isVisible()
    assert pane.trend.rows.text(0, 2) == "+100 %"
    path.write_text("{")
    pane.open_history()
    bench.settle()
    assert "line 1" in pane.problem.text()
