"""Tables are written in a thread, whatever the window does meanwhile."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from devtools_app.widgets import item_panel
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.tree_view import TreeView
from inspector.tables.table import Table, text_column
from inspector.tables.tree import Tree

pytestmark = pytest.mark.gui


@pytest.fixture
def table(qtbot, theme) -> TableView:
    found = TableView(theme, "operators")
    qtbot.addWidget(found)
    found.show_table(Table((text_column("operator", ["conv_1", "conv_2", "relu"]),), 3))
    return found


def test_export_is_written_in_a_thread_with_the_rows_shown_when_it_began(
    table, qtbot, tmp_path, monkeypatch
):
    threads, may = [], threading.Event()
    write = item_panel.write_table

    def slow(*arguments):
        threads.append(threading.current_thread())
        assert may.wait(20)
        write(*arguments)

    monkeypatch.setattr(item_panel, "write_table", slow)
    done, path = [], tmp_path / "x.tsv"
    table.set_filter_text("conv")
    assert table.export_to(path, done.append)
    table.set_filter_text("nothing-of-the-kind")
    assert not path.exists()
    assert not done  # nothing is reported before the file is there
    may.set()
    qtbot.waitUntil(lambda: done == [path])
    assert threads != [threading.main_thread()]
    names = [row.split("\t")[0] for row in path.read_text().splitlines()[1:]]
    assert names
    assert all(name.startswith("conv") for name in names)


def test_a_tree_is_written_from_top_to_bottom_as_it_is_sorted_and_filtered(qtbot, theme, tmp_path):
    names = text_column("name", ["b", "b.1", "b.0", "a", "a.0", "a.0.x"])
    parents = np.array([-1, 0, 0, -1, 3, 4], np.int64)
    view = TreeView(theme, "modules")
    qtbot.addWidget(view)
    view.show_tree(Tree(Table((names,), 6), parents))
    view.sort_by(0, descending=False)

    def written(path) -> list[str]:
        assert view.export_to(path)
        qtbot.waitUntil(path.exists)
        return path.read_text().splitlines()[1:]

    assert written(tmp_path / "all.tsv") == ["a", "a.0", "a.0.x", "b", "b.0", "b.1"]
    view.set_filter_text("b.1")
    assert written(tmp_path / "some.tsv") == ["b", "b.1"]
