"""How one state follows from another, and who is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools_app.state.state import Place, State
from devtools_app.state.store import Store
from devtools_app.state.transitions import (
    HISTORY_LIMIT,
    add_session,
    back,
    bookmark_at,
    close_session,
    forward,
    go_to,
    replace_session,
    select,
    session_id,
    set_bookmark,
    show_session,
    with_options,
)
from inspector.files.session import Session, SessionOptions
from inspector.tables.selection import NOTHING, Selection, SelectionKind


def session(name: str = "one") -> Session:
    return Session(name, ())


def node(name: str) -> Selection:
    return Selection(SelectionKind.NODE, node=name)


def opened(*names: str) -> State:
    state = State()
    for name in names:
        state = add_session(state, session(name), (f"/{name}.pte",))
    return state


def test_selection_is_false_only_when_nothing_is_selected():
    assert not NOTHING
    assert node("a")


def test_select_remembers_and_back_and_forward_return():
    state = select(select(opened("one"), node("a")), node("b"))
    once = back(state)
    assert once.selection == node("a")
    assert forward(once).selection == node("b")
    assert back(back(back(once))).selection == NOTHING


def test_a_session_that_a_job_opened_behind_another_is_new_until_it_is_shown():
    first = opened("one")
    assert not first.unseen
    assert not add_session(State(), session(), (), behind=True).unseen  # the only one is shown
    state = add_session(first, session("two"), (), behind=True)
    assert (state.current, state.unseen) == ("A", {"B"})
    assert replace_session(state, "B", session("three")).unseen == {"B"}
    assert select(state, node("a")).unseen == {"B"}
    more = add_session(state, session("three"), (), behind=True)
    assert show_session(more, "B").unseen == {"C"}
    assert go_to(more, Place("C", "", NOTHING)).unseen == {"B"}
    assert back(show_session(state, "B")).unseen == set()


def test_select_same_thing_is_no_step():
    state = select(opened("one"), node("a"))
    assert select(state, node("a")) is state


def test_select_forgets_what_was_ahead():
    state = select(back(select(select(opened("one"), node("a")), node("b"))), node("c"))
    assert state.future == ()
    assert back(state).selection == node("a")


def test_select_in_other_method_goes_there():
    state = select(opened("one"), Selection(SelectionKind.INSTRUCTION, method="decode"))
    assert state.method == "decode"
    assert back(state).method == ""


def test_history_is_bounded():
    state = opened("one")
    for number in range(HISTORY_LIMIT + 50):
        state = select(state, node(str(number)))
    assert len(state.past) == HISTORY_LIMIT


@given(st.lists(st.sampled_from(["a", "b", "c", "<", ">"]), max_size=60))
def test_history_walks_like_a_browser(steps):
    state = opened("one")
    trail, at = [NOTHING], 0
    for step in steps:
        if step == "<":
            state, at = back(state), max(0, at - 1)
        elif step == ">":
            state, at = forward(state), min(len(trail) - 1, at + 1)
        elif node(step) != trail[at]:
            state = select(state, node(step))
            trail, at = [*trail[: at + 1], node(step)], at + 1
        assert state.selection == trail[at]


def test_sessions_get_letters_that_are_never_reused():
    state = close_session(opened("one", "two"), "B")
    state = add_session(state, session("three"), ())
    assert [one.id for one in state.sessions] == ["A", "C"]
    assert state.current == "C"


@pytest.mark.parametrize(("number", "letters"), [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ")])
def test_session_id_counts_in_letters(number, letters):
    assert session_id(number) == letters


def test_close_session_shows_its_neighbour_and_drops_what_belongs_to_it():
    state = opened("one", "two", "three")
    state = set_bookmark(show_session(state, "B"), "B")
    state = replace(state, notes={"B": "x", "A": "y"}, expanded=frozenset({"B/f/m", "A/f/m"}))
    closed = close_session(state, "B")
    assert closed.current == "C"
    assert closed.bookmarks == ()
    assert closed.notes == {"A": "y"}
    assert closed.expanded == {"A/f/m"}
    assert close_session(closed, "nobody") is closed


def test_close_last_session_leaves_nothing_behind():
    state = close_session(select(opened("one"), node("a")), "A")
    assert (state.sessions, state.current, state.selection, state.past) == ((), "", NOTHING, ())


def test_back_skips_places_of_closed_sessions():
    state = select(opened("one"), node("a"))
    state = select(add_session(state, session("two"), ()), node("b"))
    state = close_session(show_session(state, "A"), "B")
    state = back(back(back(state)))
    assert state.current == "A"


def test_replace_session_keeps_selection_and_counts_revisions():
    state = select(opened("one"), node("a"))
    other = replace_session(state, "A", session("again"), ("/x",))
    assert other != state
    assert other.sessions[0].revision == 1
    assert other.sessions[0].paths == ("/x",)
    assert other.session.name == "again"


def test_with_options_renews_only_what_differs():
    options = SessionOptions(source_time_scale="us", time_scale_assumed=False)
    state = with_options(opened("one", "two"), options)
    assert all(one.session.options == options for one in state.sessions)
    assert with_options(state, options) is state


def test_bookmarks_fill_slots_and_lead_back():
    state = select(opened("one"), node("a"))
    state = set_bookmark(state, "first")
    assert bookmark_at(state, 1).label == "first"
    state = select(state, node("b"))
    assert go_to(state, bookmark_at(state, 1).place).selection == node("a")
    for _ in range(10):
        state = set_bookmark(state, "more")
    assert sorted(mark.slot for mark in state.bookmarks) == list(range(10))


def test_go_to_place_of_closed_session_stays():
    state = opened("one")
    assert go_to(state, Place("Z", "forward", node("a"))) is state


def test_store_tells_only_real_changes(qtbot):
    store = Store()
    told = []
    store.changed.connect(lambda old, new: told.append((old.overlay, new.overlay)))
    store.update(overlay="time")
    store.update(overlay="bytes")
    store.put(store.state)
    assert told == [("time", "bytes")]


def test_store_observer_that_updates_makes_another_round_for_all(qtbot):
    store = Store()
    seen = []

    def first(_old, new):
        if new.overlay == "bytes":
            store.update(method="decode")

    store.changed.connect(first)
    store.changed.connect(lambda old, new: seen.append((old.method, new.overlay, new.method)))
    store.update(overlay="bytes")
    assert seen == [("", "bytes", ""), ("", "bytes", "decode")]


def test_store_that_never_settles_is_an_error(qtbot):
    store = Store()
    with qtbot.captureExceptions() as caught:
        store.changed.connect(lambda _old, new: store.update(filter_text=new.filter_text + "x"))
        with pytest.raises(RuntimeError, match="did not settle"):
            store.update(filter_text="x")
    assert caught == []


def test_store_equal_state_keeps_the_object(qtbot):
    store = Store(opened("one"))
    before = store.state
    store.put(replace(before, overlay=before.overlay))
    assert store.state is before
