"""Axes with round steps, and the arithmetic of what a camera sees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools_app.viewmodels.layout.axis import binary_step, decimal_step, ticks
from devtools_app.viewmodels.layout.camera import Camera, fitted
from inspector.units import Quantity

spans = st.floats(1e-3, 1e15)
pixels = st.floats(-2000, 2000)
scales = st.floats(0.01, 50)


@given(spans, st.integers(2, 20))
def test_decimal_step_cuts_into_about_the_wanted_parts(span: float, wanted: int) -> None:
    parts = span / decimal_step(span, wanted)
    assert wanted / 2.6 <= parts <= wanted * 1.01


@given(st.floats(64, 1e12), st.integers(2, 20))
def test_binary_step_is_a_power_of_two(span: float, wanted: int) -> None:
    step = binary_step(span, wanted)
    assert step >= 1
    assert int(step) & (int(step) - 1) == 0


@pytest.mark.parametrize(
    ("low", "high", "quantity", "expected"),
    [
        (0, 1.504e6, Quantity.TIME, ["0.0 ms", "0.5 ms", "1.0 ms", "1.5 ms"]),
        (0, 1200, Quantity.TIME, ["0.0 µs", "0.5 µs", "1.0 µs"]),
        (0, 1.11 * 2**20, Quantity.SIZE, ["0.0 MiB", "0.5 MiB", "1.0 MiB"]),
        (0, 9, Quantity.COUNT, ["0", "5"]),
        (0, 3, Quantity.COUNT, ["0", "1", "2", "3"]),
    ],
)
def test_ticks_carry_one_unit_and_tell_apart(
    low: float, high: float, quantity: Quantity, expected: list[str]
) -> None:
    assert [tick.label for tick in ticks(low, high, 4, quantity)] == expected


@given(st.floats(-1e9, 1e9), spans, st.sampled_from(list(Quantity)))
def test_ticks_lie_inside_and_have_distinct_labels(
    low: float, span: float, quantity: Quantity
) -> None:
    found = ticks(low, low + span, 6, quantity)
    assert all(low - span * 1e-6 <= tick.value <= low + span * (1 + 1e-6) for tick in found)
    if span > abs(low) * 1e-6:
        assert len({tick.label for tick in found}) == len(found)


def test_ticks_of_a_broken_range_are_few() -> None:
    assert len(ticks(0, float(2**62), 5, Quantity.TIME)) < 300
    assert len(ticks(5, 5, 5, Quantity.COUNT)) <= 2


@given(pixels, pixels, scales, st.floats(0.1, 8))
def test_zoomed_keeps_the_point_under_the_pointer(
    px: float, py: float, scale: float, factor: float
) -> None:
    before = Camera(10.0, -20.0, scale, scale)
    after = before.zoomed(factor, px, py, (0.001, 1000.0))
    assert after.to_world(px, py) == pytest.approx(before.to_world(px, py), abs=1e-6, rel=1e-9)


@given(pixels, scales, st.floats(0.01, 100))
def test_zoomed_stays_within_limits_on_both_axes(px: float, scale: float, factor: float) -> None:
    after = Camera(0, 0, scale, scale).zoomed(factor, px, 0, (0.5, 2.0))
    assert 0.5 <= after.sx <= 2.0
    assert after.sy == pytest.approx(after.sx)


@given(pixels, pixels, scales)
def test_to_world_inverts_to_screen(px: float, py: float, scale: float) -> None:
    camera = Camera(3.0, 4.0, scale, scale * 2)
    assert camera.to_screen(*camera.to_world(px, py)) == pytest.approx((px, py), abs=1e-6)


@given(st.floats(1, 1e6), st.floats(1, 1e6))
def test_fitted_shows_the_whole_box(width: float, height: float) -> None:
    camera = fitted((5.0, 7.0, width, height), (800.0, 600.0), 20.0, (0.0, 100.0))
    left, top = camera.to_screen(5.0, 7.0)
    right, bottom = camera.to_screen(5.0 + width, 7.0 + height)
    assert left >= 19.99
    assert top >= 19.99
    assert right <= 780.01
    assert bottom <= 580.01
