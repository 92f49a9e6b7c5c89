"""Requirements as text: what is understood, what is refused, and how values are compared."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.experiments.gates.quantities import BoundUnit, in_base, shown
from inspector.experiments.gates.requirement import (
    METRICS,
    OPERATORS,
    RequirementError,
    parse_requirement,
)

UNITS = {
    BoundUnit.PERCENT: {"%": 1.0},
    BoundUnit.SHARE: {"": 1.0, "%": 0.01},
    BoundUnit.BYTES: {"": 1, "B": 1, "KB": 1e3, "kB": 1e3, "MB": 1e6, "GB": 1e9}
    | {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3},
    BoundUnit.TIME: {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1e3},
    BoundUnit.DECIBELS: {"": 1, "dB": 1},
    BoundUnit.COUNT: {"": 1},
    BoundUnit.NUMBER: {"": 1},
}


@settings(deadline=None)
@given(
    metric=st.sampled_from(sorted(METRICS)),
    sign=st.sampled_from(sorted(OPERATORS)),
    number=st.integers(0, 10**6),
    space=st.sampled_from(["", " ", "  "]),
)
def test_requirement_with_every_unit_is_in_base_units(
    metric: str, sign: str, number: int, space: str
) -> None:
    if METRICS[metric] is BoundUnit.PERCENT:
        number %= 101
    for unit, factor in UNITS[METRICS[metric]].items():
        found = parse_requirement(f"{space}{metric}{space}{sign}{space}{number}{space}{unit}")
        assert (found.metric, found.sign, found.relative) == (metric, sign, False)
        assert found.bound == pytest.approx(number * factor)


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        ("latency<=1.1x baseline", 1.1),
        ("latency<=1.1 x baseline", 1.1),
        ("latency <= 1.1 baseline", 1.1),
        ("arena<=baseline", 1.0),
        ("size<=.5x Baseline", 0.5),
        ("gap.max_abs<2e0×baseline", 2.0),
    ],
)
def test_relative_requirement_has_a_factor(text: str, factor: float) -> None:
    found = parse_requirement(text)
    assert found.relative
    assert found.bound == factor


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a metric"),
        ("delegated", "expected a metric"),
        ("delegated=98%", "expected a metric, one of <=, >=, ==, !=, <, >"),
        ("delegated=>98%", "expected a metric"),
        ("98%<=delegated", "expected a metric"),
        ("delegated>=98% arena<=4MiB", "delegated is compared with a share in %"),
        ("delegated>=150%", "delegated is from 0 to 100 %"),
        ("delegated>=98", "a share in %, as 98%"),
        ("delegated>=0.98", "a share in %, as 98%"),
        ("delegated>=", "found ''"),
        ("arena<=4Mi", "bytes, as 4096, 4KiB, 4MiB or 4MB"),
        ("arena<=many", "found 'many'"),
        ("arena<=1,000", "found '1,000'"),
        ("arena<=nan", "found 'nan'"),
        ("arena<=1e999", "found '1e999'"),
        ("latency<=5", "a time with its unit"),
        ("latency<=5m", "a time with its unit"),
        ("latency<=1.1x", "a time with its unit, as 5ms or 300us, or as in 1.1x baseline"),
        ("latency<=0x baseline", "expected a positive factor"),
        ("latency<=-1x baseline", "expected a positive factor"),
        ("delegates<=2.5", "delegates is an integer"),
        ("gap.max_abs<=1e-3ms", "a number without a unit"),
        ("gap<=1", "available: gap. and one of elements, max_abs"),
        ("gap.worst<=1", "no metric 'gap.worst'"),
        ("speed<=1", "no metric 'speed'; available: delegated, arena, size, delegates, latency"),
    ],
)
def test_malformed_requirement_says_what_is_expected(text: str, words: str) -> None:
    with pytest.raises(RequirementError) as caught:
        parse_requirement(text)
    assert words in str(caught.value)
    assert repr(text) in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(deadline=None)
@given(text=st.text(max_size=40))
def test_any_text_is_a_requirement_or_refused(text: str) -> None:
    try:
        found = parse_requirement(text)
    except RequirementError:
        return
    assert found.metric in METRICS
    assert math.isfinite(found.bound)


@settings(deadline=None)
@given(sign=st.sampled_from(sorted(OPERATORS)), value=st.integers(-9, 9), bound=st.integers(-9, 9))
def test_operators_are_those_of_numbers(sign: str, value: int, bound: int) -> None:
    found = parse_requirement(f"gap.max_abs{sign}{bound}")
    assert found.holds(value) is eval(f"{value} {sign} {bound}")


def test_unit_of_another_quantity_is_none() -> None:
    assert in_base(BoundUnit.BYTES, 1, "ms") is None
    assert in_base(BoundUnit.COUNT, 1, "%") is None


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [
        (BoundUnit.PERCENT, 100.0, "100.0 %"),
        (BoundUnit.PERCENT, 99.9999, "99.9999 %"),  # not to be taken for all
        (BoundUnit.PERCENT, 0.001, "0.001 %"),
        (BoundUnit.SHARE, 0.125, "12.5 %"),
        (BoundUnit.BYTES, 100.0, "100 bytes"),
        (BoundUnit.BYTES, 4 * 1024**2, "4 MiB (4,194,304 bytes)"),
        (BoundUnit.TIME, 0.0005, "0.5 µs"),
        (BoundUnit.TIME, 12.5, "12.5 ms"),
        (BoundUnit.DECIBELS, math.inf, "infinite"),
        (BoundUnit.COUNT, 12345.0, "12,345"),
        (BoundUnit.NUMBER, 1.5e-7, "1.5e-07"),
    ],
)
def test_values_are_shown_with_their_units(quantity: BoundUnit, value: float, text: str) -> None:
    assert shown(quantity, value) == text
