"""The matrix of backends: each cell has words, and the page keeps what is around the table."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from inspector.toolchain.backend_cards import backend_card, backend_cards
from schema.vendors.needs import VendorNeed
from tests import backends_cells
from tests.backends_cells import Row, cells_of, without_folders
from tests.backends_matrix import (
    COLUMNS,
    NAMES,
    Cells,
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
    found = dict(cells_of(Row(card, "m1", tmp_path)))
    assert set(found) == {*COLUMNS}
    assert set(found.values()) == {"the executorch package is not installed"}
    assert list(tmp_path.iterdir()) == []


def test_table_replaces_only_itself_and_long_cells_are_cut() -> None:
    texts = {one: f"{one} x|y " * 80 for one in COLUMNS}
    lines = [*table([Cells("a", "m", texts), Cells("b", "any", dict.fromkeys(COLUMNS, "no"))])]
    assert lines[-1].startswith("| b | any | no | likewise |")
    assert all(line.count("|") == len(COLUMNS) + 3 for line in lines)
    assert max(map(len, lines)) < 2000
    page = with_table("# Page\n\ntext\n", lines)
    again = with_table(page.replace("| a |", "| b |") + "after\n", lines)
    assert again == page + "after\n"


@pytest.mark.slow
def test_cell_that_takes_too_long_is_a_sentence_and_the_next_ones_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def forever(*_: object) -> tuple[int, str, str]:
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(backends_cells, "command", forever)
    (tmp_path / "own").mkdir()
    (tmp_path / "own/model.pte").touch()
    monkeypatch.setattr(backends_cells, "_of_files", lambda _row: iter([("open", lambda: "yes")]))
    card = backend_card("xnnpack")
    found = dict(cells_of(Row(card, "int8", tmp_path), seconds=1))
    assert found["own"] == found["stock"] == "longer than the bound of 1 s"
    assert (found["open"], found["quantized"]) == ("yes", "the model is quantized")


@pytest.mark.parametrize("before", ["", "see ", "node x (", "'", '"'])
def test_folders_of_the_machine_are_left_out_of_cells(before: str) -> None:
    assert without_folders(f"{before}/home/me/net.py:3, 1/2") == f"{before}net.py:3, 1/2"
