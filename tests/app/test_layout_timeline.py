"""Timeline events brought to pixels: nothing lost, nothing invented, longest colour wins."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools_app.viewmodels.canvas_data import TimelineData, TimelineLane
from devtools_app.viewmodels.layout.timeline_bins import (
    WIDE,
    TimelineIndex,
    flame_view,
    nested_depth,
)


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


def test_flame_view_stacks_what_holds_below_each_other_group_by_group() -> None:
    data = timeline([(0.0, 9.0), (1.0, 4.0), (2.0, 3.0), (5.0, 6.0), (0.0, 5.0)])
    two = dataclasses.replace(
        data,
        lanes=(TimelineLane("all", "run 1"), TimelineLane("all", "run 2")),
        lane=np.array([0, 0, 0, 0, 1]),
    )
    flame = flame_view(two)
    assert [(lane.group, lane.depth) for lane in flame.lanes] == [
        ("run 1", 0),
        ("run 1", 1),
        ("run 1", 2),
        ("run 2", 0),
    ]
    assert flame.lane.tolist() == [0, 1, 2, 1, 3]
    assert flame.start is two.start


def test_nested_depth_counts_what_holds_an_event() -> None:
    start = np.array([0.0, 10.0, 11.0, 15.0, 40.0, 10.0])
    end = np.array([100.0, 30.0, 12.0, 20.0, 50.0, 30.0])
    assert nested_depth(start, end).tolist() == [0, 1, 3, 3, 1, 2]
