"""Runs of one method in several blocks or traces: shares, totals and findings are of all."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.findings.session import findings
from inspector.profile.methods import analyse_profile
from inspector.profile.operator_rows import operator_rows
from inspector.tables.grouping import group_rows, total_text
from inspector.tables.operators import operators
from inspector.tables.query import column_index
from inspector.tables.row_order import RowOrder, as_floats
from inspector.tables.selection import AUTOMATIC
from inspector.tables.table import Column, Table
from inspector.trace.run_times import RunTimes, statistics_json
from inspector.units import format_time
from schema import etdump
from tests.inspector.sessions import DATA, folders, label, session

RUN = DATA / "runs/convnet_xnnpack"


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A program with two traces that could be of two methods: other kernels ran in its delegate."""
    other = tmp_path_factory.mktemp("again") / "run.etdp"
    runs = [
        etdump.run(run.name, [_other_kernel(event) for event in run.events])
        for run in etdump.decode((RUN / "run.etdp").read_bytes()).run_data
    ]
    other.write_bytes(etdump.encode(etdump.dump(runs)))
    return load_session([RUN, other])


def _other_kernel(event: etdump.AnyEvent) -> etdump.AnyEvent:
    if not isinstance(event, etdump.ProfileEvent) or not event.delegate_id_str:
        return event
    return replace(event, delegate_id_str=event.delegate_id_str.replace("Transpose", "Copy"))


@pytest.mark.parametrize("folder", folders("run.etdp"), ids=label)
def test_shares_of_a_method_add_up_however_many_blocks_its_runs_have(folder: Path) -> None:
    opened = session(folder)
    for time in analyse_profile(opened).methods:
        rows = list(operator_rows(opened, time.method))
        shares = [row.share for row in rows if row.share is not None]
        if shares and all(row.samples_ns is not None for row in rows):
            assert math.fsum(shares) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("by", ["operator", "delegate", "backend"])
def test_groups_of_several_blocks_add_up_to_the_headline(twice: Session, by: str) -> None:
    (time,) = analyse_profile(twice).methods
    table = operators(twice, "forward", AUTOMATIC)
    tree = group_rows(RowOrder(table), column_index(table, by), np.arange(table.length))
    top = np.flatnonzero(tree.parents < 0)
    mean = as_floats(_column(tree.rows, "mean").values)[top]
    share = as_floats(_column(tree.rows, "share of method").values)[top]
    if by != "delegate":  # rows without one stand beside the groups
        assert math.fsum(mean) == pytest.approx(time.latency_ms * 1e6, rel=1e-12)
    assert np.nansum(share) == pytest.approx(1.0, rel=1e-12)
    words = total_text(_column(table, "mean"), np.arange(table.length))
    assert words == _column(table, "mean").text(time.latency_ms * 1e6)


def _column(table: Table, title: str) -> Column:
    return next(one for one in table.columns if one.title == title)


def test_group_of_blocks_has_the_mean_over_their_runs() -> None:
    opened = next(
        one
        for one in map(session, folders("run.etdp"))
        if len(operator_rows(one, "forward").parts) > 1
    )
    table = operators(opened, "forward", AUTOMATIC)
    tree = group_rows(RowOrder(table), column_index(table, "block"), np.arange(table.length))
    means = as_floats(_column(tree.rows, "mean").values)[np.flatnonzero(tree.parents < 0)]
    parts = operator_rows(opened, "forward").parts
    wanted = [float(np.nansum(np.where(part.timed, part.mean_ns, np.nan))) for part in parts]
    assert means == pytest.approx(wanted, rel=1e-12)


def test_time_without_a_trace_is_known_only_of_one_trace(twice: Session) -> None:
    (alone,) = analyse_profile(load_session([RUN])).methods
    assert alone.bare is not None
    (mixed,) = analyse_profile(twice).methods
    assert (mixed.traces, mixed.bare) == (2, None)
    assert mixed.tracing_ms is None
    assert mixed.latency_ms == mixed.method_ms


def test_mean_of_several_traces_is_doubted_first(twice: Session) -> None:
    first = findings(twice)[0]
    assert first.text == "The time of forward is the mean of 2 traces"
    assert first.doubt


def test_saving_in_one_block_is_no_more_than_the_block_has(twice: Session) -> None:
    (time,) = analyse_profile(twice).methods
    named = [one for one in findings(twice) if "trace 1" in one.text or "trace 2" in one.text]
    assert named
    assert all(one.saves_ms is None or one.saves_ms <= time.latency_ms * 0.51 for one in named)


def test_steady_runs_are_those_of_each_part() -> None:
    calls = RunTimes((9.0, 5.0, 1.0, 1.0, 1.1, 1.0), (1,) * 6)
    assert calls.mask.all()
    assert calls.cold == 0
    assert not calls.left_out()
    assert calls.mean == pytest.approx(sum(calls.times) / 6)
    assert calls.noise == ""  # calls differ by what they compute
    alone = (50.0, 1.0, 1.01, 1.0, 1.02, 1.0)
    both = RunTimes((*alone, *(2 * time for time in alone)), (6, 6))
    assert both.cold == 2
    assert both.left_out() == "2 cold first runs"
    assert statistics_json(both)["steady_runs"] == 10
    noisy = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    mixed = RunTimes((*alone, *noisy), (6, 6))
    assert mixed.noise == RunTimes(noisy).noise == "severe"
    assert mixed.noise_words() == RunTimes(noisy).noise_words()


def test_headline_and_its_count_of_runs_are_of_the_same_runs(twice: Session) -> None:
    for opened in (twice, *map(session, folders("run.etdp"))):
        for time in analyse_profile(opened).methods:
            assert time.traced.mean == pytest.approx(time.method_ms, rel=1e-9)
            assert format_time(time.traced.mean * 1e6) == format_time(time.method_ms * 1e6)


TINY, MM = (
    DATA / "corpus/v1.5.1/tinygpt_xnnpack/run.etdp",
    DATA / "corpus/v1.5.1/mm_xnnpack/run.etdp",
)


def _trace(path: Path, *traces: Path, factor: int = 1) -> Path:
    """Write the runs of some traces, without their values and ``factor`` times as long."""
    runs = [run for one in traces for run in etdump.decode(one.read_bytes()).run_data]
    kept = (
        etdump.run(
            run.name,
            [
                replace(one, start_time=one.start_time * factor, end_time=one.end_time * factor)
                for one in run.events
                if isinstance(one, etdump.ProfileEvent)
            ],
        )
        for run in runs
    )
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(etdump.encode(etdump.dump(kept)))
    return path


@pytest.mark.parametrize("order", list(itertools.permutations(("both", "other", "third"))))
def test_methods_that_traces_share_are_those_of_one_trace(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    """Each method has the times of one trace; the others are named, and nothing is doubted."""
    shared = RUN / "run.etdp"
    made = {
        "both": _trace(tmp_path / "both/run.etdp", shared, TINY),
        "other": _trace(tmp_path / "other/run.etdp", shared, MM, factor=2),
        "third": _trace(tmp_path / "third/run.etdp", shared, factor=3),
    }
    alone = {
        number: analyse_profile(load_session([_trace(tmp_path / "one.etdp", trace)])).methods[0]
        for number, trace in enumerate((shared, TINY, MM))
    }
    opened = load_session([made[name] for name in order])
    chosen = next(name for name in order if name != "third")  # two methods each, the first of them
    factor = {"both": 1, "other": 2}[chosen]
    wanted = [alone[0].method_ms * factor, alone[1].method_ms, alone[2].method_ms * 2]
    times = analyse_profile(opened).methods
    assert sorted(one.method_ms for one in times) == pytest.approx(sorted(wanted))
    assert {one.traces for one in times} == {1}
    assert not [one for one in findings(opened) if "is the mean of" in one.text]
    said = {Path(one.where).parent.name: one.message for one in opened.all_issues() if one.where}
    rest = ({"both", "other"} - {chosen}).pop()
    assert set(said) == {rest, "third"}
    assert said[rest].startswith(f"shown without the runs of a method that {chosen}/run.etdp has")
    assert said["third"].startswith("not shown: ")


def test_method_of_a_wider_trace_has_no_time_of_the_report_of_another(tmp_path: Path) -> None:
    wide = _trace(tmp_path / "wide/run.etdp", RUN / "run.etdp", TINY)
    (alone,) = analyse_profile(load_session([RUN])).methods
    assert alone.bare is not None
    found = analyse_profile(load_session([RUN, wide])).methods
    assert [(one.traces, one.bare) for one in found] == [(1, None)] * 2
