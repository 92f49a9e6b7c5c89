"""Events of a timeline are sorted by lane and begin, in whatever order they were collected."""

from __future__ import annotations

import numpy as np
import pytest

from devtools_app.viewmodels.timeline_lanes import EventBag
from inspector.units import Quantity


@pytest.mark.parametrize("seed", range(8))
def test_events_of_many_parts_are_sorted_as_by_a_stable_sort(seed: int) -> None:
    pick = np.random.default_rng(seed)
    bag, parts = EventBag(), []
    for part in range(int(pick.integers(0, 9))):
        number = int(pick.integers(0, 3))
        lane = bag.lane((0, ""), number, "", 0)
        start = pick.integers(0, 20, int(pick.integers(0, 12))).astype(np.float64)
        start = np.sort(start) if pick.random() < 0.7 else start
        row = 100 * part + np.arange(len(start))
        looks = (row % 5, row % 7, row)
        bag.add(lane, start, start + 1.0, looks if pick.random() < 0.8 else None)
        if pick.random() < 0.8 or len(start):
            parts.append((number, start, row))
    data, rows = bag.data(Quantity.TIME)
    numbers = np.concatenate([np.zeros(0, np.int64), *[np.full(len(s), n) for n, s, _ in parts]])
    starts = np.concatenate([np.zeros(0), *[start for _, start, _ in parts]])
    order = np.lexsort((starts, numbers))
    np.testing.assert_array_equal(data.start, starts[order])
    np.testing.assert_array_equal(data.end, data.start + 1.0)
    known = rows >= 0
    collected = np.concatenate([np.zeros(0, np.int64), *[row for _, _, row in parts]])[order]
    np.testing.assert_array_equal(rows[known], collected[known])
    np.testing.assert_array_equal(data.colour[known], collected[known] % 5)
    np.testing.assert_array_equal(data.unattributed, ~known)
    assert (np.diff(data.lane) >= 0).all()
