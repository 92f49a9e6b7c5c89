"""Timelines: lanes without overlaps, unattributed time that fills the rest, flames that add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools_app.appearance.colours import NOT_DELEGATED
from devtools_app.viewmodels.canvas_data import TimelineData
from devtools_app.viewmodels.timeline import absolute_runs, aligned_runs, one_run
from devtools_app.viewmodels.timeline_flame import flame_timeline
from inspector.files.session import Session, SessionOptions
from inspector.profile.intervals import gaps, stack_levels
from inspector.profile.methods import analyse_profile
from inspector.profile.timeline_runs import timeline_runs
from inspector.units import Quantity
from tests.app.sessions import folders, opened

TRACED = [name for name in folders() if opened(name).dumps]
INTERVALS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=20)


def _no_overlaps(data: TimelineData) -> None:
    for lane in range(len(data.lanes)):
        own = data.lane == lane
        start, end = data.start[own], data.end[own]
        assert (np.diff(start) >= 0).all()
        assert (end >= start).all()
        assert (start[1:] >= end[:-1] - 1e-6).all()


@pytest.mark.parametrize("folder", TRACED)
def test_timeline_of_every_session_has_disjoint_events_in_each_lane(folder: str) -> None:
    session = opened(folder)
    for method in session.methods or ("",):
        runs = timeline_runs(session, method)
        for made in (one_run(session, runs), aligned_runs(session, runs)):
            _no_overlaps(made.data)
            assert len(made.rows) == len(made.data.lane)
            assert ((made.rows < 0) == made.data.unattributed).all()
        _no_overlaps(absolute_runs(session, runs).data)


def test_timeline_calls_and_unattributed_time_fill_the_method() -> None:
    session = opened("corpus/v1.5.1/tinygpt_xnnpack")
    run = next(run for run in timeline_runs(session, "forward") if run.executes)
    data = one_run(session, (run,)).data
    names = [lane.label for lane in data.lanes]
    span = data.end - data.start
    whole = span[data.lane == names.index("method")].sum()
    calls = span[data.lane == names.index("calls")].sum()
    assert calls == pytest.approx(whole, rel=1e-9)


def test_timeline_says_that_xnnpack_start_times_are_synthesised() -> None:
    session = opened("corpus/v1.5.1/tinygpt_xnnpack")
    made = aligned_runs(session, timeline_runs(session, "forward"))
    assert "synthesised" in made.note
    portable = opened("corpus/v1.5.1/tinygpt_portable")
    assert "synthesised" not in aligned_runs(portable, timeline_runs(portable, "forward")).note


def test_timeline_of_cycles_is_in_ticks() -> None:
    session = opened("corpus/v1.5.1/mm_portable")
    counted = replace(session, options=SessionOptions("cycles", time_scale_assumed=False))
    made = aligned_runs(counted, timeline_runs(counted, "forward"))
    assert made.data.quantity is Quantity.TICKS
    assert "ticks" in made.note
    assert flame_timeline(counted, "forward") is None


def test_timeline_rows_lead_to_the_profile() -> None:
    session = opened("corpus/v1.5.1/tinygpt_xnnpack")
    rows = analyse_profile(session).rows
    made = aligned_runs(session, timeline_runs(session, "forward"))
    data = made.data
    kernels = next(n for n, lane in enumerate(data.lanes) if lane.label == "kernels")
    drawn = np.flatnonzero((data.lane == kernels) & ~data.unattributed).tolist()
    named = {event: data.names[int(data.label[event])] for event in drawn}
    native = {event: name for event, name in named.items() if name.startswith("native_call_")}
    assert native
    assert len(native) < len(named)  # the others are inside of delegates
    for event, name in native.items():
        assert rows[int(made.rows[event])].event_name == name


@pytest.mark.parametrize("folder", TRACED)
def test_flame_is_as_wide_as_the_method(folder: str) -> None:
    session = opened(folder)
    profile = analyse_profile(session)
    for time in profile.methods:
        made = flame_timeline(session, time.method)
        if made is None or len(profile.methods) > 1 or time.runs != _runs(session, time.method):
            continue
        _no_overlaps(made.data)
        assert made.data.end.max() == pytest.approx(time.method_ms * 1e6, rel=1e-6)


@pytest.mark.parametrize("folder", TRACED)
def test_flame_of_a_trace_alone_shows_what_delegates_did_as_such(folder: str) -> None:
    whole = opened(folder)
    alone = Session("trace", tuple(file for file in whole.files if file.kind == "etdump"))
    times = analyse_profile(alone).methods
    made = flame_timeline(alone, times[0].method if times else "")
    if made is None or len(times) != 1:
        pytest.skip("several methods in one trace")
    data = made.data
    leaves = made.rows >= 0
    width = data.end - data.start
    plain = leaves & (data.colour == NOT_DELEGATED) & ~data.unattributed
    runs = times[0].runs
    if runs == _runs(alone, times[0].method):
        wanted = (times[0].operators_ms + times[0].control_ms) * 1e6
        assert float(width[plain].sum()) == pytest.approx(wanted, rel=1e-6, abs=1e-3)
    words = [entry.label for entry in made.legend]
    assert ("delegate, backend unknown" in words) is (times[0].delegates_ms > 0)


def _runs(session: Session, method: str) -> int:
    return sum(run.executes for run in timeline_runs(session, method))


@given(INTERVALS)
def test_stack_levels_never_overlap(pairs: list[tuple[int, int]]) -> None:
    start = np.array([low for low, _ in pairs], np.float64)
    end = start + np.array([length for _, length in pairs], np.float64)
    order = np.lexsort((-end, end > start, start))
    start, end = start[order], end[order]
    levels = stack_levels(start, end)
    for level in set(levels.tolist()) - {11}:
        own = levels == level
        assert (start[own][1:] >= np.maximum.accumulate(end[own])[:-1]).all()


@given(INTERVALS, st.integers(0, 30), st.integers(1, 60))
def test_gaps_and_events_cover_the_outer_interval(
    pairs: list[tuple[int, int]], low: int, length: int
) -> None:
    start = np.array([begin for begin, _ in pairs], np.float64)
    end = start + np.array([size for _, size in pairs], np.float64)
    begins, ends = gaps(np.array([low]), np.array([low + length]), start, end)
    covered = np.zeros(length, np.bool_)
    for one, other in zip(start.tolist(), end.tolist(), strict=True):
        covered[max(int(one) - low, 0) : max(int(other) - low, 0)] = True
    free = np.zeros(length, np.bool_)
    for one, other in zip(begins.tolist(), ends.tolist(), strict=True):
        assert low <= one < other <= low + length
        free[int(one) - low : int(other) - low] = True
    assert (free == ~covered).all()
