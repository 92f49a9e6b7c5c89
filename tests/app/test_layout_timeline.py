"""Timeline events brought to pixels: nothing lost, nothing invented, longest colour wins."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools_app.viewmodels.canvas_data import TimelineData, TimelineLane
from devtools_app.viewmodels.layout.lane_sums import MANY
from devtools_app.viewmodels.layout.timeline_bins import (
    WIDE,
    TimelineIndex,
)
from devtools_app.viewmodels.layout.timeline_found import FoundEvents, search_events


def timeline(spans: list[tuple[float, float]], colours: list[int] | None = None) -> TimelineData:
    """Return one lane of events from pairs of begin and end."""
    count = len(spans)
    table = np.array(spans, float).reshape(-1, 2)
    return TimelineData(
        lanes=(TimelineLane("lane"),),
        lane=np.zeros(count, np.int64),
        start=table[:, 0],
        end=table[:, 1],
        colour=np.array(colours or [0] * count, np.int64),
        label=np.zeros(count, np.int64),
        names=("event",),
        unattributed=np.zeros(count, np.bool_),
    )


@st.composite
def lanes(draw: st.DrawFn) -> list[tuple[float, float]]:
    """Draw events that do not overlap, in any order."""
    steps = draw(st.lists(st.tuples(st.floats(0, 50), st.floats(0.01, 30)), max_size=60))
    time, spans = 0.0, []
    for gap, long in steps:
        spans.append((time + gap, time + gap + long))
        time += gap + long
    return draw(st.permutations(spans))


@given(lanes(), st.floats(0.01, 5), st.floats(0, 200))
def test_view_covers_the_same_time_as_the_events(
    spans: list[tuple[float, float]], scale: float, low: float
) -> None:
    pixels = 400
    view = TimelineIndex(timeline(spans)).view(0, low, scale, pixels)
    high = low + pixels / scale
    seen = sum(max(0.0, min(end, high) - max(start, low)) for start, end in spans) * scale
    boxes = np.clip(view.right, 0, pixels) - np.clip(view.left, 0, pixels)
    drawn = float(boxes.sum() + view.cover.sum())
    # a narrow event falls into one pixel whole, so each border may differ by one
    assert drawn == pytest.approx(
        seen, abs=2 * WIDE + 1e-6 + 0.5 * len(view.cover[view.cover >= 1])
    )


@given(lanes(), st.floats(0.01, 5))
def test_view_boxes_are_the_wide_events_on_show(
    spans: list[tuple[float, float]], scale: float
) -> None:
    low, pixels = 20.0, 300
    view = TimelineIndex(timeline(spans)).view(0, low, scale, pixels)
    high = low + pixels / scale
    wide = {
        row
        for row, (start, end) in enumerate(spans)
        if (end - start) * scale >= WIDE + 1e-9 and end > low and start < high
    }
    assert wide <= set(view.event.tolist())


def test_view_pixel_takes_the_colour_of_most_time() -> None:
    spans = [(0.0, 0.2), (0.2, 0.7), (0.7, 0.9)]
    index = TimelineIndex(timeline(spans, [5, 7, 5]))
    view = index.view(0, 0.0, 1.0, 10)
    assert index.colours[int(view.colour[0])] == 7
    assert view.cover[0] == pytest.approx(0.9)
    assert not view.cover[1:].any()


def test_view_many_colours_takes_the_widest_event() -> None:
    spans = [(i / 100, i / 100 + 0.009) for i in range(99)] + [(0.99, 0.999)]
    colours = [*range(99), 500]
    index = TimelineIndex(timeline(spans, colours))
    view = index.view(0, 0.0, 1.0, 4)
    assert 0.8 < float(view.cover[0]) <= 1.0


def test_view_overlapping_long_event_is_found_from_its_middle() -> None:
    index = TimelineIndex(timeline([(0.0, 100.0), (1.0, 2.0)]))
    assert index.view(0, 50.0, 1.0, 10).event.tolist() == [0]


@given(lanes())
def test_at_finds_each_event_at_its_middle(spans: list[tuple[float, float]]) -> None:
    index = TimelineIndex(timeline(spans))
    for row, (start, end) in enumerate(spans):
        assert index.at(0, (start + end) / 2, 0.0) == row


def test_at_gap_gives_nothing_but_within_slack_the_nearest() -> None:
    index = TimelineIndex(timeline([(0.0, 1.0), (10.0, 11.0)]))
    assert index.at(0, 5.0, 0.5) == -1
    assert index.at(0, 1.4, 0.5) == 0
    assert index.at(0, 9.6, 0.5) == 1


def test_index_of_no_events_is_empty() -> None:
    index = TimelineIndex(timeline([]))
    view = index.view(0, 0.0, 1.0, 10)
    assert not len(view.event)
    assert index.at(0, 0.0, 1.0) == -1


def test_neighbour_walks_by_time_not_by_row() -> None:
    data = timeline([(5.0, 6.0), (0.0, 1.0), (2.0, 3.0)])
    index = TimelineIndex(data)
    assert index.neighbour(data, 1, 1) == 2
    assert index.neighbour(data, 2, 1) == 0
    assert index.neighbour(data, 0, 1) == -1


def _many(*, overlapping: bool) -> TimelineData:
    pick = np.random.default_rng(7)
    count = 2 * MANY
    long = pick.lognormal(2, 1.5, count)
    end = np.cumsum(long + pick.exponential(3, count))
    start = end - long
    if overlapping:
        start = start - pick.exponential(30, count)
        order = np.argsort(start)
        start, end = start[order], end[order]
    return dataclasses.replace(
        timeline([(0.0, 1.0)]),
        lane=np.zeros(count, np.int64),
        start=start,
        end=end,
        colour=pick.integers(-2, 4, count),
        label=np.zeros(count, np.int64),
        unattributed=np.zeros(count, np.bool_),
    )


@pytest.mark.parametrize("part", [1.0, 0.6, 0.51])
def test_a_long_lane_looks_as_if_its_events_were_added_up(part: float) -> None:
    index = TimelineIndex(_many(overlapping=False))
    assert index.lane(0).sums is not None
    low = index.start + (index.end - index.start) * (1 - part) / 2
    scale = 1000 / ((index.end - index.start) * part)
    fast = index.view(0, low, scale, 1000)
    index._lanes[0] = dataclasses.replace(index.lane(0), sums=None)
    plain = index.view(0, low, scale, 1000)
    assert fast.event.tolist() == plain.event.tolist()
    assert fast.left.tolist() == plain.left.tolist()
    np.testing.assert_allclose(fast.cover, plain.cover, atol=1e-5)
    assert (fast.colour == plain.colour)[plain.cover > 0.01].mean() > 0.995  # ties may differ


def test_a_long_lane_of_events_that_overlap_has_no_sums() -> None:
    index = TimelineIndex(_many(overlapping=True))
    assert index.lane(0).sums is None
    assert not index.lane(0).disjoint


def test_events_a_little_wider_than_a_pixel_leave_no_gaps() -> None:
    spans = [(1.04 * place, 1.04 * (place + 1)) for place in range(900)]
    view = TimelineIndex(timeline(spans)).view(0, 0.0, 1.0, 900)
    np.testing.assert_allclose(view.cover, 1.0)


def test_found_events_have_rings_or_mark_their_pixels() -> None:
    data = timeline([(0.0, 10.0), (20.0, 20.4), (20.5, 20.6), (40.0, 41.0), (90.0, 99.0)])
    found = FoundEvents(data, np.array([4, 3, 2, 1]))
    assert found.rows.tolist() == [1, 2, 3, 4]
    wide, narrow = found.view(0, 0.0, 1.0, 100)
    assert wide.tolist() == [[90.0, 99.0]]
    assert narrow.tolist() == [[20.0, 21.0], [40.0, 41.0], [90.0, 91.0]]
    assert found.next(3, 0.0, 1) == 3
    assert found.next(4, 0.0, 1) == 0
    assert found.next(0, 30.0, 1) == 2
    assert found.next(0, 30.0, -1) == 1


def test_search_knows_names_lanes_and_durations() -> None:
    data = dataclasses.replace(
        timeline([(0.0, 10.0), (20.0, 50.0), (60.0, 61.0)]),
        names=("conv", "gelu"),
        label=np.array([0, 1, 0]),
    )
    for text, rows in (
        ("conv", [0, 2]),
        ("CONV lane", [0, 2]),
        ("/^(gelu|conv)$/", [0, 1, 2]),
        ("duration>=10ns", [0, 1]),
        ("conv duration<2", [2]),
        ("nothing", []),
    ):
        found = search_events(data, text)
        assert found is not None
        assert found.tolist() == rows, text
    assert search_events(data, "  ") is None


def test_a_border_near_a_time_is_found_on_both_sides() -> None:
    index = TimelineIndex(timeline([(0.0, 10.0), (20.0, 50.0)]))
    assert index.border(0, 11.0, 2.0) == 10.0
    assert index.border(0, 19.0, 2.0) == 20.0
    assert index.border(0, 30.0, 2.0) == 30.0
