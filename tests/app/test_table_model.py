"""The generic table model under Qt's own tester."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont
from PySide6.QtTest import QAbstractItemModelTester

from devtools_app.appearance.colours import LIGHT
from devtools_app.qtmodels.cells import cell_looks
from devtools_app.qtmodels.roles import SHARE, TONE
from devtools_app.qtmodels.table_model import TableModel
from inspector.render.delimited import TextFormat, tsv, write_table
from inspector.tables.filter import parse_filter
from inspector.tables.row_order import RowOrder, SortKey
from inspector.tables.table import Table, number_column, text_column
from inspector.units import Quantity
from tests.app.tables import operators

pytestmark = pytest.mark.gui
ROLE = Qt.ItemDataRole


@pytest.fixture
def model(qtbot) -> TableModel:
    found = TableModel()
    QAbstractItemModelTester(found, QAbstractItemModelTester.FailureReportingMode.Fatal, found)
    found.set_table(operators())
    return found


def texts(model: TableModel, column: int = 0) -> list[str]:
    return [model.index(row, column).data() for row in range(model.rowCount())]


def test_model_survives_every_change_under_the_tester(model):
    model.set_looks(cell_looks(LIGHT, QFont(), QFont()))
    for column in range(6):
        model.sort(column, Qt.SortOrder.DescendingOrder)
        model.set_filter(parse_filter("conv", model.table))
        model.set_highlighted([0, 3])
        model.set_filter(parse_filter("", model.table))
    model.set_table(Table())
    assert (model.rowCount(), model.columnCount()) == (0, 0)


def test_model_sort_from_header_reaches_rows(model):
    model.sort(2, Qt.SortOrder.DescendingOrder)
    assert texts(model)[:2] == ["Erf", "conv_10"]
    model.sort(-1)
    assert texts(model)[:2] == ["conv_10", "conv_2"]


def test_model_sort_keeps_persistent_indexes_on_their_rows(model):
    kept = QPersistentModelIndex(model.index(2, 0))
    model.sort(0)
    assert kept.data() == "Erf"
    assert kept.row() != 2


def test_model_filter_hides_rows_and_place_says_so(model):
    model.set_filter(parse_filter("conv", model.table))
    assert texts(model) == ["conv_10", "conv_2"]
    assert model.place_of(2) == -1
    assert model.place_of(1) == 1
    assert model.filtered


def test_model_new_table_with_same_columns_keeps_sort(model):
    model.sort(0)
    model.set_table(operators())
    assert texts(model)[0] == "add"
    model.set_table(Table((text_column("other", ["b", "a"]),), 2))
    assert texts(model) == ["b", "a"]


def test_model_finds_rows_by_key(model):
    assert model.row_of("c") == 2
    assert model.row_of("nobody") == -1
    model.set_table(Table((text_column("n", ["x", "y"]),), 2))
    assert (model.row_of(1), model.row_of(2)) == (1, -1)


def test_model_hover_is_exact_and_copy_has_base_units(model):
    assert model.index(0, 2).data(ROLE.ToolTipRole) == "212,000 ns"
    assert model.index(3, 2).data() == "missing"
    lines = tsv(model.table, [0, 3]).splitlines()
    assert lines[0].split("\t")[2:4] == ["p50 (ns)", "bytes (B)"]
    assert lines[1].split("\t")[:4] == ["conv_10", "conv1", "212000", "400"]
    assert lines[2].split("\t")[2] == ""


def test_model_headings_carry_the_unit_of_the_column(model):
    heads = [model.headerData(n, Qt.Orientation.Horizontal) for n in range(6)]
    assert heads[2:4] == ["p50 / ms", "bytes / KiB"]
    assert model.headerData(9, Qt.Orientation.Horizontal) is None
    assert model.headerData(0, Qt.Orientation.Vertical) is None


def test_model_roles_serve_delegates(model):
    model.set_looks(cell_looks(LIGHT, QFont(), QFont()))
    assert model.index(2, 4).data(SHARE) == 1.0  # the largest share fills its bar
    assert model.index(1, 4).data(SHARE) == pytest.approx(0.081 / 0.548)
    assert model.index(3, 4).data(SHARE) is None
    assert model.index(5, 5).data(TONE) == "warn"
    assert model.index(5, 1).data(ROLE.FontRole).italic()
    assert model.index(0, 2).data(ROLE.TextAlignmentRole) & int(Qt.AlignmentFlag.AlignRight)


def test_model_lit_rows_have_a_ground(model):
    model.set_looks(cell_looks(LIGHT, QFont(), QFont()))
    model.set_highlighted([1, 99, -4])
    grounds = [model.index(row, 0).data(ROLE.BackgroundRole) for row in range(3)]
    assert [ground is None for ground in grounds] == [True, False, True]
    model.set_highlighted([])
    assert model.index(1, 0).data(ROLE.BackgroundRole) is None


def test_model_takes_rows_prepared_elsewhere(model):
    model.set_table(RowOrder(operators()).prepare())
    model.set_sort([SortKey(1), SortKey(2, descending=True)])
    assert texts(model)[1] == "Erf"


def test_model_invalid_index_has_no_data(model):
    assert model.data(QModelIndex()) is None
    assert model.rowCount(model.index(0, 0)) == 0


def test_export_csv_quotes_and_disarms_formulas(tmp_path):
    names = ['a,"b"', "=HYPERLINK(1)", "-3.5", "two\nlines", "tab\there"]
    table = Table(
        (text_column("name", names), number_column("t", [1.5, None, 2, 3, 4], Quantity.TIME)), 5
    )
    path = tmp_path / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        write_table(table, range(5), stream, TextFormat.CSV)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("name,t (ns)\n")
    assert '"a,""b""",1.5' in text
    assert "'=HYPERLINK(1)" in text
    assert "\n-3.5,2" in text
    lines = tsv(table, range(5)).split("\n")
    assert lines[4:] == ["two lines\t3", "tab here\t4"]


def test_heading_names_a_unit_only_where_there_is_a_number() -> None:
    missing = np.array([np.nan, np.nan])
    assert number_column("p50", [None, None], Quantity.TIME).heading == "p50"
    assert number_column("p50", missing, Quantity.TIME).heading == "p50"
    assert number_column("p50", missing, Quantity.TIME).raw_heading == "p50 (ns)"
    assert number_column("p50", [None, 0], Quantity.TIME).heading == "p50 / ns"
    assert number_column("p50", np.array([np.nan, 2e6]), Quantity.TIME).heading == "p50 / ms"
