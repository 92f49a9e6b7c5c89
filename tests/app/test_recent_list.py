"""Recent sessions: the folder first, near copies of one folder distinguished."""

from __future__ import annotations

from devtools_app.viewmodels.recent_list import recent_titles


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
