"""Threads without a core each are noticed, and an idle machine raises no alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.files import machine
from inspector.files.machine import cpu_quota, usable_cores
from inspector.worker import contention
from inspector.worker.contention import Others, busy_cores, oversubscribed

STAT = """cpu  900 0 100 9000 0 0 0 0 0 0
cpu0 {first} 0 0 5000 7 0 0 0 0 0
cpu1 {second} 10 20 4000 0 5 5 0 0 0
cpu7 99999 0 0 0 0 0 0 0 0 0
intr 1
"""


@pytest.mark.parametrize(
    ("threads", "cores", "others", "advice"),
    [
        (1, 1, None, ""),
        (1, 2, 2.0, ""),
        (2, 2, None, ""),
        (2, 2, 0.0, ""),
        (2, 2, 0.4, ""),
        (2, 4, 1.9, ""),
        (4, 8, 4.2, ""),
        (2, 2, 1.1, "--threads 1"),
        (2, 2, 7.0, "--threads 1"),
        (4, 8, 6.0, "--threads 2"),
        (8, 8, 1.5, "--threads 6"),
        (2, 1, None, "--threads 1"),
        (16, 4, 0.0, "--threads 4"),
    ],
)
def test_sentence_is_said_where_threads_have_no_core_each(
    threads: int, cores: int, others: float | None, advice: str
) -> None:
    found = oversubscribed(threads, cores, others)
    assert bool(found) is bool(advice)
    assert advice in found
    if found:
        assert found.startswith(f"{threads} threads share {cores} core")


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "nonsense"}, None),
        ({"cpu.max": "5 0"}, None),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
    ],
)
def test_quota_of_a_control_group_is_read(
    files: dict[str, str], wanted: float | None, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "ascii")
    assert cpu_quota(tmp_path) == wanted


def test_cores_are_those_of_the_process_within_the_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 3, 5}, raising=False)
    assert usable_cores() == 3
    for quota, cores in (("10000 100000", 1), ("150000 100000", 2), ("900000 100000", 3)):
        (tmp_path / "cpu.max").write_text(quota, "ascii")
        assert usable_cores() == cores


def test_time_of_other_processes_is_what_this_one_did_not_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, own = [100.0], [5.0]
    stat = tmp_path / "stat"
    stat.write_text(STAT.format(first=1000, second=2000), "ascii")
    monkeypatch.setattr(contention, "_STAT", stat)
    monkeypatch.setattr(contention, "_own_seconds", lambda: own[0])
    monkeypatch.setattr(contention.time, "monotonic", lambda: now[0])
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1}, raising=False)
    monkeypatch.setattr("os.sysconf", lambda _name: 100)
    long = Others()
    now[0] += 2.0
    own[0] += 1.0
    stat.write_text(STAT.format(first=1150, second=2250), "ascii")
    assert long.busy_cores() == pytest.approx((1.5 + 2.5 - 1.0) / 2)
    short = Others()
    now[0] += 0.1
    assert short.busy_cores() is None
    assert busy_cores([long, short]) == pytest.approx((4.0 - 1.0) / 2.1)
    stat.write_text("nothing", "ascii")
    assert Others().busy_cores() is None or Others().busy_cores() == 0.0
    monkeypatch.setattr(contention, "_STAT", tmp_path / "none")
    assert busy_cores([Others()]) is None
