"""Counters of the timeline: from the plan and the instructions of the trace, else missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools_app.viewmodels.canvas_data import TimelineCounter
from devtools_app.viewmodels.layout.counter_bins import counter_view, value_at
from devtools_app.viewmodels.timeline_content import timeline_content
from devtools_app.viewmodels.timeline_counters import BOUNDARY, IN_USE
from inspector.files.session import Session
from inspector.graph.model_graph import model_graph
from inspector.profile.timeline_runs import occurrences, timeline_runs
from inspector.tables.boundaries import boundaries
from inspector.tables.memory import memory_plan
from inspector.trace.timed_blocks import timed_blocks
from tests.app.sessions import opened
from tests.app.timeline_traces import delegated_run, traced

FOLDER = "corpus/v1.5.1/tinygpt_xnnpack"


def _counters(session: Session, method: str, chosen: str = "") -> dict[str, TimelineCounter]:
    made = timeline_content(session, method, chosen).timeline
    assert made is not None
    return {one.label: one for one in made.data.counters}


def _calls(session: Session) -> list[tuple[float, float, int]]:
    """Return begin, end and instruction of the calls of the run that is shown."""
    runs = [run for run in timeline_runs(session, "forward") if run.executes]
    block = timed_blocks(session.timed_dumps).blocks[runs[0].block]
    start, end, event = occurrences(block, runs[0].run)
    named = [block.event_name(one).endswith("_CALL") for one in event.tolist()]
    steps = block.layout.instruction[event]
    begin = start.min()
    rows = zip(start - begin, end - begin, steps, named, strict=True)
    return [(float(low), float(high), int(step)) for low, high, step, is_call in rows if is_call]


def test_bytes_in_use_are_those_of_the_plan_at_each_instruction() -> None:
    session = opened(FOLDER)
    plan = memory_plan(session, "forward")
    assert plan is not None
    live = sum(arena.live_bytes for arena in plan.arenas)
    counter = _counters(session, "forward")[IN_USE]
    calls = _calls(session)
    assert calls
    for start, end, step in calls:
        assert value_at(counter, (start + end) / 2) == live[step]
    assert counter.top == max(live)
    assert np.isnan(value_at(counter, -1.0))
    assert np.isnan(value_at(counter, 1e15))


def test_boundary_bytes_are_those_of_the_delegate_that_is_called() -> None:
    session = opened(FOLDER)
    graph = model_graph(session, "forward")
    assert graph is not None
    counter = _counters(session, "forward")[BOUNDARY]
    program = session.program
    assert program is not None
    chain = program.plan("forward").chains[0].instructions
    found = 0
    for start, end, step in _calls(session):
        delegate = getattr(chain[step].instr_args, "delegate_index", None)
        crossing = [one.nbytes for one in boundaries(graph) if one.delegate == delegate]
        expected = sum(filter(None, crossing)) if delegate is not None else 0
        assert value_at(counter, (start + end) / 2) == expected
        found += delegate is not None
    assert found


def test_a_trace_alone_has_no_counter_but_the_reason() -> None:
    counters = _counters(traced([delegated_run(3)]), "")
    assert list(counters) == [IN_USE]
    assert counters[IN_USE].missing == "needs the program (.pte) that ran"
    assert not len(counters[IN_USE].value)


def test_a_trace_of_another_program_has_no_counter() -> None:
    trace = next(one for one in opened(FOLDER).files if one.kind == "etdump")
    other = opened("corpus/v1.5.1/mm_xnnpack")
    programs = tuple(one for one in other.files if one.kind == "pte")
    session = replace(other, files=(*programs, trace))
    counters = _counters(session, "forward")
    assert counters[IN_USE].missing == "the trace names no instruction of this program"


def test_loading_has_no_counters() -> None:
    session = opened(FOLDER)
    loads = [
        place for place, run in enumerate(timeline_runs(session, "forward")) if not run.executes
    ]
    assert loads
    assert _counters(session, "forward", f"run {loads[0]}") == {}


def test_between_runs_nothing_is_known() -> None:
    session = opened(FOLDER)
    runs = [run for run in timeline_runs(session, "forward") if run.executes]
    if len(runs) < 2:
        pytest.skip("one run")
    counter = _counters(session, "forward", "clock")[IN_USE]
    assert np.isnan(counter.value).sum() == len(runs)


def _counter(points: list[tuple[float, float]]) -> TimelineCounter:
    start, value = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    return TimelineCounter("c", "", start, value, 10.0, "")


POINTS = st.lists(
    st.tuples(st.floats(0, 100), st.sampled_from([0.0, 1.0, 5.0, float("nan")])),
    max_size=30,
    unique_by=lambda point: point[0],
).map(sorted)


@given(POINTS, st.floats(0.2, 20), st.floats(-20, 90))
def test_a_pixel_shows_the_largest_value_in_it(
    points: list[tuple[float, float]], scale: float, low: float
) -> None:
    counter = _counter(points)
    left, right, value = counter_view(counter, low, scale, 50)
    seen = np.full(50, np.nan)
    for one, other, height in zip(left.astype(int), right.astype(int), value, strict=True):
        seen[one:other] = height
    for pixel in range(50):
        begin, end = low + pixel / scale, low + (pixel + 1) / scale
        values = [value_at(counter, begin), *(v for t, v in points if begin < t <= end)]
        known = [one for one in values if one == one]
        assert (seen[pixel] == max(known)) if known else np.isnan(seen[pixel])
