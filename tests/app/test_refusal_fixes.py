"""What a refused partition offers: changes of the recipe, one click each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from devtools_app.shell.window import MainWindow
from devtools_app.viewmodels.refusal_fixes import fixes_of
from devtools_app.views.recipe import RecipeView
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.recipes.compile_job import CompileJob, Rules
from inspector.recipes.source import Source
from schema import etrecord
from schema.etrecord import encode, replace_member
from schema.etrecord.parts.guard import MEMBER, Refusal, encode_refusals

DATA = Path(__file__).parents[1] / "data" / "corpus" / "v1.5.1" / "convnet_xnnpack"
JOB = CompileJob(Source("net.py", "build"), partitioners=("xnnpack",))


def refusal(node: str, exported: str = "") -> Refusal:
    return Refusal(
        "forward",
        0,
        "XnnpackBackend",
        "the real kernels",
        "initialisation",
        "no",
        node=node,
        exported=exported,
        operator="aten.add.Tensor",
    )


def session_with(folder: Path, *found: Refusal) -> Session:
    """Return a session whose record holds refusals."""
    record = etrecord.decode((DATA / "model.etrecord").read_bytes())
    changed = replace_member(record, MEMBER, encode_refusals(found) if found else None)
    (folder / "model.etrecord").write_bytes(encode(changed))
    shutil.copy(DATA / "model.pte", folder / "model.pte")
    return load_session([str(folder / "model.pte"), str(folder / "model.etrecord")])


def test_each_refused_node_can_be_kept_out_and_all_of_them(tmp_path: Path) -> None:
    session = session_with(tmp_path, refusal("aten_add", "add"), refusal("aten_mul", "mul"))
    every, first, second = fixes_of(session, JOB)
    assert every.job.rules.deny_nodes == ("add", "mul")
    assert first.job.rules.deny_nodes == ("add",)
    assert second.job.rules.deny_nodes == ("mul",)
    assert "add (aten.add.Tensor)" in first.text
    assert "all 2 refused nodes" in every.text


def test_what_is_kept_out_already_is_not_offered(tmp_path: Path) -> None:
    session = session_with(tmp_path, refusal("aten_add", "add"), refusal("aten_mul"))
    job = CompileJob(JOB.source, partitioners=JOB.partitioners, rules=Rules(deny_nodes=("add",)))
    (left,) = fixes_of(session, job)
    assert left.job.rules.deny_nodes == ("add", "aten_mul")


@pytest.mark.parametrize("found", [(), (refusal(""),)])
def test_nothing_is_offered_where_no_node_is_known(
    tmp_path: Path, found: tuple[Refusal, ...]
) -> None:
    assert fixes_of(session_with(tmp_path, *found), JOB) == ()
    assert fixes_of(None, JOB) == ()


@pytest.mark.gui
@pytest.mark.slow
def test_one_click_in_the_recipe_panel_keeps_a_refused_node_out(
    make_window, qtbot, tmp_path: Path
) -> None:
    session_with(tmp_path, refusal("aten_add", "add"))
    window: MainWindow = make_window()
    window.controller.open((str(tmp_path / "model.pte"), str(tmp_path / "model.etrecord")))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=60_000)
    window.show_view("recipe")
    qtbot.waitUntil(lambda: window.findChild(RecipeView) is not None, timeout=60_000)
    pane = window.findChild(RecipeView)
    assert isinstance(pane, RecipeView)
    listed = pane.suggestions.model()
    qtbot.waitUntil(lambda: listed.rowCount() == 1, timeout=60_000)
    pane.suggestions.opened.emit(0)
    qtbot.waitUntil(lambda: window.recipe_store.variant.changed, timeout=60_000)
    assert window.recipe_store.variant.draft.present.rules.deny_nodes == ("add",)
    qtbot.waitUntil(lambda: listed.rowCount() == 0, timeout=60_000)
