"""Sorting and filtering by index arrays."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.tables.filter import FilterError, TooSlowError, parse_filter
from inspector.tables.row_order import SAMPLE_ROWS, RowOrder, SortKey, text_ranks
from inspector.tables.table import Categories, Table, number_column, text_column
from inspector.units import Quantity
from tests.app.tables import large, operators


def shown(text: str = "", *sort: SortKey, table: Table | None = None) -> list[str]:
    table = table or operators()
    rows = RowOrder(table).rows(sort, parse_filter(text, table))
    return [table.text(int(row), 0) for row in rows]


def test_text_sorts_naturally_and_missing_last_both_ways():
    up = ["add", "conv_2", "conv_10", "Erf", "relu", "unattributed"]
    assert shown("", SortKey(0)) == up
    assert shown("", SortKey(0, descending=True)) == [*reversed(up[:-1]), "unattributed"]


def test_numbers_sort_by_value_and_missing_last_both_ways():
    up = ["relu", "conv_2", "unattributed", "conv_10", "Erf", "add"]
    assert shown("", SortKey(2)) == up
    assert shown("", SortKey(2, descending=True)) == [*reversed(up[:-1]), "add"]


def test_equal_rows_keep_their_order_and_second_key_decides():
    assert shown("", SortKey(1), SortKey(2, descending=True)) == [
        "unattributed", "Erf", "add", "conv_10", "conv_2", "relu",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("conv", ["conv_10", "conv_2"]),
        ("CONV 10", ["conv_10"]),
        ("/^conv_\\d$/", ["conv_2"]),
        ("/^act$/", ["Erf", "add"]),
        ("/conv_2|erf", ["conv_2", "Erf"]),
        ("p50>0.1", ["conv_10", "Erf", "unattributed"]),
        ("p50>=212us", ["conv_10", "Erf"]),
        ("share>20%", ["conv_10", "Erf"]),
        ("bytes=0", ["relu"]),
        ("bytes>=2KiB", ["unattributed"]),
        ("conv bytes<400B", ["conv_2"]),
        ("bytes!=300B conv", ["conv_10"]),
        ("none", ["unattributed"]),
        ("nothing>3", []),
        ("   ", ["conv_10", "conv_2", "Erf", "add", "relu", "unattributed"]),
        ("//", ["conv_10", "conv_2", "Erf", "add", "relu", "unattributed"]),
    ],
)
def test_filter_keeps_what_it_says(text, expected):
    assert shown(text) == expected


@pytest.mark.parametrize("text", ["/(/", "/[a/", "/*x/", "/(?P<>x)/", "/a{99999999999999}/"])
def test_filter_bad_expression_is_one_sentence(text):
    with pytest.raises(FilterError) as caught:
        parse_filter(text, operators())
    assert "\n" not in str(caught.value)
    assert str(caught.value)


def test_filter_expression_without_end_is_stopped():
    hard = Table((text_column("name", [f"{'a' * 17}{i}!" for i in range(6000)]),), 6000)
    started = time.process_time()
    with pytest.raises(TooSlowError):
        RowOrder(hard).rows((), parse_filter("/(a+)+$/", hard))
    assert time.process_time() - started < 20


@given(st.lists(st.one_of(st.none(), st.floats(), st.integers(-(2**60), 2**60)), max_size=40))
def test_number_sort_agrees_with_python(values):
    table = Table((number_column("n", values, Quantity.PLAIN),), len(values))
    gone = [value is None or value != value for value in values]
    for descending in (False, True):
        rows = RowOrder(table).rows([SortKey(0, descending)]).tolist()
        assert sorted(rows) == list(range(len(values)))
        there = [float(values[row]) for row in rows if not gone[row]]
        assert there == sorted(there, reverse=descending)
        assert [gone[row] for row in rows] == sorted(gone)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=30))
def test_unsigned_sort_descending_is_exact(values):
    table = Table((number_column("n", np.array(values, np.uint64), Quantity.COUNT),), len(values))
    rows = RowOrder(table).rows([SortKey(0, descending=True)])
    assert [values[row] for row in rows] == sorted(values, reverse=True)


@given(st.lists(st.sampled_from(["conv", "add", "relu", "x"]), max_size=50))
def test_categories_behave_like_their_texts(names):
    labels = ["relu", "conv", "x", "add"]
    codes = np.array([labels.index(name) for name in names], np.int32)
    plain = Table((text_column("op", names),), len(names))
    coded = Table((text_column("op", Categories(codes, labels)),), len(names))
    for text, sort in (("", [SortKey(0)]), ("on", [SortKey(0, descending=True)]), ("/d/", [])):
        assert shown(text, *sort, table=plain) == shown(text, *sort, table=coded)


def test_categories_without_label_are_refused():
    with pytest.raises(ValueError, match="no label"):
        Categories(np.array([0, 3]), ["a", "b"])


def test_text_ranks_ignore_case_and_pad_numbers():
    assert text_ranks(["b10", "B9", "a"]).tolist() == [2, 1, 0]


def test_columns_of_other_length_are_refused():
    with pytest.raises(ValueError, match="2 of 3"):
        Table((text_column("op", ["a", "b"]),), 3)


def test_hundred_thousand_rows_give_same_answer_as_a_loop():
    table = large(100_000)
    rows = (
        RowOrder(table)
        .prepare()
        .rows([SortKey(2, descending=True)], parse_filter("/_7\\d_/", table))
    )
    names = table.columns[0].values
    times = table.columns[2].values
    wanted = [
        i for i, name in enumerate(names) if "_7" in name and name[11:].rstrip("_x").isdigit()
    ]
    wanted = [i for i in wanted if len(names[i]) == len("aten_conv_70_x")]
    assert rows.tolist() == sorted(wanted, key=lambda row: -times[row])


def test_widths_are_sampled_once_from_rows_all_over_the_table() -> None:
    asked: list[object] = []

    def text(value: object) -> str:
        asked.append(value)
        return f"v{value}"

    column = replace(text_column("name", [str(row) for row in range(5000)]), text=text)
    order = RowOrder(Table((column,), 5000)).prepare()
    asked.clear()
    found = order.sample(0)
    assert not asked  # the thread that prepared the order has done it
    assert {"v0", "v4975"} <= found
    assert len(found) == SAMPLE_ROWS
