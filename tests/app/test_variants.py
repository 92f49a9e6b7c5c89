"""The history of variants: edits, undo and redo, the tree, what a workspace keeps of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools_app.appearance.colours import LIGHT
from devtools_app.state.leftover_variants import left_variants
from devtools_app.state.state import OpenSession, State
from devtools_app.state.variant_steps import (
    compared_sessions,
    edit_recipe,
    known_sessions,
    redo,
    shown_variant,
    undo,
    with_left,
)
from devtools_app.state.variants import (
    MOST_STEPS,
    MOST_VARIANTS,
    Draft,
    History,
    Variant,
    derived,
    joined,
    opened,
    walked,
    with_open,
    with_variant,
    without,
)
from devtools_app.state.workspace import Workspace, load_workspace, save_workspace
from devtools_app.viewmodels.variant_list import variant_entries
from inspector.files.session import LoadedFile, Session
from inspector.recipes.compile_job import CompileJob, Rules
from inspector.recipes.recipe import Recipe
from inspector.recipes.recipe_file import FoundRecipe
from inspector.recipes.source import Source

BASE = CompileJob(Source("/models/net.py", "build"), partitioners=("xnnpack",))


def job(*denied: str) -> CompileJob:
    return replace(BASE, rules=Rules(deny_nodes=denied))


def recipe(of: CompileJob) -> Recipe:
    return Recipe(of, "", {})


def history() -> History:
    return opened(History(), "A", recipe(BASE), ("/files/model.pte", "/files/model.etrecord"))


def state(found: History, *sessions: str, current: str = "") -> State:
    shown = tuple(OpenSession(one, Session(one, ()), (f"/{one}.pte",)) for one in sessions)
    return State(sessions=shown, current=current or sessions[-1], history=found)


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=12), st.integers(0, 14))
def test_draft_undone_and_redone_is_what_it_was(names: list[str], steps: int) -> None:
    draft = Draft(BASE)
    for name in names:
        draft = draft.edited(job(name))
    walked_back = draft
    for _ in range(steps):
        walked_back = walked_back.undone()
    again = walked_back
    for _ in range(steps):
        again = again.redone()
    assert again == draft
    back = walked_back
    while back.past:
        back = back.undone()
    assert back.present == BASE


def test_draft_edit_after_undo_forgets_what_was_undone() -> None:
    draft = Draft(BASE).edited(job("a")).edited(job("b")).undone().edited(job("c"))
    assert draft.present == job("c")
    assert draft.past == (BASE, job("a"))
    assert draft.future == ()
    assert draft.redone() == draft


def test_draft_keeps_a_bounded_way_back() -> None:
    draft = Draft(BASE)
    for number in range(MOST_STEPS + 50):
        draft = draft.edited(job(str(number)))
    assert len(draft.past) == MOST_STEPS


def test_variant_that_was_made_goes_on_from_the_edits_that_led_to_it() -> None:
    found = history()
    edited = replace(found[0], draft=found[0].draft.edited(job("a")).edited(job("a", "b")))
    found = derived(with_variant(found, edited), 0, recipe(job("a", "b")))
    parent, child = found.variants
    assert child.draft == Draft(job("a", "b"), (BASE, job("a")))
    assert not child.changed
    assert not parent.changed
    assert parent.draft.redone().redone().present == job("a", "b")


def test_variant_that_failed_leaves_the_edits_where_they_were() -> None:
    found = history()
    edited = replace(found[0], draft=found[0].draft.edited(job("a")))
    found = derived(with_variant(found, edited), 0, recipe(job("a")), failure="no kernel for it")
    parent, child = found.variants
    assert parent == edited
    assert (child.failure, child.files) == ("no kernel for it", ())
    assert found.like(child.program, job("a")) is None


def made(found: History, session: str, *denied: str) -> History:
    """Return a history with one more variant of the newest one, open in a session."""
    parent = found.variants[-1]
    found = derived(found, parent.id, recipe(job(*denied)))
    child = replace(found.variants[-1], session=session, files=(f"/{session}/model.pte",))
    return with_variant(found, child)


def test_undo_shows_the_variant_that_was_made_so_and_redo_goes_on() -> None:
    first = edit_recipe(state(history(), "A"), job("a"))
    found = made(first.history, "B", "a")
    shown = state(found, "A", "B")
    back = undo(shown)
    assert back.current == "A"
    assert shown_variant(back).draft.present == BASE
    again = redo(back)
    assert again.current == "B"
    assert shown_variant(again).draft.present == job("a")
    assert not shown_variant(undo(again)).changed


def test_undo_of_an_edit_that_nobody_compiled_stays_where_it_is() -> None:
    found = made(edit_recipe(state(history(), "A"), job("a")).history, "B", "a")
    edited = edit_recipe(state(found, "A", "B"), job("a", "x"))
    assert edited.current == "B"
    back = undo(edited)
    assert back.current == "B"
    assert not shown_variant(back).changed
    assert redo(back) == edited


def test_undo_where_no_recipe_is_known_does_nothing() -> None:
    alone = state(History(), "A")
    assert undo(alone) is alone
    assert redo(alone) is alone
    assert edit_recipe(alone, BASE) is alone


def test_tree_has_parents_before_children_and_depths() -> None:
    found = made(made(history(), "B", "a"), "C", "a", "b")
    found = derived(found, 0, recipe(job("z")), failure="it crashed")
    depths = [(depth, one.session) for depth, one in walked(found, str(BASE.source))]
    assert depths == [(0, "A"), (1, "B"), (2, "C"), (1, "")]
    entries = variant_entries(walked(found, str(BASE.source)), found, LIGHT)
    assert [entry.title for entry in entries] == [
        "as opened · xnnpack",
        "deny nodes + a",
        "deny nodes + b",
        "deny nodes + z",
    ]
    assert entries[-1].detail == "it crashed"
    assert entries[-1].tone == "bad"
    rest = without(found, 1)
    assert [(depth, one.session) for depth, one in walked(rest, str(BASE.source))] == [
        (0, "A"),
        (1, "C"),
        (1, ""),
    ]


def test_variant_of_a_closed_session_is_open_again_with_its_files() -> None:
    found = made(history(), "B", "a")
    closed = with_open(found, frozenset({"A"}))
    assert closed[1].session == ""
    again = opened(closed, "C", recipe(BASE), ("/B/model.pte", "/B/run/run.etdp"))
    assert [one.session for one in again.variants] == ["A", "C"]
    assert again[1].recipe.job == job("a")


def test_history_forgets_the_oldest_closed_variants_when_there_are_too_many() -> None:
    found = history()
    for number in range(MOST_VARIANTS + 10):
        found = derived(found, 0, recipe(job(str(number))), failure="no")
    assert len(found.variants) == MOST_VARIANTS
    assert found.variants[0].session == "A"
    assert found.created == MOST_VARIANTS + 11


def test_sessions_that_come_and_go_are_known(tmp_path: Path) -> None:
    def find(session: Session) -> FoundRecipe | None:
        return None if session.name == "B" else FoundRecipe(recipe(BASE), "no passes")

    shown = known_sessions(state(History(), "A", "B"), find)
    assert [one.session for one in shown.history.variants] == ["A"]
    assert shown.history[0].unknown == "no passes"
    assert known_sessions(shown, find) is shown
    fewer = known_sessions(replace(shown, sessions=shown.sessions[1:]), find)
    assert fewer.history[0].session == ""


@pytest.mark.parametrize("edited", [False, True])
def test_session_read_again_has_the_recipe_of_its_files(*, edited: bool) -> None:
    shown = state(history(), "A")
    if edited:
        shown = edit_recipe(shown, job("mine"))
    shown = replace(
        shown, history=with_variant(shown.history, replace(shown.history[0], facts=("1 ms",)))
    )
    theirs = FoundRecipe(recipe(job("theirs")))

    assert known_sessions(shown, lambda _: theirs) is shown
    assert known_sessions(shown, lambda _: FoundRecipe(recipe(BASE)), ("A",)) is shown
    again = known_sessions(shown, lambda _: theirs, ("A",)).history[0]

    assert again.recipe.job == job("theirs")
    assert again.draft.present == (job("mine") if edited else job("theirs"))
    assert again.changed is edited
    assert (again.facts, again.program) == ((), str(BASE.source))


def test_recipe_of_which_less_is_known_replaces_none() -> None:
    shown = state(history(), "A")
    less = FoundRecipe(recipe(job()), "its source is not on this machine")

    assert known_sessions(shown, lambda _: less, ("A",)) is shown
    assert known_sessions(shown, lambda _: None, ("A",)) is shown


def test_variant_compiled_of_another_source_is_another_program() -> None:
    shown = state(made(history(), "B", "a"), "A", "B")
    other = replace(BASE, source=Source("/models/other.py", "build"))

    again = known_sessions(shown, lambda _: FoundRecipe(recipe(other)), ("B",)).history

    assert [(one.program, one.parent) for one in again.variants] == [
        (str(BASE.source), None),
        (str(other.source), None),
    ]


def test_compared_sessions_are_the_chosen_ones_else_parent_and_child() -> None:
    found = made(made(history(), "B", "a"), "C", "b")
    shown = state(found, "A", "B", "C", current="C")
    assert [one.id for one in compared_sessions(shown)] == ["B", "C"]
    chosen = replace(shown, compared=("A", "C", "gone"))
    assert [one.id for one in compared_sessions(chosen)] == ["A", "C"]
    first = replace(shown, current="A")
    assert [one.id for one in compared_sessions(first)] == ["B", "A"]
    assert compared_sessions(state(History(), "A")) == ()
    strangers = state(History(), "A", "B")
    assert [one.id for one in compared_sessions(strangers)] == ["A", "B"]


def test_workspace_keeps_the_history_with_its_drafts(tmp_path: Path) -> None:
    found = made(edit_recipe(state(history(), "A"), job("a")).history, "B", "a")
    edited = edit_recipe(state(found, "A", "B"), job("a", "x")).history
    failed = derived(edited, 1, recipe(job("q")), failure="no kernel")
    path = tmp_path / "work.etscope"
    save_workspace(path, Workspace(sessions=(("A", ("/a.pte",)),), history=failed))
    assert load_workspace(path).history == failed


def test_recipes_of_a_workspace_move_with_it(tmp_path: Path) -> None:
    """Another folder or machine: what lies below the workspace is named relative to it."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()

    def job(folder: Path, *names: str) -> CompileJob:
        source = Source(str(folder / "net.py"), "build")
        own = tuple(f"{folder / 'rules.py'}:{name}" for name in names)
        return CompileJob(source, libraries=("/opt/ops.so",), partitioners=("xnnpack", *own))

    draft = Draft(job(here, "A"), (job(here),), (job(here, "B"),))
    one = Variant(0, "net", Recipe(job(here)), draft, files=(str(here / "m.pte"),))
    workspace = Workspace(history=History((one,), 1))
    save_workspace(here / "w.etscope", workspace)
    assert str(here) not in (here / "w.etscope").read_text("utf-8")
    assert load_workspace(here / "w.etscope").history.variants[0].draft == draft
    here.rename(there)
    (found,) = load_workspace(there / "w.etscope").history.variants
    assert found.recipe.job == job(there)
    assert found.draft == Draft(job(there, "A"), (job(there),), (job(there, "B"),))
    assert found.files == (str(there / "m.pte"),)


@pytest.mark.parametrize(
    "change",
    [
        {"variants": 7},
        {"variants": [7, None, {}]},
        {"variants": [{"id": -1}]},
        {"variants": [{"id": 0, "recipe": {"recipe": 99}}]},
    ],
)
def test_workspace_with_an_odd_history_opens_without_it(change: dict, tmp_path: Path) -> None:
    path = tmp_path / "work.etscope"
    save_workspace(path, Workspace(sessions=(("A", ("/a.pte",)),), history=history()))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    found = load_workspace(path)
    assert found.history == History()
    assert found.sessions


def test_workspace_with_an_odd_draft_keeps_the_variant(tmp_path: Path) -> None:
    path = tmp_path / "work.etscope"
    save_workspace(path, Workspace(sessions=(("A", ("/a.pte",)),), history=history()))
    content = json.loads(path.read_text())
    content["variants"][0]["next"] = {"rules": 7}
    content["variants"][0]["parent"] = 12
    path.write_text(json.dumps(content))
    assert load_workspace(path).history == history()


def test_joined_histories_keep_their_trees_under_new_names() -> None:
    here, there = made(history(), "B", "a"), made(history(), "B", "b")
    both = joined(here, there, {"A": "C", "B": "D"})
    assert [(one.id, one.parent, one.session) for one in both.variants] == [
        (0, None, "A"),
        (1, 0, "B"),
        (2, None, "C"),
        (3, 2, "D"),
    ]
    assert both.created == 4
    closed = joined(here, there, {})
    assert [one.session for one in closed.variants] == ["A", "B", "", ""]


def made_variant(folder: Path, *denied: str, files: tuple[str, ...] = ("model.pte",)) -> None:
    folder.mkdir(parents=True)
    for name in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"")
    (folder / "recipe.json").write_text(recipe(job(*denied)).text, "utf-8")


def test_variants_that_lie_beside_a_program_are_in_its_history_closed(tmp_path: Path) -> None:
    place = tmp_path / "model_variants"
    every = ("run/run.debug", "run/run.etdp", "model.ptd", "model.pte", "model.etrecord")
    made_variant(place / "model_10", "ten", files=every)
    made_variant(place / "model_2", "two")
    made_variant(place / "model_4", "at work")
    made_variant(place / ".etscope-abc", "not there yet")
    made_variant(place / "model_5", "no program", files=("model.etrecord",))
    made_variant(place / "model_6", "damaged")
    (place / "model_6" / "recipe.json").write_text("{", "utf-8")
    found = left_variants(str(tmp_path / "model.pte"), str(place / "model_4"))
    assert [one.recipe.job.rules.deny_nodes for one in found] == [("two",), ("ten",)]
    assert found[1].files == tuple(
        str(place / "model_10" / name)
        for name in ("model.pte", "model.etrecord", "model.ptd", "run/run.etdp", "run/run.debug")
    )
    shown = state(opened(History(), "A", recipe(BASE), (str(tmp_path / "model.pte"),)), "A")
    shown = with_left(shown, ("A",), left_variants)
    assert [(one.parent, one.session) for one in shown.history.variants[1:]] == [(0, "")] * 3
    assert with_left(shown, ("A",), left_variants) is shown
    rows = list(walked(shown.history, str(BASE.source)))
    titles = [entry.title for entry in variant_entries(rows, shown.history, LIGHT)]
    assert titles[1:] == ["deny nodes + two", "deny nodes + at work", "deny nodes + ten"]


def test_variants_beside_one_of_them_are_made_of_no_one_that_is_known(tmp_path: Path) -> None:
    place = tmp_path / "model_variants"
    made_variant(place / "model_1", "one")
    made_variant(place / "model_2", "two")
    files = (str(place / "model_1" / "model.pte"),)
    shown = state(opened(History(), "A", recipe(job("one")), files), "A")
    shown = with_left(shown, ("A",), left_variants)
    assert [(one.parent, one.session) for one in shown.history.variants] == [
        (None, "A"),
        (None, ""),
    ]


def test_variant_is_known_by_its_files_where_its_recipe_cannot_be_read() -> None:
    made = derived(history(), 0, recipe(job("a")))
    made = with_variant(made, replace(made[1], files=("/B/model.pte",)))
    shown = state(made, "A", "B")
    files = (LoadedFile("/B/model.pte", "pte", 0, memoryview(b""), None),)
    sessions = (shown.sessions[0], replace(shown.sessions[1], session=Session("B", files)))
    shown = known_sessions(replace(shown, sessions=sessions), lambda _session: None)
    assert shown.history[1].session == "B"
