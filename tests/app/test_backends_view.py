"""The Backends view: cards without a session, the plan of a session as a job."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from devtools_app.views.backends import BackendsPane
from inspector.jobs.backend_plan import BackendFacts, BackendOption, BackendPlan, BackendShare
from inspector.jobs.messages import Ended, Outcome
from schema.objects.codec import to_json
from schema.vendors.table import VENDORS
from tests.app.window_views import open_sample
from tests.inspector.jobs_here import Scripted
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow
SAMPLE = DATA / "corpus/v1.5.1/convnet_xnnpack"


def _shown(window: Any, qtbot: QtBot) -> BackendsPane:
    """Bring up the view and wait for its cards."""
    window.show_view("backends")
    found: BackendsPane = window.findChild(BackendsPane)
    qtbot.waitUntil(lambda: len(found.table.shown_rows()) > len(VENDORS))
    return found


def _choose_vgf(found: BackendsPane, qtbot: QtBot) -> None:
    found.table.show_current("ethos-u")
    qtbot.keyClick(found.table._grid, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: "VGF (vgf)" in found.card.text())


def test_cards_need_no_session_and_the_chosen_one_is_shown(make_window: Any, qtbot: QtBot) -> None:
    window = make_window()
    found = _shown(window, qtbot)
    _choose_vgf(found, qtbot)
    assert "release 0.10.0 of the converter" in found.card.text()
    found.plan()
    assert found.note.toolTip() == "Open a program with its ETRecord to plan it"


def test_plan_is_a_job_whose_table_is_shown(
    make_window: Any, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Scripted()
    monkeypatch.setattr("inspector.jobs.run.Worker", lambda *_args, **_more: worker)
    window = make_window()
    open_sample(window, qtbot, (str(SAMPLE),))
    found = _shown(window, qtbot)
    found.plan()
    assert worker.request["kind"] == "backend_plan"
    assert found._cancel.isVisible()
    plan = BackendPlan((BackendShare("xnnpack", "forward", 4, 3, 1, ("aten.erf: no rule",)),))
    worker.outcome = Outcome(Ended.FINISHED, result=to_json(plan))
    qtbot.waitUntil(lambda: len(found.table.shown_rows()) == 1)
    assert found.table.rows.key(0) == ("xnnpack", "forward")
    qtbot.keyClick(found.table._grid, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: "XNNPACK (xnnpack)" in found.card.text())
    assert not found._cancel.isVisible()


def test_operators_of_the_chosen_backend_are_read_by_a_job(
    make_window: Any, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Scripted()
    monkeypatch.setattr("inspector.jobs.run.Worker", lambda *_args, **_more: worker)
    window = make_window()
    found = _shown(window, qtbot)
    _choose_vgf(found, qtbot)
    assert "operators" not in found.card.text()
    qtbot.mouseClick(found._read, Qt.MouseButton.LeftButton)
    assert worker.request["kind"] == "backend_card"
    assert "operators: being read" in found.card.text()
    facts = BackendFacts((BackendOption("spec", ("INT", "FP")),), (("aten.add.Tensor", "FP"),))
    worker.outcome = Outcome(Ended.FINISHED, result=to_json(facts))
    qtbot.waitUntil(lambda: "operators: 1: aten.add.Tensor (FP)" in found.card.text())
    assert found._read.isEnabled()
    qtbot.keyClick(found.table._grid, Qt.Key.Key_Up)  # the facts are those of one backend
    qtbot.waitUntil(lambda: "Ethos-U (ethos-u)" in found.card.text())
    assert "operators" not in found.card.text()
