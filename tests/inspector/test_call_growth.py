"""The growth of the time of a call with its position."""

from __future__ import annotations

import pytest

from inspector.tables.generation import growth


def calls(times: list[float], first: int = 5) -> list[dict[str, object]]:
    prefill = {"kind": "prefill", "position": 0, "tokens": first, "ms": 30.0}
    later = [
        {"kind": "decode", "position": first + place, "tokens": 1, "ms": ms}
        for place, ms in enumerate(times)
    ]
    return [prefill, *later]


@pytest.mark.parametrize("count", [2, 3, 7, 30, 31])
@pytest.mark.parametrize("slope", [0.25, 0.0, -0.125])
def test_growth_is_the_slope_of_the_times(count: int, slope: float) -> None:
    times = [10.0 + slope * place for place in range(count)]
    assert growth(calls(times)) == pytest.approx(slope)


@pytest.mark.parametrize("place", [0, 1, 14, 29])
def test_one_slow_call_does_not_turn_it_around(place: int) -> None:
    times = [1.0 + 0.01 * number for number in range(30)]
    times[place] += 60.0
    assert growth(calls(times)) == pytest.approx(0.01)


def test_few_calls_and_calls_at_one_position_have_none() -> None:
    assert growth(calls([])) == 0.0
    assert growth(calls([3.0])) == 0.0
    same = calls([1.0, 2.0, 3.0])
    for one in same:
        one["position"] = 4
    assert growth(same) == 0.0
