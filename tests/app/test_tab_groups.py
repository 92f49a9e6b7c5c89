"""Look, Change, Prove: which group of tabs is in front, what each remembers, how it is chosen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools_app.state.state import State
from devtools_app.state.tab_groups import MOST_TABS, TabGroup, tab_key
from devtools_app.state.transitions import show_group, with_group_of_view
from devtools_app.views import VIEWS
from devtools_app.views.spec import Area, tabs_of
from inspector.files.load import load_session
from inspector.files.session import LoadedFile, Session
from tests.inspector.sessions import DATA

LOOK, CHANGE, PROVE = TabGroup
TABS = {LOOK: ("one", "both"), CHANGE: ("both", "two"), PROVE: ("three",)}


def settled(view: str, group: TabGroup = LOOK) -> State:
    return with_group_of_view(State(view=view, group=group), TABS)


def test_view_stays_in_the_group_in_front_if_it_is_there() -> None:
    assert settled(view="both").group is LOOK
    assert settled(view="both", group=CHANGE).group is CHANGE


def test_view_of_another_group_brings_it_to_the_front() -> None:
    assert settled(view="three").group is PROVE
    assert settled(view="one", group=PROVE).group is LOOK


def test_view_of_no_group_changes_nothing() -> None:
    assert settled(view="other", group=PROVE) == State(view="other", group=PROVE)


def test_group_comes_back_with_the_view_that_was_in_front() -> None:
    state = settled(view="both")
    there = with_group_of_view(show_group(state, CHANGE, TABS), TABS)
    assert (there.group, there.view) == (CHANGE, "both")
    other = with_group_of_view(show_group(settled(view="two"), LOOK, TABS), TABS)
    assert (other.group, other.view) == (LOOK, "one")
    assert show_group(other, CHANGE, TABS).view == "two"


def test_group_without_views_is_not_shown() -> None:
    state = settled(view="one")
    assert show_group(state, PROVE, {LOOK: ("one",)}) == state


@given(st.lists(st.sampled_from([*TabGroup, "one", "two", "three", "both"]), max_size=12))
def test_view_in_front_is_always_one_of_its_group(steps: list) -> None:
    state = State(view="one")
    for step in steps:
        asked = (
            show_group(state, step, TABS)
            if isinstance(step, TabGroup)
            else State(view=step, group=state.group, fronts=state.fronts)
        )
        state = with_group_of_view(asked, TABS)
        assert state.view in TABS[state.group]
        assert state.fronts[state.group] == state.view


def test_every_group_has_views_and_the_graph_is_in_two() -> None:
    tabs = {group: [one.name for one in views] for group, views in tabs_of(VIEWS).items()}
    assert set(tabs) == set(TabGroup)
    assert max(map(len, tabs.values())) <= MOST_TABS + 1  # the last one of Look has no key
    assert (tab_key(0), tab_key(9), tab_key(10), tab_key(11)) == ("", "Alt+9", "Alt+0", "")
    assert [group for group, names in tabs.items() if "graph" in names] == [LOOK, CHANGE]
    assert "recipe" in tabs[CHANGE]
    placed = {name for names in tabs.values() for name in names}
    assert placed >= {one.name for one in VIEWS if one.area is Area.CENTRE}


@pytest.mark.parametrize(
    ("kinds", "missing"),
    [
        (("ptd",), {"graph", "timeline", "memory", "gap", "stages"}),
        (("pte",), set()),
        (("etdump",), set()),
        (("ptd", "etdump"), set()),
        (("pt2",), {"timeline", "memory", "gap"}),
        (("pt2", "node_data"), {"timeline", "memory", "gap"}),
        (("pt2", "pte"), set()),
        ((), set()),
    ],
)
def test_only_what_no_file_can_fill_has_no_tab(kinds: tuple[str, ...], missing: set[str]) -> None:
    files = (LoadedFile(f"x.{kind}", kind, 0, memoryview(b""), None) for kind in kinds)
    session = Session("x", tuple(files))
    found = {one.name for one in VIEWS if one.never(session)}
    assert found >= missing
    assert bool(found) is bool(missing)
    assert not found & {"overview", "size", "structure", "compile", "run"}


@pytest.mark.parametrize("path", ["net.mlpackage", "/home/ada/Net.mlmodel"])
def test_models_of_vendors_have_no_views_of_a_record(path: str) -> None:
    session = Session("x", (LoadedFile(path, "pte", 0, memoryview(b""), None),))
    found = {one.name: one.never(session) for one in VIEWS if one.never(session)}
    assert set(found) == {"source", "stages", "gap"}
    assert all("vendor" in reason for reason in found.values())


@pytest.mark.parametrize(
    ("name", "steps"), [("corpus/v1.5.1/mm_portable", False), ("corpus/v1.5.1/mm_xnnpack", True)]
)
def test_only_a_program_with_a_delegate_is_stepped_through(name: str, *, steps: bool) -> None:
    step = next(one for one in VIEWS if one.name == "step")
    session = load_session([DATA / name])
    assert bool(step.never(session)) is not steps
