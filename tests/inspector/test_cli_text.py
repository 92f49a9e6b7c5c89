"""Columns of numbers in text: one unit each, and nothing that is not zero looks like zero."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.cli.answer import Column, Table
from inspector.cli.profile import row_json
from inspector.cli.text import _cells as cells_of
from inspector.cli.text import separated
from inspector.files.load import load_session
from inspector.trace.profile import analyse_profile
from tests.inspector.sessions import DATA

_TIMES = st.none() | st.floats(1e-6, 1e8) | st.just(0.0) | st.floats(-1e8, -1e-6)


def _column(kind: str, values: list[float | None]) -> tuple[str, list[str]]:
    column = Column("t", kind)
    return cells_of(column, 0, Table("", (column,), [(value,) for value in values]))


@settings(deadline=None)
@given(st.sampled_from(["time", "bytes"]), st.lists(_TIMES, min_size=1, max_size=6))
def test_only_zero_looks_like_zero(kind: str, values: list[float | None]) -> None:
    head, cells = _column(kind, values)
    for value, cell in zip(values, cells, strict=True):
        if value is None:
            assert cell == "—"
        elif head != "t / B":  # whole numbers; half a byte is none
            assert (cell.strip("-0.,") == "") is (value == 0), (head, cell)


@pytest.mark.parametrize(
    ("kind", "values", "head", "cells"),
    [
        ("time", [2000.0, 0.003, 0.0], "t / ms", ["2,000.000", "0.003", "0.000"]),
        ("time", [2000.0, 1500.0], "t / s", ["2.000", "1.500"]),
        ("time", [0.5, 0.0001], "t / µs", ["500.0", "0.1"]),
        ("time", [1e7, 1e-6, -1e-6], "t / s", ["10,000.000", "<0.001", ">-0.001"]),
        ("bytes", [2**21, 4, None], "t / KiB", ["2,048.000", "0.004", "—"]),
        ("bytes", [5, 4], "t / B", ["5", "4"]),
        ("time", [math.nan, math.inf], "t / ns", ["—", "—"]),
    ],
)
def test_column_has_one_unit_that_shows_all_its_values(
    kind: str, values: list[float | None], head: str, cells: list[str]
) -> None:
    assert _column(kind, values) == (head, cells)
    (column,) = list(separated(Table("", (Column("t", kind),), [(values[0],)]), ","))[1:]
    assert column.strip() == str(values[0]), "separated values are never rounded"


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
