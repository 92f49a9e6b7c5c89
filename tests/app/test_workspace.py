"""Workspace files: what they keep, and what they shrug off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devtools_app.state.panel_layout import PanelLayout, Showing
from devtools_app.state.state import Bookmark, Place, State
from devtools_app.state.tab_groups import TabGroup
from devtools_app.state.transitions import add_session
from devtools_app.state.workspace import (
    Workspace,
    load_workspace,
    save_workspace,
    workspace_of,
)
from inspector.files.session import Session
from inspector.files.workspace_file import is_workspace
from inspector.tables.selection import Selection, SelectionKind
from schema.errors import FormatError
from tests.app.test_settings import JSON

CHOSEN = Selection(SelectionKind.EVENT, "forward", "g", "conv", 3, 17, 0, 2, "a/b")


def full(folder: Path) -> Workspace:
    inside, outside = str(folder / "m" / "model.pte"), "/elsewhere/run.etdp"
    return Workspace(
        sessions=(("A", (inside, outside)), ("C", (inside,))),
        current="C",
        method="forward",
        view="graph",
        split_view="memory",
        overlay="bytes",
        filter_text="/conv/",
        selection=CHOSEN,
        bookmarks=(Bookmark(4, Place("A", "forward", CHOSEN), "conv"),),
        notes={"A": "slow\nhere"},
        group=TabGroup.CHANGE,
        fronts={"look": "size", "change": "graph"},
        layouts={"change": PanelLayout("QUJD", Showing.NEVER, below=True)},
    )


def test_workspace_survives_the_file(tmp_path):
    path = tmp_path / "w.etscope"
    save_workspace(path, full(tmp_path))
    assert load_workspace(path) == full(tmp_path)


def test_workspace_of_an_earlier_version_opens(tmp_path):
    place = {"session": "C", "method": "forward", "selection": {"kind": "event", "event": 17}}
    content = {
        "etscope_workspace": 1,
        "sessions": [{"id": "C", "paths": ["m/model.pte", "/run.etdp"]}],
        "place": place,
        "view": "graph",
        "split_view": "",
        "overlay": "bytes",
        "filter": "/conv/",
        "bookmarks": [{"slot": 4, "label": "conv", "place": place}],
        "notes": {"C": "slow"},
        "layout": "QUJD",
        "variants": [],
    }
    path = tmp_path / "w.etscope"
    path.write_text(json.dumps(content), encoding="utf-8")
    found = load_workspace(path)
    chosen = Selection(SelectionKind.EVENT, event=17)
    assert found == Workspace(
        (("C", (str(tmp_path / "m" / "model.pte"), "/run.etdp")),),
        "C",
        "forward",
        "graph",
        overlay="bytes",
        filter_text="/conv/",
        selection=chosen,
        bookmarks=(Bookmark(4, Place("C", "forward", chosen), "conv"),),
        notes={"C": "slow"},
    )


def test_workspace_moved_with_its_files_still_finds_them(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    save_workspace(old / "w.etscope", full(old))
    old.rename(new)
    found = load_workspace(new / "w.etscope")
    assert found.sessions[0][1] == (str(new / "m" / "model.pte"), "/elsewhere/run.etdp")


def test_workspace_of_state_names_what_is_open():
    state = add_session(State(view="size"), Session("one", ()), ("/one.pte",))
    layouts = {"look": PanelLayout("layout")}
    workspace = workspace_of(state, layouts)
    assert workspace.sessions == (("A", ("/one.pte",)),)
    assert (workspace.view, workspace.layouts) == ("size", layouts)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "a workspace of ETScope as JSON"),
        (b"ET12", "a workspace of ETScope as JSON"),
        (b"[1]", "JSON object"),
        (b'{"files": []}', "expected a workspace of ETScope"),
        (b'{"etscope_workspace": "1"}', "expected a workspace of ETScope"),
        (b'{"etscope_workspace": 99}', "later version"),
    ],
)
def test_workspace_foreign_file_is_refused_in_one_sentence(tmp_path, content, words):
    path = tmp_path / "w.etscope"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=words) as caught:
        load_workspace(path)
    assert "\n" not in str(caught.value)


KEYS = [
    "sessions",
    "place",
    "view",
    "split_view",
    "overlay",
    "filter",
    "bookmarks",
    "notes",
    "group",
    "fronts",
    "layouts",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(KEYS), JSON))
def test_workspace_with_odd_contents_loads_what_makes_sense(tmp_path, content):
    path = tmp_path / "odd.etscope"
    path.write_text(json.dumps({"etscope_workspace": 1, **content}), encoding="utf-8")
    found = load_workspace(path)
    again = tmp_path / "again.etscope"
    save_workspace(again, found)
    assert load_workspace(again) == found


def test_workspace_damaged_selection_becomes_nothing(tmp_path):
    place = {"session": "A", "selection": {"kind": "weird", "event": "x", "value": True}}
    path = tmp_path / "w.etscope"
    path.write_text(json.dumps({"etscope_workspace": 1, "place": place}))
    assert load_workspace(path).selection == Selection()


@pytest.mark.parametrize(
    ("path", "answer"), [("a.etscope", True), ("B.ETSCOPE", True), ("a.pte", False)]
)
def test_is_workspace_goes_by_name(path, answer):
    assert is_workspace(path) is answer
