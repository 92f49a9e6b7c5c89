"""The memory view lists an NPU's memories where the record has Vela's estimates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from devtools_app.views.memory import MemoryPane

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).resolve().parents[1] / "data" / "backends"


def test_memories_of_the_npu_are_listed_as_an_estimate(qtbot: QtBot, make_window: Any) -> None:
    window = make_window()
    program = FOLDER / "ethosu_m1_int8.pte"
    window.controller.open((str(program), str(program.with_suffix(".etrecord"))))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.show_view("memory")
    pane = window.findChild(MemoryPane)
    assert isinstance(pane, MemoryPane)
    qtbot.waitUntil(lambda: not pane.working and pane.table.rows.length > 0, timeout=20_000)
    place = pane.scope.findText("NPU (estimate)")
    assert place >= 0
    pane.scope.setCurrentIndex(place)
    pane.scope.activated.emit(place)
    qtbot.waitUntil(lambda: pane.table.rows.length == 4, timeout=20_000)
    assert "estimate" in [pane.table.rows.text(0, column) for column in range(10)]


def test_another_program_offers_no_estimate(qtbot: QtBot, make_window: Any) -> None:
    window = make_window()
    window.controller.open((str(FOLDER / "tosa_m1.pte"),))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.show_view("memory")
    pane = window.findChild(MemoryPane)
    assert isinstance(pane, MemoryPane)
    qtbot.waitUntil(lambda: not pane.working and pane.table.rows.length > 0, timeout=20_000)
    assert pane.scope.findText("NPU (estimate)") < 0
