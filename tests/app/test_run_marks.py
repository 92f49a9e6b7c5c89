"""The runs behind a headline on a line: what is seen of those that are left out."""

from __future__ import annotations

import numpy as np
import pytest

from devtools_app.viewmodels.run_marks import RunMarks, run_marks
from inspector.trace.run_times import RunTimes

STEADY = [94.0, 95.0, 93.5, 94.5, 96.0, 94.2, 95.1, 94.8]


def marks_of(times: list[float]) -> RunMarks | None:
    return run_marks(RunTimes(tuple(times)), 1e3, "us")


@pytest.mark.parametrize("cold", [[], [9_000.0], [9_000.0, 400.0]])
def test_cold_runs_leave_the_steady_ones_apart(cold: list[float]) -> None:
    marks = marks_of([*cold, *STEADY])
    assert marks is not None
    assert len(marks.steady) + len(marks.left_out) == len(cold) + len(STEADY)
    span = float(np.ptp(marks.steady))
    assert marks.low < marks.steady.min()
    assert marks.high > marks.steady.max()
    assert span >= 0.3 * (marks.high - marks.low)
    assert ("beyond the end" in marks.words) == bool(cold)
    assert "nan" not in marks.words


@pytest.mark.parametrize("times", [[5.0], [5.0, 5.1, 5.2]])
def test_a_few_runs_have_no_spread(times: list[float]) -> None:
    assert marks_of(times) is None


def test_equal_times_have_a_line() -> None:
    marks = marks_of([7.0] * 8)
    assert marks is not None
    assert marks.high > marks.low
