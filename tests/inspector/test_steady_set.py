"""One statistic: means over the steady runs, shares of them, and a sum that closes."""

from __future__ import annotations

import math
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

import inspector
from inspector.compare.event_times import method_times, recorded_times
from inspector.compare.sessions import compare_sessions
from inspector.files.load import load_session
from inspector.findings.session import findings
from inspector.profile.attribution import steady_set
from inspector.profile.methods import analyse_profile
from inspector.profile.operator_columns import TRACING
from inspector.profile.operator_rows import operator_rows
from inspector.tables.compare import difference_text, summary_table, value_columns
from inspector.trace.run_times import RunTimes, run_times, steady_words
from inspector.trace.steady import cold_runs, steady_runs
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA

RUNS = DATA / "runs"
NAMES = ("convnet_portable", "convnet_xnnpack")
LOGGED = DATA / "corpus/v1.5.1/convnet_xnnpack"


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_the_cost_of_tracing_add_up_to_the_time_without_a_trace(name: str) -> None:
    session = load_session([RUNS / name])
    (time,) = analyse_profile(session).methods
    assert time.bare is not None
    rows = list(operator_rows(session, "forward"))
    assert rows[-1].label == TRACING
    whole = math.fsum(row.mean_ns or 0.0 for row in rows)
    assert whole == pytest.approx(time.latency_ms * 1e6, rel=1e-12)
    assert math.fsum(row.share or 0.0 for row in rows) == pytest.approx(1.0, rel=1e-12)
    frame = inspector.table(session, "operators", dataframe=True)
    assert frame["mean"].sum() == pytest.approx(time.latency_ms * 1e6, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_json_has_both_totals_and_closes(name: str) -> None:
    data = valid(run("profile", RUNS / name, "--format", "json"), "profile")["data"]
    found = data["methods"]["forward"]
    assert found["latency_ms"] == found["bare_ms"] == data["totals"]["latency_ms"]
    parts = ("delegates_ms", "operators_ms", "control_ms", "unattributed_ms")
    total = math.fsum(found[part] for part in parts)
    assert total == pytest.approx(found["method_ms"], rel=1e-12)
    assert total - found["tracing_ms"] == pytest.approx(found["latency_ms"], rel=1e-12)
    assert found["steady_runs"] <= found["runs"] == 20
    assert found["latency"]["mean"] == found["latency_ms"]


def test_means_and_shares_leave_the_same_runs_out_everywhere() -> None:
    session = load_session([RUNS / "convnet_xnnpack"])
    for part in operator_rows(session, "forward").parts:
        assert 0 < part.steady.sum() < len(part.steady)
        kept = part.samples[:-1][:, part.steady].mean(axis=1)
        assert part.mean_ns[:-1] == pytest.approx(kept)
    for source in analyse_profile(session).rows.sources:
        steady = steady_set(source.block)
        assert (source.steady == steady).all()
        kept = source.block.total[steady].mean(axis=0) / 1e6
        assert source.totals == pytest.approx(kept)


def test_a_cell_below_a_tick_of_its_clock_is_bounded_and_never_zero() -> None:
    out = run("table", "operators", RUNS / "convnet_xnnpack", "--columns", "operator,mean").out
    cells = dict(line.rsplit("  ", 1) for line in out.splitlines() if "Transpose" in line)
    assert {cell.strip() for cell in cells.values()} == {"< 1 µs"}
    exact = run("table", "operators", RUNS / "convnet_xnnpack", "--format", "tsv").out
    assert "< 1" not in exact  # sums and JSON have the mean over runs


def test_shares_and_findings_about_them_need_times_of_the_program() -> None:
    session = load_session([LOGGED])
    assert session.times_with_values
    assert all(row.share is None for row in operator_rows(session, "forward"))
    assert not any("% of the time" in one.text for one in findings(session))
    found = compare_sessions([session, load_session([RUNS / "convnet_xnnpack"])])
    assert not any(one.area == "time" and one.values[0] is not None for one in found.summary)
    assert any("its times are not compared" in note for note in found.notes)


def test_percentiles_need_five_runs() -> None:
    data = valid(run("profile", LOGGED, "--format", "json"), "profile")["data"]
    timed = [row for row in data["rows"] if row["avg_ms"] is not None]
    assert timed
    assert all(row["p50_ms"] is row["p10_ms"] is row["p90_ms"] is None for row in timed)
    few = [one.text for one in findings(load_session([RUNS / "convnet_xnnpack"]))]
    assert not any(text.startswith("Times are of") for text in few)


@pytest.mark.parametrize("cold", [0, 1, 3, 10])
@pytest.mark.parametrize("seed", range(4))
def test_cold_runs_come_first_and_are_slower_than_all_others(cold: int, seed: int) -> None:
    pick = random.Random(seed)
    slow = [5.0 + pick.random() * 20 for _ in range(cold)]
    times = [*slow, *(1.0 + pick.gauss(0.0, 0.02) for _ in range(21))]
    assert cold_runs(np.array(times)) == cold
    assert steady_runs(times).sum() >= 20


def test_the_packaged_sample_of_half_cold_runs_is_seen() -> None:
    found = RunTimes((272, 460, 771, 536, 78, 70, 126, 73))
    assert (found.cold, len(found.steady), found.median) == (4, 4, None)
    assert found.left_out() == "4 cold first runs"


def test_noise_has_a_word_of_how_much_and_a_cause() -> None:
    pick = random.Random(7)
    quiet = RunTimes(tuple(1.0 + pick.gauss(0, 0.01) for _ in range(30)))
    assert (quiet.noise, quiet.noise_words()) == ("", "")
    loud = RunTimes(tuple(1.0 + pick.random() for _ in range(30)))
    assert loud.noise in ("moderate", "severe")
    assert "other load" in loud.noise_words()
    drift = RunTimes(tuple(1.0 + 0.02 * at + pick.gauss(0, 0.01) for at in range(30)))
    assert "throttles" in drift.noise_words()
    cold = RunTimes((9.0, *(1.0 + pick.random() for _ in range(30))))
    assert "first run was cold" in cold.noise_words()


def test_runs_that_did_not_end_are_left_out() -> None:
    found = run_times([1.0, math.nan, 1.1])
    assert found is not None
    assert steady_words(found) == "2 runs"
    assert run_times([math.nan]) is None
    with pytest.raises(ValueError, match="finite"):
        RunTimes(())


def test_recorded_times_are_compared_with_their_spread_and_without_verdict() -> None:
    sessions = [load_session([RUNS / name]) for name in NAMES]
    found = compare_sessions(sessions)
    (whole,) = [one for one in found.summary if one.what == "recorded runs"]
    times = [analyse_profile(session).methods[0].latency_ms for session in sessions]
    assert list(whole.values) == times
    assert whole.verdicts == ()
    assert "without a trace" in whole.note
    assert whole.note.endswith("not measured together")
    assert whole.note.count("p10 to p90") == 2
    percent = times[1] / times[0] - 1
    assert difference_text(whole, 1) == f"−{abs(percent) * 100:.1f} %"
    units = {column.cell(0).split()[1] for column in value_columns([whole], ("A", "B"))}
    assert len(units) == 1
    rows = [row for row in found.operators if row.name == TRACING]
    assert len(rows) == 1
    sums = [math.fsum(row.ms[at] or 0.0 for row in found.operators) for at in (0, 1)]
    assert sums == pytest.approx(times, rel=1e-12)
    assert summary_table(found, ("A", "B")).length


def test_times_with_and_without_a_trace_are_not_compared_with_one_another(tmp_path: Path) -> None:
    """A trace without its report has no runs without a trace: both are compared with one."""
    for name in ("model.pte", "run.etdp"):
        shutil.copy(RUNS / "convnet_xnnpack" / name, tmp_path)
    sessions = [load_session([RUNS / "convnet_portable"]), load_session([tmp_path])]
    times = [method_times(session, "forward", None) for session in sessions]
    values, note = recorded_times(times)
    both = [analyse_profile(session).methods[0] for session in sessions]
    assert both[0].bare is not None
    assert both[1].tag == "with tracing"
    assert list(values) == [one.method_ms for one in both]
    assert "with tracing" in note
    (alone,) = analyse_profile(load_session([RUNS / "convnet_xnnpack/run.etdp"])).methods
    assert alone.bare is not None  # a trace alone finds the report beside it
