"""The matrix of backends: each cell has words, and the page keeps what is around the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.toolchain.backend_cards import backend_cards
from schema.vendors.needs import VendorNeed
from tests.backends_matrix import (
    COLUMNS,
    NAMES,
    Cells,
    cells_of,
    complete,
    read_results,
    table,
    with_table,
    write_results,
)


def test_no_cell_is_empty_whatever_was_run(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    assert read_results(path) == {}
    row = Cells("xnnpack", "m1", dict.fromkeys(COLUMNS, "yes"))
    write_results(path, {("xnnpack", "m1"): row})
    rows = [*complete(read_results(path))]
    assert rows[0] == row
    assert {one.backend for one in rows} == {one.name for one in backend_cards()}
    for one in rows:
        assert [name for name in COLUMNS if not one.text[name]] == []
    assert "python -m tests.backends_matrix --backend xnnpack" in rows[1].text["own"]
    assert set(NAMES) == {*rows[1].model.split(", "), "m1"}


def test_backend_that_is_not_here_has_its_sentence_in_each_cell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(VendorNeed, "is_met", lambda *_: False)
    card = next(one for one in backend_cards() if one.name == "qnn")
    found = cells_of(card, "m1", tmp_path)
    assert set(found.text.values()) == {"the executorch package is not installed"}
    assert list(tmp_path.iterdir()) == []


def test_table_replaces_only_itself_and_long_cells_are_cut() -> None:
    lines = [*table([Cells("a", "m", dict.fromkeys(COLUMNS, "x|y " * 80))])]
    assert all(line.count("|") == len(COLUMNS) + 3 for line in lines)
    assert max(map(len, lines)) < 2000
    page = with_table("# Page\n\ntext\n", lines)
    again = with_table(page.replace("| a |", "| b |") + "after\n", lines)
    assert again == page + "after\n"
