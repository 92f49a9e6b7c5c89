"""Lanes of a run: as many as events are nested, whatever the number of delegates."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from devtools_app.viewmodels.canvas_data import TimelineData
from devtools_app.viewmodels.layout.timeline_bins import TimelineIndex
from devtools_app.viewmodels.timeline import Timeline, absolute_runs, one_run
from devtools_app.widgets.timeline_canvas import TimelineCanvas
from devtools_app.widgets.timeline_places import place_lanes
from inspector.files.session import Session
from inspector.profile.intervals import inside_of
from inspector.profile.timeline_runs import timeline_runs
from schema.etdump import ProfileEvent
from tests.app.canvas_colours import colours
from tests.app.timeline_traces import delegated_run, traced


def _first(session: Session) -> Timeline:
    return one_run(session, timeline_runs(session, ""))


def _labels(data: TimelineData) -> list[tuple[str, int]]:
    return [(lane.label, lane.depth) for lane in data.lanes]


@pytest.mark.parametrize("delegates", [1, 12, 100])
def test_lanes_do_not_grow_with_the_number_of_delegates(delegates: int) -> None:
    data = _first(traced([delegated_run(delegates)])).data
    assert _labels(data) == [("method", 0), ("calls", 1), ("kernels", 2)]
    inner = (data.lane == 2) & ~data.unattributed
    assert inner.sum() == 3 * delegates


def test_each_kernel_lies_below_its_call() -> None:
    session = traced([delegated_run(12)])
    data = _first(session).data
    index = TimelineIndex(data)
    for event in np.flatnonzero(data.lane == 2).tolist():
        middle = float(data.start[event] + data.end[event]) / 2
        call = index.at(1, middle, 0.0)
        assert data.start[call] <= data.start[event]
        assert data.end[event] <= data.end[call]


def test_what_no_node_of_a_delegate_covers_is_unattributed() -> None:
    data = _first(traced([delegated_run(12)])).data
    rest = data.unattributed & (data.lane == 2)
    assert (data.end - data.start)[rest].sum() == 12 * 20


def test_a_delegate_whose_times_are_outside_of_its_calls_has_a_lane_of_its_own() -> None:
    data = _first(traced([delegated_run(3, late=60)])).data
    assert _labels(data)[-1] == ("delegates, outside", 2)
    assert data.lanes[-1].apart
    assert (data.lane == 3).sum() == 2
    assert not data.unattributed[data.lane == 3].any()


def test_events_without_a_logged_call_are_nested_in_the_method() -> None:
    events = [
        ProfileEvent(None, 0, 3, 5, 9, delegate_id_int=7),
        ProfileEvent("Method::execute", -1, 0, 0, 20),
    ]
    assert _labels(_first(traced([events])).data) == [("method", 0), ("kernels", 2)]


def test_lanes_of_runs_one_after_another_stay_in_the_order_of_nesting() -> None:
    deep = [
        ProfileEvent(None, 0, 0, 2015, 2080, delegate_id_str="outer"),
        ProfileEvent(None, 0, 0, 2020, 2030, delegate_id_str="inner"),
        ProfileEvent("DELEGATE_CALL", 0, 0, 2010, 2090),
        ProfileEvent("Method::execute", -1, 0, 2000, 2100),
    ]
    session = traced([delegated_run(2, late=60), deep])
    data = absolute_runs(session, timeline_runs(session, "")).data
    assert _labels(data) == [
        ("method", 0),
        ("calls", 1),
        ("kernels", 2),
        ("", 3),
        ("delegates, outside", 2),
    ]


def test_inside_of_asks_for_the_same_key_and_the_whole_length() -> None:
    outer = (np.array([1, 1, 2]), np.array([0.0, 50.0, 10.0]), np.array([10.0, 60.0, 40.0]))
    inner = (
        np.array([1, 1, 1, 2, 2, 3]),
        np.array([0.0, 8.0, 50.0, 20.0, 0.0, 20.0]),
        np.array([10.0, 11.0, 50.0, 40.0, 10.0, 21.0]),
    )
    assert inside_of(outer, inner).tolist() == [True, False, True, True, False, False]


@pytest.mark.gui
def test_hovering_a_kernel_names_the_call_around_it(qtbot) -> None:
    data = _first(traced([delegated_run(2, late=60)])).data
    canvas = TimelineCanvas(colours())
    qtbot.addWidget(canvas)
    canvas.set_data(data)
    names = [data.names[at] for at in data.label]
    assert "kernels · in " in canvas.hover_text(int(np.flatnonzero(data.lane == 2)[-1]))
    assert " in " not in canvas.hover_text(int(np.flatnonzero(data.lane == 3)[0]))
    assert canvas.holder(names.index("Method::execute")) == -1


@pytest.mark.parametrize("delegates", [1, 12])
@pytest.mark.parametrize("room", [0.0, 150.0, 240.0, 420.0, 2000.0])
def test_lanes_and_counters_fill_a_high_window(delegates: int, room: float) -> None:
    data = _first(traced([delegated_run(delegates)])).data
    least, found = place_lanes(data, flame=False), place_lanes(data, flame=False, room=room)
    assert found.tall <= max(room, least.tall)  # nothing has to be scrolled to for it
    places, before = (*found.lanes, *found.counters), (*least.lanes, *least.counters)
    assert all(now.height >= then.height for now, then in zip(places, before, strict=True))
    ends = [(one.top, one.top + one.height) for one in sorted(places, key=lambda one: one.top)]
    assert all(end <= top for (_, end), (top, _) in pairwise(ends))
    if room > least.tall:
        assert found.tall > least.tall
    assert place_lanes(data, flame=True, room=room) == place_lanes(data, flame=True)


def test_lanes_follow_the_height_of_the_window(qtbot) -> None:
    widget = TimelineCanvas(colours())
    qtbot.addWidget(widget)
    data = _first(traced([delegated_run(3)])).data
    widget.resize(900, 120)
    widget.show()
    widget.set_data(data)
    low = widget._places.tall
    widget.resize(900, 700)
    assert widget._places.tall > low
    widget.set_pins((widget.pin_of_lane(0),))
    assert widget._places.body + widget._places.tall <= widget.drawn_size.height()
