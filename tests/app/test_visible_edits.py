"""What the draft of a recipe changes is marked where it is: nodes, rows, the button, the tab."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTabBar

from devtools_app.jobs.recompile import Phase
from devtools_app.jobs.recompiling import Recompiling
from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import EditRecipe, UndoRecipe
from devtools_app.viewmodels.edit_targets import edit_targets, offers
from devtools_app.viewmodels.edited_nodes import edited_nodes
from devtools_app.viewmodels.recipe_form import diff_lines
from devtools_app.views.graph import GraphPane
from devtools_app.views.operators import OperatorsPane
from devtools_app.views.recipe import RecipeView
from inspector.files.load import load_session
from inspector.graph.model_graph import model_graph
from inspector.recipes.compile_job import CompileJob, Precision, Quantization, Rules
from inspector.recipes.source import Source
from inspector.tables.selection import Selection, SelectionKind

DEMO = Path(__file__).parents[2] / "devtools_app" / "sample_data" / "demo" / "keyword_spotter"
RECORD = DEMO.with_suffix(".etrecord")
JOB = CompileJob(Source("net.py", "net"), partitioners=("xnnpack",))
PATIENCE = 20_000


@pytest.fixture(scope="module")
def session():
    return load_session([DEMO / "model.pte", RECORD])


def changed(**rules: object) -> CompileJob:
    return replace(JOB, rules=Rules(**rules))


def operator_of(session, name: str) -> str:
    graph = model_graph(session, "forward")
    return graph.nodes[graph.by_name[name]].node.target


@pytest.mark.slow
def test_nodes_that_an_edit_names_are_those_it_is_about(session) -> None:
    assert edited_nodes(session, "forward", JOB, JOB) == {}
    one = replace(JOB, memory_planner="greedy")  # of the program as a whole
    assert edited_nodes(session, "forward", JOB, one) == {}
    found = edited_nodes(session, "forward", JOB, changed(deny_ops=("aten.convolution",)))
    assert found
    assert {operator_of(session, name) for name in found} == {"aten.convolution.default"}
    assert set(found.values()) == {"deny operators + aten.convolution"}
    gone = edited_nodes(session, "forward", changed(deny_ops=("aten.convolution",)), JOB)
    assert gone == dict.fromkeys(found, "deny operators − aten.convolution")
    some = next(iter(found))
    typed = replace(JOB, precision=Precision(nodes=(f"{some}=float16",)))
    assert edited_nodes(session, "forward", JOB, typed) == {
        some: f"precision of nodes + {some}=float16"
    }
    every = edited_nodes(session, "forward", JOB, changed(deny_nodes=("aten_*",)))
    assert set(found) < set(every)


@pytest.mark.slow
def test_menus_name_what_was_clicked(session) -> None:
    found = edited_nodes(session, "forward", JOB, changed(deny_ops=("aten.convolution",)))
    selection = Selection(SelectionKind.NODE, "forward", "compiled", next(iter(found)))
    node, *others = offers(JOB, edit_targets(session, "forward", selection))
    exported = node.offers[0].target.exported
    assert exported.startswith("conv")
    assert node.offers[0].label == f"Keep {exported} off XNNPACK"
    assert {f"Compute {exported} in", f"Quantize {exported}"} <= {one.family for one in node.offers}
    labels = {one.label for group in others for one in group.offers}
    assert "Keep every aten.convolution off XNNPACK" in labels
    assert not any("Quantis" in label for label in labels)


def test_diff_has_a_line_for_each_value() -> None:
    new = replace(
        changed(deny_nodes=("a", "b")), memory_planner="greedy", quantising=Quantization("static")
    )
    assert diff_lines(changed(deny_nodes=("c",)), new) == (
        "− quantize: no",
        "+ quantize: static",
        "− deny nodes: c",
        "+ deny nodes: a",
        "+ deny nodes: b",
        "− memory planner: as by default",
        "+ memory planner: greedy",
    )


@pytest.fixture
def window(make_window, qtbot) -> MainWindow:
    found = make_window()
    found.resize(1440, 900)
    found.controller.open((str(DEMO / "model.pte"), str(RECORD)))
    qtbot.waitUntil(lambda: found.store.state.session is not None, timeout=PATIENCE)
    qtbot.waitUntil(lambda: found.recipe_store.variant is not None, timeout=PATIENCE)
    return found


def view_of(window: MainWindow, kind: type):
    return next(host.view for host in window.hosts if isinstance(host.view, kind))


def tab_texts(window: MainWindow) -> set[str]:
    bars = window.findChildren(QTabBar)
    return {bar.tabText(tab) for bar in bars for tab in range(bar.count())}


@pytest.mark.gui
@pytest.mark.slow
def test_edit_is_marked_on_nodes_rows_button_and_tab_until_it_is_undone(window, qtbot) -> None:
    window.show_view("graph")
    graph = view_of(window, GraphPane)
    qtbot.waitUntil(lambda: graph.canvas.placed is not None and not graph.working, timeout=PATIENCE)
    window.show_view("operators")
    operators = view_of(window, OperatorsPane)
    qtbot.waitUntil(lambda: operators.panel.rows.length > 0, timeout=PATIENCE)
    chip, job = window.top_bar.edits, window.recipe_store.job
    assert chip.isHidden()
    assert graph.canvas.edited_items == ()
    rules = replace(job.rules, deny_ops=(*job.rules.deny_ops, "aten.convolution"))
    window.router(EditRecipe(replace(job, rules=rules)))
    qtbot.waitUntil(lambda: graph.canvas.edited_items != (), timeout=PATIENCE)
    assert (chip.text(), chip.isVisible()) == ("1 edit", True)
    assert "+ deny operators: aten.convolution" in chip.toolTip()
    assert "edited" in graph.canvas.accessibleDescription()
    model = operators.panel.model
    role = Qt.ItemDataRole.ToolTipRole

    def marked() -> list[str]:
        rows = [model.index(row, 0) for row in range(model.rowCount())]
        rows += [model.index(n, 0, top) for top in rows for n in range(model.rowCount(top))]
        return [
            str(model.data(one, role)) for one in rows if "Edited" in str(model.data(one, role))
        ]

    qtbot.waitUntil(lambda: bool(marked()), timeout=PATIENCE)
    assert all("deny operators + aten.convolution" in text for text in marked())
    qtbot.mouseClick(chip, Qt.MouseButton.LeftButton)
    assert view_of(window, RecipeView).isVisible()
    qtbot.waitUntil(lambda: "Recipe (1)" in tab_texts(window), timeout=PATIENCE)
    window.router(UndoRecipe())
    assert chip.count == 0
    qtbot.waitUntil(chip.isHidden, timeout=PATIENCE)
    assert graph.canvas.edited_items == ()
    assert marked() == []
    qtbot.waitUntil(lambda: "Recipe (1)" not in tab_texts(window), timeout=PATIENCE)


@pytest.mark.gui
def test_sentence_that_asks_for_a_recompile_ends_when_one_begins(
    window, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.show_status("one edit: press Ctrl+R to recompile")
    recompiling = window.jobs.recompiling
    recompiling.changed.emit()
    assert window.status.message  # none runs
    monkeypatch.setattr(Recompiling, "busy", True)
    monkeypatch.setattr(Recompiling, "current", SimpleNamespace(job=JOB, phase=Phase.COMPILE))
    recompiling.changed.emit()
    assert window.status.message == ""
    window.show_status("Copied the recipe")
    recompiling.changed.emit()
    assert window.status.message == "Copied the recipe"  # said while it runs
    monkeypatch.undo()
    recompiling.changed.emit()
