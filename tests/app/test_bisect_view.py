"""The bisection in the window: what is wanted, the trials as they come, the nodes, one click."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar

import pytest
from PySide6.QtWidgets import QPushButton

from devtools_app.shell.window import MainWindow
from devtools_app.views.bisect import BisectView
from inspector.experiments.bisect.bound import LOADS, parse_bound
from inspector.jobs import run as job_runs
from inspector.jobs.bisect_trials import CandidateNode, Trial
from inspector.jobs.messages import Ended, Found, Message, Outcome, StageProgress, Tried, Trying
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.recipe import RECIPE, Recipe
from inspector.recipes.source import Source
from inspector.tables.bisect import OFFERED_REQUIREMENTS, OTHER, bound_text
from inspector.tables.selection import SelectionKind
from tests.app.window_views import host_of
from tests.inspector.jobs_here import Scripted

pytestmark = [pytest.mark.gui, pytest.mark.slow]

DATA = Path(__file__).parents[1] / "data/corpus/v1.5.1/convnet_xnnpack"
PATIENCE = 20_000  # ms
CONV = CandidateNode(
    "forward", "conv2d", "aten.convolution.default", "ConvolutionConfig", "Xnnpack"
)
NODES = (
    CONV,
    CandidateNode("forward", "relu", "aten.relu.default", "ReLUConfig", "Xnnpack"),
    CandidateNode("forward", "nowhere", "aten.add.Tensor"),
)
BEFORE = Trial((), 0.5, False, "", 0.2)
BARE = Trial(((0, 3),), 0.0, True, "", 0.1)
AFTER = Trial(((0, 1),), 1e-7, True, "", 0.1)


class Script(Scripted):
    """A worker that says what a test has it say."""

    made: ClassVar[list[Script]] = []

    def __init__(self, _kind: str) -> None:
        super().__init__()
        Script.made.append(self)


@pytest.fixture
def window(make_window, monkeypatch) -> MainWindow:
    monkeypatch.setattr(job_runs, "Worker", Script)
    monkeypatch.setattr(Script, "made", [])
    found = make_window()
    found.resize(1280, 800)
    return found


@pytest.fixture
def view(window, qtbot, tmp_path) -> BisectView:
    """The panel beside an open program whose recipe has a partitioner."""
    for name in ("model.pte", "model.etrecord"):
        shutil.copy(DATA / name, tmp_path)
    job = CompileJob(Source(str(tmp_path / "net.pt2")), partitioners=("xnnpack",))
    (tmp_path / RECIPE).write_text(Recipe(job).text)
    window.controller.open((str(tmp_path / "model.pte"), str(tmp_path / "model.etrecord")))
    qtbot.waitUntil(lambda: window.recipe_store.variant is not None, timeout=PATIENCE)
    return panel(window)


def panel(window: MainWindow) -> BisectView:
    window.show_view("bisect")
    found = host_of(window, "bisect").view
    assert isinstance(found, BisectView)
    return found


def button(view: BisectView, text: str) -> QPushButton:
    (found,) = (one for one in view.findChildren(QPushButton) if one.text() == text)
    return found


def buttons(view: BisectView) -> set[str]:
    return {one.text() for one in view.findChildren(QPushButton) if one.isVisible() and one.text()}


def end(qtbot, view: BisectView, outcome: Outcome) -> None:
    Script.made[-1].outcome = outcome
    qtbot.waitUntil(lambda: not view.bisecting.running, timeout=PATIENCE)


def trials_of(view: BisectView) -> int:
    found = view.bisecting.current
    return 0 if found is None else len(found.state.trials)


def say(qtbot, view: BisectView, *said: Message) -> None:
    Script.made[-1].said.extend(said)
    trials = sum(isinstance(one, Tried) for one in said)
    before = trials_of(view)
    qtbot.waitUntil(
        lambda: not Script.made[-1].said and trials_of(view) == before + trials,
        timeout=PATIENCE,
    )


def finding(result: str, *nodes: CandidateNode, after: Trial = AFTER) -> Outcome:
    found = {
        "result": result,
        "nodes": [asdict(one) for one in nodes],
        "before": asdict(BEFORE),
        "after": asdict(after),
        "candidates": len(NODES),
    }
    return Outcome(Ended.FINISHED, result=found)


def texts(view: BisectView, column: int) -> list[str]:
    rows = view.trials.rows
    return [rows.text(row, column) for row in range(rows.length)]


def test_search_is_followed_and_its_nodes_are_one_click(window, qtbot, view) -> None:
    assert buttons(view) == {"Find nodes"}
    view.start()
    assert Script.made[-1].request["job"]["bound"] == "output.max_abs<=1e-3"
    assert buttons(view) == {"Cancel"}
    assert not view.value.isEnabled()
    nodes = tuple(asdict(one) for one in NODES)
    say(qtbot, view, StageProgress("lower"), Found(nodes), Trying(()))
    assert texts(view, 1) == ["nothing"]
    assert texts(view, 2) == ["trying"]
    say(qtbot, view, Tried(BEFORE), Tried(BARE), Trying(((1, 3),)))
    assert texts(view, 1) == ["nothing", "everything", "2 of 3"]
    assert texts(view, 2) == ["does not hold", "holds", "trying"]
    assert view.trials.rows.columns[3].title == "output.max_abs"
    assert texts(view, 3)[0] == "0.5"
    end(qtbot, view, finding("found", CONV))
    assert view.sentence.text().startswith("1 node has to be taken out of the delegate: conv2d")
    assert buttons(view) == {"Start over", "Keep these off"}

    view.keep_off()
    assert window.recipe_store.job.rules.deny_nodes == ("conv2d",)
    assert not button(view, "Keep these off").isEnabled()
    window.recipe_store.undo()
    assert window.recipe_store.job.rules.deny_nodes == ()
    assert button(view, "Keep these off").isEnabled()


def test_node_that_is_found_leads_to_its_place(window, qtbot, view) -> None:
    view.start()
    end(qtbot, view, finding("found", CONV, NODES[2]))
    qtbot.waitUntil(lambda: view.nodes.rows.key(0) is not None, timeout=PATIENCE)
    assert view.nodes.rows.key(1) is None  # this program has no such node
    view.nodes.row_activated.emit(0)
    chosen = window.store.state.selection
    assert chosen.kind is SelectionKind.NODE
    assert "conv" in chosen.node
    assert window.store.state.view == "graph"


def test_cancelled_search_goes_on_where_it_was(qtbot, view) -> None:
    view.start()
    say(qtbot, view, Found(NODES), Tried(BEFORE))
    button(view, "Cancel").click()
    qtbot.waitUntil(lambda: not view.bisecting.running, timeout=PATIENCE)
    assert buttons(view) >= {"Go on", "Start over"}
    view.start()
    assert len(Script.made[-1].request["options"]["trials"]) == 1
    assert texts(view, 1) == ["nothing"]
    end(qtbot, view, Outcome(Ended.CANCELLED, "cancelled"))
    view.start(fresh=True)
    assert Script.made[-1].request["options"]["trials"] == []


def test_other_wish_is_another_search(qtbot, view) -> None:
    view.start()
    end(qtbot, view, Outcome(Ended.CANCELLED, "cancelled"))
    view.value.setText("1e-5")
    view.value.textEdited.emit("1e-5")
    assert "Find nodes" in buttons(view)
    view.start()
    assert Script.made[-1].request["job"]["bound"] == "output.max_abs<=1e-5"


@pytest.mark.parametrize("result", ["nothing to do", "not due to delegation"])
def test_search_without_nodes_offers_none(qtbot, view, result) -> None:
    view.start()
    end(qtbot, view, finding(result, after=BEFORE))
    assert view.sentence.text()
    assert "Keep these off" not in buttons(view)


def test_crash_and_full_disk_are_a_sentence(qtbot, view, monkeypatch) -> None:
    view.start()
    end(qtbot, view, Outcome(Ended.CRASHED, "the process was killed (SIGKILL)"))
    assert "SIGKILL" in view.error
    view.start()

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    Script.made[-1].said.append(Tried(BEFORE))
    qtbot.waitUntil(lambda: not view.bisecting.running, timeout=PATIENCE)
    assert "No space left on device" in view.error
    assert buttons(view) >= {"Go on"}


@pytest.mark.parametrize("text", ["", "many", "-", "1e-3 MiB"])
def test_bound_that_is_none_is_said_and_not_started(view, text) -> None:
    view.value.setText(text)
    view.value.textEdited.emit(text)
    assert view.problem
    assert not button(view, "Find nodes").isEnabled()
    view.start()
    assert Script.made == []


def test_search_goes_on_without_its_session(window, qtbot, view) -> None:
    view.start()
    window.controller.close(window.store.state.current)
    assert view.bisecting.running
    end(qtbot, view, finding("found", CONV))
    view.show_state(window.store.state)
    assert "Keep these off" not in buttons(view)


def test_panel_says_what_it_needs(window) -> None:
    view = panel(window)
    view.show_state(window.store.state)
    assert view.problem == ""
    assert not {"Find nodes", "Go on", "Start over", "Cancel"} & buttons(view)


def test_every_wish_is_a_bound() -> None:
    for one in OFFERED_REQUIREMENTS:
        found = parse_bound(bound_text(one.metric, one.value))
        assert (found.metric == one.metric) or one.metric == OTHER
    assert bound_text(LOADS, "whatever") == LOADS
