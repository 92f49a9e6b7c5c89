"""Numbers as people read them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.tables.magnitude import magnitude
from inspector.units import (
    MISSING,
    SIZE_UNITS,
    Quantity,
    choose_unit,
    column_formatter,
    exact_text,
    format_bytes,
    format_change,
    format_quantity,
    format_share,
    format_time,
    raw_text,
)


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (0, "0 ns"),
        (412, "412 ns"),
        (999, "0.999 µs"),
        (1_504_000, "1.504 ms"),
        (548_000, "0.548 ms"),
        (48_000, "48 µs"),
        (2_345_678_901, "2.346 s"),
        (None, MISSING),
        (math.nan, MISSING),
    ],
)
def test_format_time_picks_unit_and_at_most_four_digits(ns, shown):
    assert format_time(ns) == shown


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1 KiB"),
        (258_048, "252 KiB"),
        (1_163_919, "1.11 MiB"),
        (3 << 30, "3 GiB"),
    ],
)
def test_format_bytes_counts_in_1024(size, shown):
    assert format_bytes(size) == shown


def test_format_time_obeys_fixed_unit():
    assert format_time(1_504_000, "µs") == "1,504 µs"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.047, "+4.7 %"),
        (0.877, "−12.3 %"),
        (1.0009, "+0.1 %"),
        (0.9991, "−0.1 %"),
        (1.0004, "<0.1 %"),
        (1.0, "0 %"),
    ],
)
def test_a_change_that_is_shown_has_its_sign(ratio: float, text: str) -> None:
    assert format_change(ratio) == text


def test_format_share_shows_percent():
    assert format_share(0.364) == "36.4 %"


@pytest.mark.parametrize("tiny", [0.1, -0.1])
def test_column_number_too_small_to_show_is_never_zero(tiny):
    text = column_formatter(Quantity.TIME, choose_unit(Quantity.TIME, 5e9), 5e9)(tiny)
    assert text == ("<0.000000001" if tiny > 0 else ">−0.000000001")


def test_column_formatter_aligns_decimals_and_keeps_digits_of_small_times():
    values = [1_504_000.0, 48_000.0, 900.0]
    unit = choose_unit(Quantity.TIME, magnitude(values))
    text = column_formatter(Quantity.TIME, unit, magnitude(values))
    assert [text(value) for value in values] == ["1.504", "0.048", "0.00090"]


@given(st.floats(min_value=0, max_value=1e18, allow_nan=False))
def test_shown_time_is_within_half_a_digit_of_the_truth(ns):
    text = format_time(ns)
    if text.startswith("<"):
        return
    number, symbol = text.split(" ")
    factor = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[symbol]
    shown = float(number.replace(",", "")) * factor
    assert abs(shown - ns) <= max(0.0006 * ns, 0.0006 * factor)


@given(st.integers(min_value=0, max_value=2**62))
def test_exact_text_loses_nothing(value):
    assert int(exact_text(value, Quantity.SIZE).removesuffix(" B").replace(",", "")) == value
    assert int(raw_text(np.int64(value))) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_raw_text_of_float_reads_back(value):
    assert float(raw_text(value)) == value


@pytest.mark.parametrize("gone", [None, math.nan, np.nan, "text"])
@pytest.mark.parametrize("quantity", [Quantity.TIME, Quantity.SIZE, Quantity.SHARE])
def test_missing_number_says_so(gone, quantity):
    text = column_formatter(quantity, choose_unit(quantity, 1.0), 1.0)
    assert text(gone) == MISSING
    assert exact_text(gone, quantity) == MISSING


def test_magnitude_ignores_what_is_not_finite():
    assert magnitude(np.array([np.nan, -3.0, np.inf, 2.0])) == 3.0
    assert magnitude([None, 5, "x"]) == 5.0
    assert magnitude(np.array([], np.float64)) == 0.0


def test_choose_unit_of_unknown_choice_falls_back_to_auto():
    assert choose_unit(Quantity.SIZE, 5000, "ms") == SIZE_UNITS[1]


def test_format_address_is_hexadecimal():
    assert format_quantity(100352, Quantity.ADDRESS) == "0x18800"
    assert exact_text(100352, Quantity.ADDRESS) == "0x18800 (100,352)"
