"""Ranges of time: what lies in them adds up, and events that a border cuts are counted."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import inspector
from devtools_app.viewmodels.timeline import one_run
from inspector.export.chrome_trace import chrome_trace
from inspector.files.session import Session, SessionOptions
from inspector.profile.operator_rows import operator_rows
from inspector.profile.time_range import (
    RangeError,
    RangeSums,
    TimeRange,
    range_times,
    run_ranges,
    time_from,
)
from inspector.profile.timeline_runs import median_run, slowest_run, timeline_runs
from inspector.tables.query import QueryError
from inspector.tables.registry import build
from inspector.tables.time_range import range_summary, time_range
from inspector.units import Quantity
from schema.etdump import ProfileEvent
from tests.app.sessions import opened
from tests.app.timeline_traces import delegated_run, traced
from tests.inspector.cli_runs import run as run_verb

RECORDED = ("corpus/v1.5.1/tinygpt_xnnpack", "corpus/v1.5.1/tinygpt_portable")


def _table(session: Session, span: TimeRange) -> dict[str, list[tuple[float, int, int]]]:
    """Return time, events and cut events of each operator name, in the order of the rows."""
    table = time_range(session, "", span=span)
    by_id = {column.id: column for column in table.columns}
    found: dict[str, list[tuple[float, int, int]]] = {}
    for row in range(table.length):
        cells = [float(by_id[name].values[row]) for name in ("time_in_range", "events", "cut")]
        name = str(by_id["operator"].values[row])
        found.setdefault(name, []).append((cells[0], int(cells[1]), int(cells[2])))
    return found


def _sums(session: Session, span: TimeRange) -> RangeSums:
    return range_times(session, "", span)[0]


def test_only_what_lies_in_the_range_counts_and_cut_events_are_counted() -> None:
    session = traced([delegated_run(3)])  # the first call takes 10 to 110 since the begin
    found = _table(session, TimeRange(30, 80))
    assert found == {
        "tanh": [(30.0, 1, 1)],  # 50 to 100
        "gemm": [(20.0, 1, 1)],  # 20 to 50
    }
    sums = _sums(session, TimeRange(30, 80))
    assert (sums.method, sums.delegates, sums.operators, sums.unattributed) == (50, 50, 0, 0)
    assert (sums.calls, sums.cut) == (1, 1)
    assert "1 cut by the borders: only what lies inside counts" in range_summary(sums)


def test_the_sums_of_a_range_have_one_unit() -> None:
    sums = _sums(traced([delegated_run(3)]), TimeRange(30, 80))
    long = replace(sums, end=12_050.0, method=12_020.0, delegates=11_800.0, unattributed=220.0)
    assert range_summary(long).startswith(
        "12.02 µs, from 0.03 µs to 12.05 µs · delegates 11.8 µs (98.2 %) · unattributed 0.22 µs"
    )


def test_a_call_counts_what_is_inside_once_and_the_rest_as_overhead() -> None:
    found = _table(traced([delegated_run(1)]), TimeRange(0, 150))
    assert found["delegate overhead"] == [(20.0, 1, 0)]
    assert found["gemm"] == [(30.0, 1, 0)]
    assert found["tanh"] == [(50.0, 1, 0)]
    assert sum(cells[0][0] for cells in found.values()) == 155 - 5 - 0  # all of the run but 5


@pytest.mark.parametrize("folder", RECORDED)
def test_a_range_of_all_is_what_operators_are_in_that_run(folder: str) -> None:
    session = opened(folder)
    runs = timeline_runs(session, "forward")
    place = median_run(runs)
    _, rows = range_times(session, "forward", TimeRange())
    parts = operator_rows(session, "forward").parts
    (part,) = (one for one in parts if one is rows[0].part)
    expected = part.samples[rows[0].rows, runs[place].run]
    assert rows[0].inside.tolist() == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize("folder", RECORDED)
def test_ranges_that_meet_add_up(folder: str) -> None:
    session = opened(folder)
    whole = range_times(session, "forward", TimeRange())[0]
    middle = whole.end * 0.37
    first, second = (
        range_times(session, "forward", span)[0]
        for span in (TimeRange(0, middle), TimeRange(middle))
    )
    for name in ("method", "delegates", "operators", "control", "unattributed"):
        total = getattr(first, name) + getattr(second, name)
        assert total == pytest.approx(getattr(whole, name)), name


@pytest.mark.parametrize("folder", RECORDED)
def test_rows_add_up_to_the_method_in_the_range(folder: str) -> None:
    session = opened(folder)
    end = range_times(session, "forward", TimeRange())[0].end
    sums, rows = range_times(session, "forward", TimeRange(end * 0.2, end * 0.7))
    assert float(sum(np.nansum(one.inside) for one in rows)) == pytest.approx(sums.method)


def test_ranges_of_every_run_and_of_the_clock() -> None:
    session = traced([delegated_run(2), delegated_run(2, begin=5000), delegated_run(2, begin=9000)])
    one, each = (_sums(session, TimeRange(0, 100, run)) for run in ("2", "all"))
    assert (one.runs, each.runs) == (1, 3)
    assert each.method == 3 * one.method == 300
    clock = _sums(session, TimeRange(4000, 4100, "clock"))
    assert (clock.runs, clock.method) == (1, 100)
    assert (clock.start, clock.end) == (4000, 4100)
    nothing = _sums(session, TimeRange(2000, 2100, "clock"))
    assert (nothing.runs, nothing.calls, nothing.method) == (0, 0, 0)


def test_a_delegate_outside_of_its_call_is_shown_by_the_call() -> None:
    found = _table(traced([delegated_run(1, late=60)]), TimeRange(0, 150))
    assert found["delegate overhead"] == [(100.0, 1, 0)]
    assert math.isnan(found["gemm"][0][0])


def test_the_slowest_run_may_be_one_that_is_left_out() -> None:
    session = traced([delegated_run(9), *[delegated_run(2, begin=b * 5000) for b in range(1, 8)]])
    runs = timeline_runs(session, "")
    times = [run.ticks for run in runs]
    assert slowest_run(runs) == times.index(max(times))
    assert slowest_run(()) == -1


def test_ticks_stay_ticks() -> None:
    counted = traced([delegated_run(2)])
    cycles = Session("c", counted.files, SessionOptions(source_time_scale="cycles"))
    sums = _sums(cycles, TimeRange(0, 100))
    assert (sums.quantity, sums.method) == (Quantity.TICKS, 100)


def test_a_time_is_typed_with_or_without_a_unit() -> None:
    assert [time_from(text, 7.0) for text in ("", "12", "1.5us", "2 µs", "3ms", "1s")] == [
        7.0,
        12.0,
        1500.0,
        2000.0,
        3e6,
        1e9,
    ]
    with pytest.raises(RangeError, match="expected a number and ns, us, ms or s"):
        time_from("3 hours", 0.0)


def test_impossible_ranges_are_refused_in_one_sentence() -> None:
    session = traced([delegated_run(2)])
    with pytest.raises(QueryError, match="unknown run '9'; available: 1 to 1, all, clock"):
        time_range(session, "", span=TimeRange(run="9"))
    with pytest.raises(QueryError, match="empty range"):
        time_range(session, "", span=TimeRange(5, 5))
    with pytest.raises(QueryError, match="a range needs a trace"):
        time_range(opened("corpus/v1.5.1/mm_xnnpack/model.pte"), "forward")
    with pytest.raises(QueryError, match="'events' is not of a range of time; available: range"):
        build("events", session, span=TimeRange())


def test_command_line_and_notebook_show_the_same_range() -> None:
    folder = str(Path("tests/data") / RECORDED[0])
    answer = run_verb(
        "table", "range", folder, "--from", "1us", "--to", "0.1ms", "--format", "json"
    )
    table = json.loads(answer.out)["data"]["tables"][0]
    place = [column["id"] for column in table["columns"]].index("time_in_range")
    times = [row["values"][place] for row in table["rows"]]
    frame = inspector.table(folder, "range", start="1us", end="0.1ms", dataframe=True)
    assert times == frame["time_in_range"].tolist()
    wrong = run_verb("table", "range", folder, "--from", "soon")
    assert wrong.code == 2
    assert "invalid time 'soon'" in wrong.err


def test_chrome_trace_of_a_range_has_whole_events_of_its_runs() -> None:
    session = traced([delegated_run(2), delegated_run(2, begin=5000)])
    found = chrome_trace(session, run_ranges(session, "", TimeRange(30, 80, "2")))
    slices = [one for one in found["traceEvents"] if one["ph"] == "X"]
    assert sorted(one["name"] for one in slices) == [
        "DELEGATE_CALL",
        "Method::execute",
        "gemm",
        "tanh",
    ]
    gemm = next(one for one in slices if one["name"] == "gemm")
    assert (gemm["args"]["start_ticks"], gemm["args"]["end_ticks"]) == (5020, 5050)
    assert {one["pid"] for one in slices} == {0}


def test_trace_verb_takes_a_range(tmp_path: Path) -> None:
    folder = str(Path("tests/data") / RECORDED[0])
    whole, part = tmp_path / "whole.json", tmp_path / "part.json"
    run_verb("trace", folder, "-o", str(whole))
    run_verb("trace", folder, "--from", "0", "--to", "50us", "-o", str(part))
    counts = [len(json.loads(path.read_text())["traceEvents"]) for path in (whole, part)]
    assert 0 < counts[1] < counts[0]


def test_is_an_event_named_by_profile_rows_selected() -> None:
    session = traced([[ProfileEvent("Method::execute", -1, 0, 0, 20)]])
    assert time_range(session, "").length == 0


@pytest.mark.parametrize("span", [TimeRange(), TimeRange(30, 80), TimeRange(20, math.inf, "1")])
def test_events_have_the_start_at_which_the_timeline_draws_them(span: TimeRange) -> None:
    session = traced([delegated_run(3)])
    table = time_range(session, "", span=span)
    found = {column.id: column for column in table.columns}
    starts: dict[str, list[float]] = {}
    for name, start in zip(found["operator"].values, found["start"].values, strict=True):
        starts.setdefault(str(name), []).append(float(start))
    assert min(starts["gemm"]) == 20  # of a call that begins at 10, since the begin of the run
    assert min(starts["tanh"]) == 50
    assert all(map(math.isnan, starts.get("unattributed", ())))


@pytest.mark.parametrize("name", RECORDED)
def test_starts_are_those_of_the_trace(name: str) -> None:
    session = opened(name)
    (chosen,) = run_ranges(session, "forward", TimeRange())
    _, parts = range_times(session, "forward", TimeRange())
    table = time_range(session, "forward")
    start = next(column for column in table.columns if column.id == "start")
    drawn = one_run(session, (chosen.run,)).data.start
    known = np.asarray([value for value in start.values if value == value])
    assert len(known) == sum(int(np.isfinite(one.start).sum()) for one in parts) > 5
    apart = np.abs(known[:, None] - (drawn - drawn.min())[None, :]).min(axis=1)
    assert float(apart.max()) <= 1.0  # ns
