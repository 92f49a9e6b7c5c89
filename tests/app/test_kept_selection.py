"""What is selected stays selected when another variant of the program is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from devtools_app.shell.window import MainWindow
from devtools_app.state.transitions import add_session, select, show_session
from devtools_app.state.variants import with_variant
from devtools_app.viewmodels.kept_selection import kept_selection
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, model_graph
from inspector.profile.join_index import join_index
from inspector.tables.selection import NOTHING, Selection, SelectionKind

pytestmark = [pytest.mark.gui, pytest.mark.slow]

CORPUS = Path(__file__).parents[1] / "data/corpus/v1.5.1"
PATIENCE = 20_000  # ms
PAIRS = (("convnet_portable", "convnet_xnnpack"), ("convnet_xnnpack", "convnet_portable"))


def session(name: str) -> Session:
    return load_session([str(CORPUS / name / "model.pte"), str(CORPUS / name / "model.etrecord")])


def node(name: str) -> Selection:
    return Selection(SelectionKind.NODE, "forward", COMPILED, name)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_nodes_are_found_in_the_program_with_another_delegation(one, other) -> None:
    former, later = session(one), session(other)
    old, new = model_graph(former, "forward"), model_graph(later, "forward")
    assert old is not None
    assert new is not None
    found = {
        each.name: kept_selection(former, later, "forward", node(each.name)) for each in old.nodes
    }
    kept = {name: chosen.node for name, chosen in found.items() if chosen}
    assert len(kept) >= 0.8 * min(len(old.nodes), len(new.nodes))
    for name, there in kept.items():
        assert there in new.by_name
        before, after = old.nodes[old.by_name[name]].node, new.nodes[new.by_name[there]].node
        assert before.kind is after.kind
    convolutions = [name for name in found if "convolution" in name]
    assert convolutions
    assert all("convolution" in found[name].node for name in convolutions)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_instructions_and_delegates_are_found_by_their_nodes(one, other) -> None:
    former, later = session(one), session(other)
    index = join_index(former, "forward")
    for number in range(3):
        chosen = Selection(SelectionKind.INSTRUCTION, "forward", instruction=number)
        nodes = index.of_instruction(number).nodes
        found = kept_selection(former, later, "forward", chosen)
        assert not nodes or found.kind is SelectionKind.NODE
    chosen = Selection(SelectionKind.DELEGATE, "forward", delegate=0)
    found = kept_selection(former, later, "forward", chosen)
    if index.of_delegate(0).nodes:  # the other program has no delegate: its first node stays
        assert found.kind is SelectionKind.NODE
    same = kept_selection(former, former, "forward", chosen)
    assert same == (chosen if index.of_delegate(0).nodes else NOTHING)


@pytest.mark.parametrize(
    "selection",
    [
        node("nobody"),
        replace(node("nobody"), graph="no such graph"),
        Selection(SelectionKind.EVENT, "forward", event=10**6),
        Selection(SelectionKind.VALUE, "forward", value=10**6),
        Selection(SelectionKind.DELEGATE, "forward", delegate=99),
    ],
)
def test_what_is_not_there_is_not_selected(selection) -> None:
    one = session("convnet_xnnpack")
    assert kept_selection(one, one, "forward", selection) == NOTHING
    assert kept_selection(one, Session("empty", ()), "forward", selection) == NOTHING


@pytest.fixture
def variants(make_window) -> MainWindow:
    """A window with two variants of one program, and one of another."""
    window = make_window()
    store = window.store
    for name in ("convnet_portable", "convnet_xnnpack", "mm_xnnpack"):
        store.put(add_session(store.state, session(name), (str(CORPUS / name),)))
    history = store.state.history
    for one, program in zip(history.variants, ("net", "net", "other"), strict=True):
        history = with_variant(history, replace(one, program=program))
    store.update(history=history)
    return window


def test_variant_that_is_shown_has_the_selection_of_the_former(variants, qtbot) -> None:
    store = variants.store
    store.put(show_session(store.state, "A"))
    graph = model_graph(store.state.session, "forward")
    assert graph is not None
    chosen = next(one.name for one in graph.nodes if "convolution" in one.name)
    store.put(select(store.state, node(chosen)))
    store.put(show_session(store.state, "B"))
    qtbot.waitUntil(lambda: bool(store.state.selection), timeout=PATIENCE)
    assert "convolution" in store.state.selection.node
    there = store.state.selection
    store.put(show_session(store.state, "C"))  # of another source: nothing is the same there
    store.put(select(show_session(store.state, "B"), there))
    store.put(show_session(store.state, "A"))
    qtbot.waitUntil(lambda: store.state.selection.node == chosen, timeout=PATIENCE)


def test_selection_that_was_made_meanwhile_is_not_replaced(variants) -> None:
    store = variants.store
    store.put(show_session(store.state, "A"))
    store.put(select(store.state, node("nobody")))
    store.put(select(show_session(store.state, "B"), node("somebody")))
    assert store.state.selection.node == "somebody"
