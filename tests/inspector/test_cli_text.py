"""Columns of numbers in text: one unit each, and nothing that is not zero looks like zero."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.cli.profile import row_json
from inspector.files.load import load_session
from inspector.profile.methods import analyse_profile
from inspector.render.text import selected_text
from inspector.render.values import separated_rows
from inspector.tables.query import Query, select
from inspector.tables.rows import RowField, row_table
from inspector.units import Quantity
from tests.inspector.sessions import DATA

_NUMBERS = st.none() | st.floats(1, 1e14) | st.just(0.0) | st.floats(-1e14, -1)


def _column(quantity: Quantity, values: list[float | None]) -> tuple[str, list[str]]:
    found = select(row_table([RowField("t", quantity)], [(value,) for value in values]), Query())
    (column,) = selected_text("", found).columns
    return column.heading, list(column.cells)


@settings(deadline=None)
@given(st.sampled_from([Quantity.TIME, Quantity.SIZE]), st.lists(_NUMBERS, min_size=1, max_size=6))
def test_only_zero_looks_like_zero(quantity: Quantity, values: list[float | None]) -> None:
    head, cells = _column(quantity, values)
    for value, cell in zip(values, cells, strict=True):
        if value is None:
            assert cell == "missing"
        elif head != "t / B":  # integers; half a byte is none
            assert (cell.strip("-0.,") == "") is (value == 0), (head, cell)


@pytest.mark.parametrize(
    ("quantity", "values", "head", "cells"),
    [
        (Quantity.TIME, [2e9, 3e3, 0.0], "t / s", ["2.000", "0.0000030", "0"]),
        (Quantity.TIME, [2e9, 1.5e9], "t / s", ["2.000", "1.500"]),
        (Quantity.TIME, [4e5, 100.0], "t / µs", ["400.0", "0.10"]),
        (Quantity.TIME, [1e13, 1.0, -1.0], "t / s", ["10,000", "0.000000001", "−0.000000001"]),
        (Quantity.SIZE, [2**20 - 1024, 4, None], "t / KiB", ["1,023", "<1", "missing"]),
        (Quantity.SIZE, [5, 4], "t / B", ["5", "4"]),
        (Quantity.TIME, [math.nan, math.inf], "t", ["missing", "missing"]),
    ],
)
def test_column_has_one_unit_and_hides_no_value_as_zero(
    quantity: Quantity, values: list[float | None], head: str, cells: list[str]
) -> None:
    assert _column(quantity, values) == (head, cells)


@pytest.mark.parametrize("value", [1e-9, 123456789.25, 7, 2**60])
def test_separated_values_are_never_rounded(value: float) -> None:
    found = select(row_table([RowField("t", Quantity.TIME)], [(value,)]), Query())
    head, line = separated_rows(found, ",")
    assert head == "t (ns)\n"
    assert type(value)(line) == value


@pytest.mark.parametrize(("count", "kept"), [(3, 3), (64, 64), (65, 4), (5000, 4)])
def test_row_of_very_many_nodes_names_its_own_and_one_for_each_place(count: int, kept: int) -> None:
    folder = next(one for one in (DATA / "corpus" / "v1.5.1").iterdir() if "mm_port" in one.name)
    session = load_session([str(folder)])
    row = analyse_profile(session).rows[0]
    names = [f"n{number}" for number in range(count)]
    own = replace(row.link, node=names[-1])
    many = replace(
        row,
        op_types=tuple("ab"[at % 2] for at in range(count)),
        stack_traces={name: f"line {at % 3}" for at, name in enumerate(names)},
        module_hierarchy=dict.fromkeys(names, "layer"),
        link=own,
    )
    found = row_json(many, session)
    assert list(found["stack_traces"]) == list(found["module_hierarchy"])
    assert len(found["stack_traces"]) == kept
    assert set(found["stack_traces"].values()) == {"line 0", "line 1", "line 2"}
    assert names[-1] in found["stack_traces"]
    assert found["nodes_left_out"] == count - kept
    assert len(found["op_types"]) == (count if kept == count else 2)
