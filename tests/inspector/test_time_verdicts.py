"""Verdicts on times: identical programs are not told apart, slower ones are found."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.compare.statistics import ALIKE, FASTER, SLOWER, TimeVerdict, judge
from tests.inspector.noise import FAMILIES, Floats, Noise, blocks, plain

ROUNDS, RUNS, TRIES = 16, 40, 100


def _verdict(times: Floats, factor: float = 1.0) -> TimeVerdict:
    old, new = times[0] * 3.7, times[1] * 3.7 * factor
    return judge(old.tolist(), new.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("noise", FAMILIES, ids=lambda noise: noise.__name__)
def test_verdicts_on_simulated_runs_are_right(noise: Noise) -> None:
    words: dict[float, Counter[str]] = {1.0: Counter(), 1.1: Counter()}
    rng = np.random.default_rng(7)
    for _ in range(TRIES):
        times = noise(rng, ROUNDS, RUNS)
        for factor, counts in words.items():
            counts[_verdict(times, factor).word] += 1
    assert words[1.0][ALIKE] >= 90
    assert words[1.1][SLOWER] >= 90


def test_verdict_of_a_program_beside_itself_is_not_distinguishable() -> None:
    times = plain(np.random.default_rng(1), 8, 20)
    found = judge(times[0].tolist(), times[0].tolist())
    assert (found.word, found.ratio, found.low, found.high) == (ALIKE, 1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("factor", "word"), [(1.5, SLOWER), (1 / 1.5, FASTER), (1.015, ALIKE), (1 / 1.015, ALIKE)]
)
def test_verdict_treats_less_than_two_percent_as_none(factor: float, word: str) -> None:
    times = np.exp(0.0005 * np.random.default_rng(2).standard_normal((2, 12, 10)))
    found = _verdict(times, factor)
    assert found.word == word
    assert found.real == (word != ALIKE)
    assert found.low <= found.ratio <= found.high
    assert math.isclose(found.ratio, factor, rel_tol=5e-3)


def test_verdict_the_other_way_round_is_its_inverse() -> None:
    times = plain(np.random.default_rng(3), 12, 20)
    one, two = _verdict(times, 1.2), judge((times[1] * 1.2).tolist(), times[0].tolist())
    assert (one.word, two.word) == (SLOWER, FASTER)
    assert math.isclose(one.ratio * two.ratio, 1.0)
    assert math.isclose(one.low * two.high, 1.0, rel_tol=0.02)


def test_verdict_is_the_same_every_time_and_in_every_unit() -> None:
    times = plain(np.random.default_rng(4), 10, 10)
    first = _verdict(times, 1.05)
    assert first == _verdict(times, 1.05)
    other = judge((times[0] * 3.7e6).tolist(), (times[1] * 3.7e6 * 1.05).tolist())
    assert other.word == first.word
    assert math.isclose(other.ratio, first.ratio)


@pytest.mark.parametrize("sides", [([], []), ([], [[1.0]]), ([[]], [[1.0]]), ([[1.0]], [[9.0]])])
def test_verdict_without_enough_blocks_says_why(sides: tuple[list[list[float]], ...]) -> None:
    found = judge(*sides)
    assert found.word == ALIKE
    assert found.reason
    assert found.words().endswith(found.reason)
    assert found.content()["high"] is None


def test_verdict_of_few_blocks_needs_a_large_difference() -> None:
    times = blocks(np.random.default_rng(5), 3, 20)
    assert _verdict(times, 1.06).word == ALIKE
    assert _verdict(times, 4.0).word == SLOWER


def test_verdict_of_unequal_counts_is_not_paired() -> None:
    times = plain(np.random.default_rng(6), 12, 20)
    found = judge(times[0].tolist(), (times[1, :9] * 1.3).tolist())
    assert not found.paired
    assert found.blocks == 9
    assert found.word == SLOWER


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_verdict_on_a_time_that_is_none_is_an_error(wrong: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        judge([[1.0, wrong]], [[1.0]])


times = st.lists(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=4), min_size=2, max_size=14)


@pytest.mark.slow
@given(times, times)
def test_verdict_on_any_times_has_an_interval_around_the_ratio(
    old: list[list[float]], new: list[list[float]]
) -> None:
    found = judge(old, new)
    assert found.low <= found.ratio * (1 + 1e-9)
    assert found.ratio <= found.high * (1 + 1e-9)
    assert found.word in (FASTER, SLOWER, ALIKE)
    assert found.word != SLOWER or (found.low > 1 and found.ratio > 1.02)
    assert found.word != FASTER or (found.high < 1 and found.ratio < 1 / 1.02)


def test_certainty_of_a_column_begins_with_the_interval() -> None:
    faster = TimeVerdict(0.134, 0.132, 0.136, "faster", 100.0, 13.4, 16)
    assert faster.certainty() == "95 %: −86.8 … −86.4 %"
    alike = TimeVerdict(1.001, 0.97, 1.029, ALIKE, 100.0, 100.1, 16)
    assert alike.certainty() == f"95 %: −3 … +2.9 %, {ALIKE}"
    assert TimeVerdict(float("nan"), 0, float("inf"), ALIKE, 1, 1, 0, reason="none").certainty()
