"""The loop on the real window: why, change, Ctrl+R, compare, undo; and the same from a shell."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu, QPushButton

from devtools_app.jobs.measuring import Measurements
from devtools_app.jobs.recompile import Phase
from devtools_app.shell.window import MainWindow
from devtools_app.state.run_form import RunForm
from devtools_app.state.trusted_code import agree
from devtools_app.views.compare import ComparePane
from devtools_app.views.editing import EditMenu
from devtools_app.views.graph import GraphPane
from devtools_app.views.node import NodePane
from devtools_app.views.recipe import RecipeView
from devtools_app.widgets.graph_canvas import GraphCanvas
from inspector.files.digest import sha256_of
from inspector.jobs import run as jobs
from inspector.jobs.messages import Ended
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import CompileJob, Rules, code_files
from inspector.recipes.recipe import RECIPE, Recipe
from inspector.recipes.source import Source
from tests.inspector.jobs_here import Here

pytestmark = [pytest.mark.gui, pytest.mark.slow]

DATA = Path(__file__).parents[1] / "data"
SOURCE = Path(__file__).with_name("loop_source.py")
CONV = "aten.convolution.default"
NODE = "aten_convolution_default"
PATIENCE = 240_000  # ms; a worker loads torch first, on a machine that does other things as well


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A program whose convolution a rule keeps off the delegate, with its source beside it."""
    source = tmp_path / "net.py"
    shutil.copy(SOURCE, source)
    rules = Rules(deny_ops=(CONV,))
    job = CompileJob(Source(str(source), "build"), partitioners=("xnnpack",), rules=rules)
    run = JobRun(job, tmp_path / "net")
    outcome = run.wait(PATIENCE / 1000)
    run.close()
    assert outcome is not None
    assert outcome.ended is Ended.FINISHED, outcome
    return tmp_path / "net"


@pytest.fixture
def window(make_window) -> MainWindow:
    found = make_window()
    found.resize(1280, 800)
    return found


def open_files(window: MainWindow, qtbot, *paths: Path, agreed: bool = True) -> None:
    """Open files; the code that their recipe names may be run unless a test is about that."""
    window.controller.open(tuple(map(str, paths)))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=PATIENCE)
    qtbot.waitUntil(lambda: not window.controller.opener.busy, timeout=PATIENCE)
    one = window.recipe_store.variant
    agree(code_files(one.draft.present) if agreed and one is not None else ())


def in_front(window: MainWindow, kind: type):
    """Return the view of a kind that is shown."""
    found = [host.view for host in window.hosts if isinstance(host.view, kind)]
    assert len(found) == 1
    assert found[0].isVisible()
    return found[0]


def click(window: MainWindow, qtbot, node: str) -> None:
    """Click a node in the picture of the graph."""
    window.show_view("graph")
    pane = in_front(window, GraphPane)
    qtbot.waitUntil(lambda: pane.canvas.placed is not None and not pane.working, timeout=PATIENCE)
    pane.boxes.open_all()
    qtbot.waitUntil(lambda: not pane.working, timeout=PATIENCE)
    qtbot.mouseClick(pane.canvas, Qt.MouseButton.LeftButton, pos=middle(pane.canvas, node))


def middle(canvas: GraphCanvas, node: str) -> QPoint:
    """Return where the middle of a node is in the widget, brought into sight first."""
    placed = canvas.placed
    assert placed is not None
    item = placed.scene.index[node]
    canvas.show_item(item)
    x, y, width, height = placed.boxes[item].tolist()
    return QPointF(*canvas.camera.to_screen(x + width / 2, y + height / 2)).toPoint()


def words(pane: NodePane) -> str:
    return pane.facts.sheet.as_text()


def point_at(menu: QMenu, name: str, kind: str) -> tuple[EditMenu, QAction]:
    """Point at an edit of a menu; return the edits and that one."""
    edits = menu.findChildren(EditMenu)[0]
    found = edits.action_of(name, kind)
    found.hover()
    return edits, found


def open_menu() -> QMenu:
    """Return the menu that is open."""
    tops = QApplication.topLevelWidgets()
    return next(one for one in tops if isinstance(one, QMenu) and one.isVisible())


@pytest.mark.qt_log_ignore("This plugin does not support")  # menus without a screen
def test_story_from_a_verdict_to_a_compared_variant_and_back(window, qtbot, base) -> None:
    open_files(window, qtbot, base / "model.pte", base / "model.etrecord")
    click(window, qtbot, NODE)
    read_and_change(window, qtbot)
    qtbot.keyClick(window, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    variant = recompiled(window, qtbot)
    compared(window, qtbot)
    same_from_a_shell(window, base, variant)
    qtbot.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert window.store.state.current == "A"
    assert not window.recipe_store.variant.changed
    window.bound["redo"].trigger()
    assert window.store.state.current == "B"


def read_and_change(window: MainWindow, qtbot) -> None:
    """Read the verdict on the node and change what it says; nothing is compiled for that."""
    assert window.store.state.selection.node == NODE
    window.show_view("node")
    node = in_front(window, NodePane)
    qtbot.waitUntil(lambda: "Vetoed by the user" in words(node), timeout=PATIENCE)
    window.bound["change"].trigger()
    menu = open_menu()
    edits, chosen = point_at(menu, "let-in", "operator")
    qtbot.waitUntil(lambda: not window.jobs.previews.busy, timeout=PATIENCE)
    assert "XnnpackBackend gains" in edits.effect.text()
    chosen.trigger()
    menu.close()
    assert window.recipe_store.job.rules == Rules()
    window.show_view("recipe")
    recipe = in_front(window, RecipeView)
    assert recipe.changes == f"deny operators − {CONV}"
    assert "gains" in recipe.effect


def recompiled(window: MainWindow, qtbot) -> Path:
    """Wait for the variant that Ctrl+R makes; return its folder."""
    assert window.jobs.recompiling.busy
    qtbot.waitUntil(lambda: not window.jobs.recompiling.busy, timeout=PATIENCE)
    found = window.jobs.recompiling.current
    assert found is not None
    assert found.phase is Phase.DONE, found.outcome
    assert found.outcome is None, found.outcome
    qtbot.waitUntil(lambda: not window.controller.opener.busy, timeout=PATIENCE)
    return Path(found.folder)


def compared(window: MainWindow, qtbot) -> None:
    """Check what the comparison says and that a row leads to the place it speaks of."""
    assert len(window.store.state.sessions) == 2
    assert window.store.state.view == "compare"
    pane = in_front(window, ComparePane)
    qtbot.waitUntil(lambda: not window.jobs["measure"].running, timeout=PATIENCE)
    measuring = window.jobs["measure"].current
    assert measuring is not None
    assert measuring.state is not None, measuring.outcome
    qtbot.waitUntil(lambda: "bootstrap" in pane.about.text(), timeout=PATIENCE)
    assert pane.headline.text()
    rows = pane.summary.rows
    assert any("latency, measured here" in map(str, one.values) for one in rows.columns)
    assert [entry.title for entry in pane.tree.entries] == [
        "as opened · xnnpack",
        f"deny operators − {CONV}",
    ]
    named = (list(one.values) for one in pane.details.rows.columns)
    nodes = next(values for values in named if NODE in values)
    assert nodes.count(NODE) == 1
    pane.details.row_activated.emit(nodes.index(NODE))
    assert window.store.state.view == "graph"
    assert window.store.state.selection.node == NODE
    assert window.store.state.current == "B"


def same_from_a_shell(window: MainWindow, base: Path, variant: Path) -> None:
    """Make the variant by the options that say the same as what the clicks have left."""
    source = base.parent / "net.py"
    shell(base.parent, f"{source}:build", "--partitioner", "xnnpack", "-o", "options")
    for file in (RECIPE, "model.pte"):
        made = (base.parent / "options" / file).read_bytes()
        assert made == (variant / file).read_bytes(), file
    window.bound["copy_command"].trigger()
    assert str(variant / RECIPE) in QGuiApplication.clipboard().text()


def shell(folder: Path, *arguments: str) -> None:
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-m", "devtools_app", "compile", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=PATIENCE / 1000,
    )
    assert done.returncode == 0, done.stderr


# -- a record as the source; two wishes; faults ------------------------------------------------


@pytest.fixture
def here(monkeypatch) -> None:
    """Let runs be done in this process, and no measurement follow; compiles are real."""
    monkeypatch.setattr(jobs, "Worker", Here)
    monkeypatch.setattr(Measurements, "measure", lambda *_: False)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A program of the stock compiler with its record, which holds no recipe."""
    folder = tmp_path / "stock"
    folder.mkdir()
    for name in ("model.pte", "model.etrecord"):
        shutil.copy(DATA / "corpus/v1.5.1/mm_portable" / name, folder)
    return folder


def edit(window: MainWindow, **changes: object) -> None:
    job = window.recipe_store.job
    assert job is not None
    window.recipe_store.edit(replace(job, **changes))


def press(window: MainWindow) -> None:
    window.bound["recompile"].trigger()


def test_record_alone_is_a_source_and_the_newest_wish_wins(window, qtbot, record, here) -> None:
    open_files(window, qtbot, record / "model.pte", record / "model.etrecord")
    window.show_view("recipe")
    view = in_front(window, RecipeView)
    assert view.unknown.startswith("No recipe in it")
    notices: list[str] = []
    window.controller.noticed.connect(lambda notice: notices.append(notice.text))

    # a failing recipe: one sentence, the former variant stays
    edit(window, partitioners=("nobody-knows",))
    press(window)
    qtbot.waitUntil(lambda: not window.jobs.recompiling.busy, timeout=PATIENCE)
    assert window.jobs.recompiling.current.phase is Phase.FAILED
    assert window.strip.text.startswith("Not recompiled: ")
    assert "nobody-knows" in window.strip.text
    assert "\n" not in window.strip.text
    assert [one.id for one in window.store.state.sessions] == ["A"]
    assert window.store.state.history.variants[-1].failure
    window.show_view("compare")
    assert in_front(window, ComparePane).about.text().startswith("No other variant")
    assert window.recipe_store.variant.draft.present.partitioners == ("nobody-knows",)

    # two wishes: the newer one is what opens
    edit(window, partitioners=("xnnpack",))
    press(window)
    first = window.jobs.recompiling.current
    edit(window, partitioners=("xnnpack",), memory_planner="naive")
    press(window)
    assert window.jobs.recompiling.current is not first
    folder = recompiled(window, qtbot)
    assert [one.id for one in window.store.state.sessions] == ["A", "B"]
    assert window.recipe_store.variant.recipe.job.memory_planner == "naive"
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]
    assert folder.parent.name == "model_variants"
    assert (folder / "run" / "run.etdp").is_file()
    pane = in_front(window, ComparePane)
    qtbot.waitUntil(lambda: not pane.working, timeout=PATIENCE)
    assert notices == []


@pytest.mark.usefixtures("real_workers")
def test_pt2_source_survives_a_killed_worker_and_a_run_that_fails(
    window, qtbot, record, tmp_path, here
) -> None:
    (record / "model.etrecord").unlink()
    exported = torch.export.export(torch.nn.Linear(2, 2).eval(), (torch.ones(1, 2),))
    torch.export.save(exported, record / "net.pt2")
    job = CompileJob(Source(str(record / "net.pt2")))
    (record / RECIPE).write_text(Recipe(job).text)
    open_files(window, qtbot, record / "model.pte")
    window.jobs.run_form = RunForm(inputs="file", file=str(tmp_path / "nothing.pt"))

    # the worker is killed: one sentence, and the next wish gets another worker
    edit(window, partitioners=("xnnpack",))
    press(window)
    worker = window.jobs.previews.server._worker
    os.kill(worker.pid, signal.SIGKILL)
    qtbot.waitUntil(lambda: not window.jobs.recompiling.busy, timeout=PATIENCE)
    assert window.jobs.recompiling.current.phase is Phase.FAILED
    assert "SIGKILL" in window.strip.text
    assert [one.id for one in window.store.state.sessions] == ["A"]

    # the program is made but does not run: it opens without times, and the reason is said
    press(window)
    qtbot.waitUntil(lambda: not window.jobs.recompiling.busy, timeout=PATIENCE)
    found = window.jobs.recompiling.current
    assert found.phase is Phase.DONE, found.outcome
    assert found.outcome is not None
    qtbot.waitUntil(lambda: "did not run" in window.strip.text, timeout=PATIENCE)
    assert "nothing.pt" in window.strip.text
    assert len(window.store.state.sessions) == 2
    one = window.recipe_store.variant
    assert one.session == "B"
    assert one.failure.startswith("not run: ")
    assert window.store.state.session.dumps == ()

    # a closed variant opens again from its place in the tree
    window.controller.close("B")
    assert window.store.state.history.find(one.id).session == ""
    window.show_view("compare")
    assert [each.id for each in window.store.state.sessions] == ["A"]
    window.controller.open(one.files)
    qtbot.waitUntil(lambda: len(window.store.state.sessions) == 2, timeout=PATIENCE)
    assert window.recipe_store.variant.id == one.id


def test_a_variant_that_is_ready_leaves_a_user_alone_who_went_elsewhere(
    window, qtbot, record, here
) -> None:
    open_files(window, qtbot, record / "model.pte", record / "model.etrecord")
    edit(window, partitioners=("xnnpack",))
    window.show_view("graph")
    press(window)
    window.show_view("memory")
    store = window.store
    qtbot.waitUntil(lambda: len(store.state.sessions) == 2, timeout=PATIENCE)
    qtbot.waitUntil(lambda: "is ready" in window.strip.text, timeout=PATIENCE)
    assert store.state.unseen == {"B"}
    first, second = (one.id for one in store.state.sessions)
    assert (store.state.current, store.state.view) == (first, "memory")
    compare = next(one for one in window.strip.findChildren(QPushButton) if one.text() == "Compare")
    compare.click()
    assert (store.state.current, store.state.view) == (second, "compare")
    assert store.state.compared == (first, second)


def test_window_closed_while_a_variant_runs_leaves_it_in_the_history(
    window, make_window, qtbot, record
) -> None:
    files = record / "model.pte", record / "model.etrecord"
    open_files(window, qtbot, *files)
    edit(window, partitioners=("xnnpack",))
    window.jobs.run_form = RunForm(runs=1_000_000)  # longer than it takes to close

    def close_when_it_runs() -> None:
        one = window.jobs.recompiling.current
        if one is not None and one.phase is Phase.RUN:
            window.close()

    window.jobs.recompiling.changed.connect(close_when_it_runs)
    press(window)
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=PATIENCE)
    folder = record / "model_variants" / "stock_1"
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".json") == [
        "model.etrecord",
        "model.pte",
    ]
    assert [path.name for path in folder.parent.iterdir()] == ["stock_1"]
    again = make_window()
    open_files(again, qtbot, *files)
    again.show_view("compare")
    pane = in_front(again, ComparePane)
    assert [entry.title for entry in pane.tree.entries] == [
        "as opened · portable",
        "partitioners + xnnpack",
    ]
    assert pane.tree.isVisible()
    assert pane.about.text().startswith("Other variants of this program are closed")
    assert not pane.summary.isVisible()
    pane.tree.opened.emit(1)
    qtbot.waitUntil(lambda: len(again.store.state.sessions) == 2, timeout=PATIENCE)
    qtbot.waitUntil(lambda: not pane.working, timeout=PATIENCE)
    assert pane.summary.isVisible()
    assert again.recipe_store.variant.parent == 0


def test_program_without_a_recipe_says_what_would_tell_one(window, qtbot, record) -> None:
    open_files(window, qtbot, record / "model.pte")
    window.show_view("recipe")
    assert window.recipe_store.variant is None
    press(window)
    assert window.strip.text.startswith("The recipe of this program is unknown")
    assert not window.jobs.recompiling.busy


@pytest.mark.parametrize("named", ["source", "same source", "library"])
def test_code_that_nobody_agreed_to_is_asked_about_first(window, qtbot, record, named) -> None:
    source = record / "other.py"
    shutil.copy(SOURCE, source)
    job = CompileJob(Source(str(source), "build"))
    if named == "library":
        job = CompileJob(Source(str(record / "model.etrecord")), libraries=(str(source),))
    else:
        (record / "model.etrecord").unlink()
    # A recipe that knows its source well is no reason to run it: both came with the files.
    digest = sha256_of(str(source)) if named == "same source" else ""
    (record / RECIPE).write_text(Recipe(job, digest).text)
    open_files(window, qtbot, record / "model.pte", agreed=False)
    edit(window, partitioners=("xnnpack",))
    changed = window.recipe_store.job
    assert "A preview would run" in window.jobs.previews.effect(changed, job)
    assert not window.jobs.previews.busy
    press(window)
    assert not window.jobs.recompiling.busy
    assert str(source) in window.strip.text
    offers = [one for one in window.strip.findChildren(QPushButton) if one.text() == "Run it"]
    assert len(offers) == 1
    safe = next(one for one in window.strip.findChildren(QPushButton) if one.hasFocus())
    assert safe.text() == "Do not run"
