"""What Operators counts and shows, and the line below that repeats it."""

from __future__ import annotations

import numpy as np

from devtools_app.sample_data import LOOP
from devtools_app.viewmodels.below import operators_line
from inspector.files.load import load_session
from inspector.tables.operators import operators_table, operators_tree
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import AUTOMATIC
from inspector.tables.tree import TOP, leaves
from tests.inspector.sessions import DATA


def test_the_table_and_the_line_below_count_the_same_operators() -> None:
    session = load_session(LOOP[:2])
    table = operators_table(session, "forward", AUTOMATIC).table
    tree = operators_tree(RowOrder(table))
    assert tree is not None
    line = operators_line(table, AUTOMATIC)
    assert line.split(" ")[0] == str(int((leaves(tree) & tree.rows.counted()).sum()))
    assert int(table.counted().sum()) < table.length  # overhead of delegates is no operator


def test_the_line_below_names_the_row_that_operators_begins_with() -> None:
    session = load_session(LOOP[:2])
    table = operators_table(session, "forward", AUTOMATIC).table
    tree = operators_tree(RowOrder(table))
    assert tree is not None
    means = np.asarray(tree.columns[3].values, np.float64)
    top = int(np.nanargmax(np.where(tree.parents == TOP, means, np.nan)))
    first = tree.rows.text(top, 0).rpartition("  (")[0]
    shown = operators_line(table, AUTOMATIC).partition("slowest: ")[2]
    assert shown.startswith(f"{first}  ")
    assert ", in it " in shown
    assert table.columns[4].title == "share of method"
    assert f"  {tree.rows.text(top, 4)}," in shown


def test_share_of_a_time_below_a_tick_is_bounded_too() -> None:
    session = load_session([str(DATA / "runs/convnet_xnnpack")])
    table = operators_table(session, "forward", AUTOMATIC).table
    mean, share = table.columns[3], table.columns[4]
    bounded = [row for row in range(table.length) if mean.cell(row).startswith("< ")]
    assert bounded
    assert all(share.cell(row).startswith("< ") for row in bounded)
    assert all(share.cell(row).endswith(" %") for row in bounded)
