"""Passes of a run: warm-up until times are alike, two kinds of runs in turns, an honest mean."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import chain, cycle, pairwise, repeat
from typing import Any

import numpy as np
import pytest

from inspector.jobs.messages import Expected, message_from
from inspector.tables.runs import expected_text
from inspector.trace.run_times import run_times, statistics_json
from inspector.trace.steady import steady_runs
from inspector.worker.passes import Kinds, measured, run_passes, warm_up
from inspector.worker.run_job import stopped_words, times_of


def _once(times: Iterator[float], log: list[str] | None = None, name: str = ""):
    def once() -> float:
        if log is not None:
            log.append(name)
        return next(times)

    return once


def _quiet(_done: int, _total: int) -> None:
    pass


def test_warm_up_ends_when_three_blocks_are_alike() -> None:
    falling = chain((50.0 / (1 + place) for place in range(10)), repeat(5.0))
    times, steady = warm_up(_once(falling), None, 100.0)
    assert steady
    assert max(times[-3:]) <= 1.03 * min(times[-3:])
    assert len(times) < 40


def test_warm_up_that_never_settles_ends_after_two_seconds() -> None:
    times, steady = warm_up(_once(cycle((25.0, 75.0))), None, 10.0)
    assert not steady
    assert 2_000 <= sum(times) <= 2_100


@pytest.mark.parametrize(("count", "first"), [(0, 1.0), (7, 1.0), (None, 60_000.0)])
def test_warm_up_is_as_asked_and_none_where_the_first_run_was_one(
    count: int | None, first: float
) -> None:
    times, steady = warm_up(_once(repeat(60_000.0)), count, first)
    assert len(times) == (count or 0)
    assert steady is (None if count is not None else False)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 57])
def test_runs_asked_for_are_made_in_turns(count: int) -> None:
    log: list[str] = []
    bare, timed = _once(repeat(1.0), log, "bare"), _once(repeat(2.0), log, "timed")
    assert measured(bare, timed, count, _quiet) == ((2.0,) * count, (1.0,) * count)
    changes = sum(a != b for a, b in pairwise(log))
    assert changes >= min(count, 5)  # no pass is made as a whole after the other


@pytest.mark.parametrize(
    ("ms", "noise", "least", "most"),
    [
        (0.05, 0.01, 10, 200),
        (0.05, 0.9, 200, 200),
        (10.0, 0.01, 10, 30),
        (100.0, 0.5, 10, 60),
        (400.0, 0.0, 3, 3),
        (60_000.0, 0.0, 3, 3),
    ],
)
def test_auto_runs_until_the_mean_is_known(ms: float, noise: float, least: int, most: int) -> None:
    pick = random.Random(7)
    times = iter(lambda: ms * (1 + pick.uniform(-noise, noise)), -1.0)
    timed, bare = measured(_once(times), None, None, _quiet)
    assert timed == ()
    assert least <= len(bare) <= most


def test_mean_of_auto_runs_is_within_two_percent_nineteen_times_of_twenty() -> None:
    pick, close = random.Random(3), 0
    for _ in range(200):
        times = iter(lambda: 1.0 + pick.gauss(0.0, 0.05), -1.0)
        _, bare = measured(_once(times), None, None, _quiet)
        close += abs(float(np.mean(bare)) - 1.0) <= 0.02
    assert close >= 180


def test_outliers_and_cold_runs_are_no_part_of_the_steady_set() -> None:
    pick = random.Random(5)
    times = [9.0, 3.0, *(1.0 + pick.gauss(0.0, 0.02) for _ in range(50)), 7.0]
    steady = steady_runs(times)
    assert not steady[[0, 1, -1]].any()
    assert steady[2:-1].all()
    found = statistics_json(run_times(times))
    assert (found["runs"], found["steady_runs"]) == (53, 50)
    assert found["mean"] == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("times", [[1.0], [5.0, 1.0], [1.0, 1.0, 1.0, 90.0]])
def test_few_runs_have_no_outliers_and_no_percentiles(times: list[float]) -> None:
    assert steady_runs(times).all()
    found = statistics_json(run_times(times))
    assert (found["median"], found["p10"], found["p90"]) == (None, None, None)
    assert found["steady_runs"] == len(times)


def test_equal_runs_are_all_steady_and_two_speeds_are_one_set() -> None:
    assert steady_runs([1.0] * 20).all()
    assert steady_runs([1.0, 2.0] * 20).all()


def test_cost_of_tracing_is_that_of_the_means() -> None:
    from inspector.worker.passes import Passes

    found = times_of(3.0, Passes((), None, (1.5, 1.5, 1.5), (1.0, 1.0, 1.0)))
    assert found["tracing_cost"] == pytest.approx(0.5)
    assert times_of(3.0, Passes(bare=(1.0,)))["tracing_cost"] is None


def _told(ms: float, counts: tuple[int | None, int | None], stop_after: float = math.inf):
    """Run passes of a program that takes a time; return them and the messages."""
    said: list[tuple[str, dict[str, Any]]] = []
    spent = [0.0]

    def once() -> float:
        spent[0] += ms
        return ms

    passes = run_passes(
        Kinds(once, once, once, once),
        counts,
        ms,
        lambda kind, **content: said.append((kind, content)),
        lambda: spent[0] >= stop_after,
    )
    return passes, [content for kind, content in said if kind == "expected"], spent[0]


@pytest.mark.parametrize(
    ("counts", "runs", "before"), [((None, None), 3, 1), ((5, 2), 5, 3), ((1, 0), 1, 0)]
)
def test_slow_programs_are_told_what_they_cost(
    counts: tuple[int | None, int | None], runs: int, before: int
) -> None:
    passes, told, spent = _told(6_200.0, counts)
    assert (len(passes.timed), len(passes.bare), passes.stopped) == (runs, runs, False)
    assert told == [
        {"run_ms": 6_200.0, "timed": runs, "bare": runs, "seconds": pytest.approx(spent / 1e3)}
    ]
    assert spent == pytest.approx(6_200.0 * (2 * runs + before))
    found = message_from({"type": "expected", **told[0]})
    assert isinstance(found, Expected)
    if runs == 3:
        words = "a run takes 6.2 s: 3 timed and 3 bare runs take about 43 s"
        assert expected_text(found) == words


def test_fast_programs_are_told_nothing() -> None:
    assert _told(200.0, (5, 2))[1] == []
    assert _told(1.0, (None, None))[1] == []


def test_stopped_passes_keep_the_runs_there_are() -> None:
    passes, _, spent = _told(6_200.0, (None, None), stop_after=15_000.0)
    assert spent == 18_600.0  # the run that has begun ends
    report = times_of(6_200.0, passes)
    assert report["stopped"] == {"runs": 2, "of": 6}
    assert report["latency_ms"]["mean"] == report["traced_latency_ms"]["mean"] == 6_200.0
    assert stopped_words(passes, logs_values=False) == ["stopped after 2 of 6 runs"]
    early, _, _ = _told(6_200.0, (3, 5), stop_after=10_000.0)
    assert (len(early.warmup), early.bare, early.stopped) == (2, (), True)
    open_ended, _, _ = _told(1.0, (None, 0), stop_after=5.0)
    assert stopped_words(open_ended, logs_values=False) == ["stopped after 5 runs"]
    late, _, _ = _told(6_200.0, (1, 0), stop_after=12_000.0)
    assert not late.stopped  # all runs had been made
