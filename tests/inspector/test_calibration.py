"""The calibration of a machine: its file, its errors, and the job that measures it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from inspector.files.machine import Machine, cpu_model, this_machine, torch_release
from inspector.jobs import run as job_runs
from inspector.jobs.calibrate import CalibrateJob, usual_job
from inspector.jobs.messages import Counted
from inspector.jobs.run import JobRun
from inspector.roofline.calibration import (
    COPY,
    DTYPES,
    TRIAD,
    Calibration,
    Ceiling,
    calibration_file,
    load_calibration,
    save_calibration,
)
from inspector.worker import calibrating
from schema.errors import FormatError
from tests.inspector.cli_runs import run, valid
from tests.inspector.jobs_here import Here
from tests.inspector.sessions import DATA

SESSION = DATA / "corpus/v1.5.1/convnet_xnnpack"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _now(days: float = 0.0) -> str:
    return (datetime.now(timezone.utc) - timedelta(days=days)).isoformat()


def _found(date: str = "") -> Calibration:
    compute = (Ceiling("float32", 1, 1e10, 9e9, 1.2e10, 9), Ceiling("float32", 2, 2e10, 1, 2, 9))
    memory = (Ceiling(COPY, 1, 1e9, 9e8, 1.1e9, 9), Ceiling(TRIAD, 1, 2e9, 9e8, 1.1e9, 9))
    return Calibration(this_machine(), torch_release(), date or _now(), compute, memory, ("int8",))


def test_what_is_kept_is_what_is_read() -> None:
    assert load_calibration() is None
    path = save_calibration(_found())
    assert path == calibration_file()
    assert load_calibration() == _found(load_calibration().date)  # type: ignore[union-attr]


def test_limits_are_those_of_the_threads_asked_for() -> None:
    one = _found()
    peaks = [one.peak("float32", threads) for threads in (1, 2, 3)]
    assert [None if peak is None else peak.median for peak in peaks] == [1e10, 2e10, None]
    assert one.peak("int8", 1) is None
    bandwidth = one.bandwidth(1)
    assert bandwidth is not None
    assert (bandwidth.what, one.bandwidth(2)) == (TRIAD, None)
    assert one.compute[0].spread == pytest.approx(0.3)


@pytest.mark.parametrize(("days", "stale"), [(1, False), (91, True)])
def test_an_old_calibration_asks_for_a_new_one(days: float, stale: bool) -> None:
    one = _found(_now(days))
    assert one.stale is stale
    assert ("calibrate again" in one.described) is stale
    assert replace(one, date="yesterday").stale


def test_a_calibration_of_another_machine_is_refused() -> None:
    other = replace(_found(), machine=Machine("Other CPU", 64, "Linux x86_64"))
    path = save_calibration(other)
    assert path != calibration_file()
    path.rename(calibration_file())
    with pytest.raises(FormatError, match="Other CPU, 64 cores"):
        load_calibration()
    answer = run("roofline", SESSION, "--format", "json")
    assert answer.code == 0
    tree = valid(answer, "roofline")
    assert tree["data"]["limits"]["calibration"] is None
    assert any("calibrate again" in issue["message"] for issue in tree["issues"])


@pytest.mark.parametrize("text", ["", "{}", '{"version": 9}', "[]"])
def test_a_damaged_file_is_one_sentence(text: str) -> None:
    save_calibration(_found()).write_text(text)
    with pytest.raises(FormatError):
        load_calibration()


def test_measured_limits_are_in_the_answer_and_the_table() -> None:
    save_calibration(_found())
    tree = valid(run("roofline", SESSION, "--format", "json"), "roofline")
    limits = tree["data"]["limits"]
    assert limits["calibration"]["memory"][1]["what"] == TRIAD
    assert "unknown" in limits["note"]
    rows = tree["data"]["methods"]["forward"]["operators"]
    rated = [row for row in rows if row["flops_per_s"]]
    assert rated
    for row in rated:  # nothing is above its limit: then the time or the limit is wrong
        assert (row["share"] is None) == (row["limit"] == "above the measured peak")
    bound = [row for row in rated if row["limit"] == "compute-bound"]
    assert [round(row["share"], 2) for row in bound] == [0.69]  # its bytes came from a cache
    text = run("roofline", SESSION, "--threads", "2").out
    assert "float32 20 GFLOP/s" in text


def test_the_job_measures_and_keeps_every_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_runs, "Worker", Here)
    monkeypatch.setattr(calibrating, "_SIDES", (16, 32))
    monkeypatch.setattr(calibrating, "_LEAST", 1 << 12)
    monkeypatch.setattr(calibrating, "_MOST", 1 << 12)
    job = JobRun(CalibrateJob((1,), blocks=3, seconds=0.0))
    outcome = job.wait()
    assert outcome is not None
    found: Calibration = job.result
    assert {one.what for one in found.compute} | set(found.missing) == set(DTYPES)
    assert [one.what for one in found.memory] == [COPY, TRIAD]
    assert all(one.low <= one.median <= one.high for one in (*found.compute, *found.memory))
    assert found == load_calibration()
    assert job.take()[-2] == Counted(6, 6)


def test_usual_counts_are_one_all_and_those_asked_for() -> None:
    assert {1, 7} <= set(usual_job(7).threads)


def test_machine_is_named_by_its_first_processor(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("cpu : 0\nmodel name\t: Fast  CPU\n\ncpu : 1\nmodel name\t: Other\n")
    assert cpu_model(path) == "Fast CPU"
    assert cpu_model(tmp_path / "none") == ""
    assert str(Machine("Fast CPU", 1, "")) == "Fast CPU, 1 core"


def test_cache_size_is_read_from_the_system(tmp_path: Path) -> None:
    for index, text in enumerate(("32K", "1M", "broken")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}/size").write_text(text)
    assert calibrating.cache_bytes(tmp_path) == 1 << 20
