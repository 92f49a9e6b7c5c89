"""Columns of numbers in text: one unit each, and nothing that is not zero looks like zero."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.cli.profile import row_json
from inspector.files.load import load_session
from inspector.graph.node_text import short_list
from inspector.profile.methods import analyse_profile
from inspector.render.text import selected_text
from inspector.render.values import json_value, separated_rows
from inspector.tables.events import all_events
from inspector.tables.query import Query, select
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import AUTOMATIC
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


@pytest.mark.parametrize(("count", "shown"), [(0, ""), (1, "n0"), (3, "n0, n1, n2")])
def test_short_list_keeps_what_is_short(count: int, shown: str) -> None:
    assert short_list(", ".join(f"n{at}" for at in range(count))) == shown


@settings(deadline=None)
@given(st.integers(4, 400), st.integers(1, 3))
def test_short_list_counts_what_it_leaves_out(count: int, most: int) -> None:
    names = [f"aten.op{at}.default" for at in range(count)]
    found = short_list(", ".join(names), most)
    assert found.split(", ") == [*names[:most], f"+{count - most}"]


@pytest.mark.parametrize("name", ["convnet_xnnpack", "tinygpt_xnnpack"])
@pytest.mark.parametrize("title", ["operators", "module"])
def test_profile_cuts_the_lists_of_an_event_as_text_only(name: str, title: str) -> None:
    events = all_events(load_session([str(DATA / "corpus" / "v1.5.1" / name)]), "", AUTOMATIC)
    rows = select(events.table, Query())
    columns = selected_text("", rows).columns
    (place,) = (at for at, one in enumerate(columns) if one.title == title)
    shown = columns[place]
    wholes = [row["values"][place] or "" for row in json_value(rows)["rows"]]
    for cell, whole in zip(shown.cells, wholes, strict=True):
        names = whole.split(", ")
        left_out = [f"+{len(names) - 3}"] if len(names) > 3 else []
        assert cell.split(", ") == [*names[:3], *left_out]
    if (name, title) != ("tinygpt_xnnpack", "module"):  # all of it is one module
        assert any("+" in cell for cell in shown.cells)
