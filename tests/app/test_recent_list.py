"""Recent sessions: the folder first, near copies of one folder distinguished."""

from __future__ import annotations

from pathlib import PurePath

from devtools_app.appearance.colours import LIGHT
from devtools_app.state.state import OpenSession
from devtools_app.viewmodels.recent_list import recent_titles
from devtools_app.viewmodels.session_list import session_entries
from inspector.files.session import LoadedFile, Session, SessionOptions


def test_the_folder_comes_first() -> None:
    (title,) = recent_titles([("/one/net/model.pte", "/one/net/run.etdp")])
    assert title == "net    model.pte, run.etdp"


def test_alike_folders_show_where_they_differ() -> None:
    titles = recent_titles(
        [(f"/data/{name}/net/model.pte", f"/data/{name}/net/a.etdp") for name in ("one", "two")]
        + [("/data/other",), ("net.pte",)]
    )
    assert titles[:2] == ("one/net    model.pte, a.etdp", "two/net    model.pte, a.etdp")
    assert titles[2] == "other"
    assert len(set(titles)) == len(titles)


def test_many_files_are_counted() -> None:
    (title,) = recent_titles([tuple(f"/a/{name}.pte" for name in "bcdefg")])
    assert title == "a    b.pte, c.pte, d.pte and 3 more"


def _open(key: str, name: str, *paths: str) -> OpenSession:
    files = tuple(LoadedFile(path, "etdump", 1, memoryview(b""), None) for path in paths)
    return OpenSession(key, Session(name, files, SessionOptions()), paths)


def test_sessions_of_one_name_show_the_folder_that_distinguishes_them() -> None:
    sessions = (
        _open("A", "net", "/w/net/model.pte"),
        _open("B", "net", "/w/net/model.pte", "/w/net/run/run.etdp"),
        _open("C", "net", "/w/net/model.pte", "/w/net/run_2/run.etdp"),
        _open("D", "other", "/w/other/model.pte"),
        _open("E", "net", "/old/net/model.pte"),
    )
    details = [one.detail.split(" · ")[0] for one in session_entries(sessions, LIGHT)]
    assert details[1:3] == ["run", "run_2"]
    assert details[4] == str(PurePath("old/net"))
    assert "net" not in details[0]
    assert details[3] == details[0]


def test_sessions_opened_from_folders_of_one_name_show_those_above() -> None:
    sessions = (_open("A", "net", "/a/net/model.pte"), _open("B", "net", "/b/net/model.pte"))
    found = [one.detail.split(" · ")[0] for one in session_entries(sessions, LIGHT)]
    assert found == [str(PurePath("a/net")), str(PurePath("b/net"))]


def test_what_a_job_opened_behind_is_new_in_words() -> None:
    sessions = (_open("A", "net", "/a/net/model.pte"), _open("B", "net", "/b/net/model.pte"))
    found = [one.detail.split(" · ") for one in session_entries(sessions, LIGHT, {"B"})]
    assert ["new" in words for words in found] == [False, True]
    assert found[1][0] == "new"
