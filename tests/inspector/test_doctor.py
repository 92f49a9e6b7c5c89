"""What disturbs measuring is told with its severity, and what is unknown is not fine."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.roofline.disturbances import Effect, SystemFiles, disturbances
from tests.inspector.cli_runs import run, valid

QUIET = {
    "proc/loadavg": "0.10 0.20 0.30 1/100 1234",
    "proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 800 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB",
    "proc/cpuinfo": "flags : fpu sse2",
    "proc/stat": "cpu 10 0 10 100 0 0 0 0 0 0",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    "sys/devices/system/cpu/cpufreq/boost": "0",
    "sys/devices/system/cpu/smt/active": "0",
    "sys/fs/cgroup/cpu.max": "max 100000",
}


def _found(root: Path, files: dict[str, str], threads: int = 1) -> dict[str, Effect]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return {one.what: one.severity for one in disturbances(SystemFiles(root, 4, threads))}


def test_a_quiet_machine_is_fine(tmp_path: Path) -> None:
    assert set(_found(tmp_path, QUIET).values()) == {Effect.FINE}


@pytest.mark.parametrize(
    ("name", "text", "what", "severity"),
    [
        ("proc/loadavg", "1.5 0 0 1/1 1", "load", Effect.MODERATE),
        ("proc/loadavg", "9.5 0 0 1/1 1", "load", Effect.SEVERE),
        ("proc/loadavg", "broken", "load", Effect.UNKNOWN),
        (
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
            "schedutil",
            "governor",
            Effect.MODERATE,
        ),
        (
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
            "powersave",
            "governor",
            Effect.SEVERE,
        ),
        ("sys/devices/system/cpu/cpufreq/boost", "1", "boost", Effect.SLIGHT),
        ("sys/class/power_supply/BAT0/status", "Discharging", "power", Effect.SEVERE),
        ("sys/class/power_supply/BAT0/status", "Full", "power", Effect.FINE),
        ("sys/fs/cgroup/cpu.max", "50000 100000", "cgroup", Effect.SEVERE),
        ("sys/fs/cgroup/cpu.max", "200000 100000", "cgroup", Effect.SLIGHT),
        ("proc/cpuinfo", "flags : fpu hypervisor", "virtual machine", Effect.SLIGHT),
        (
            "proc/meminfo",
            "MemTotal: 1000 kB\nMemAvailable: 50 kB",
            "memory",
            Effect.MODERATE,
        ),
        (
            "proc/meminfo",
            "MemTotal: 1000 kB\nMemAvailable: 20 kB",
            "memory",
            Effect.SEVERE,
        ),
    ],
)
def test_each_disturbance_has_its_severity(
    name: str, text: str, what: str, severity: Effect, tmp_path: Path
) -> None:
    found = _found(tmp_path, {**QUIET, name: text})
    assert found.pop(what) is severity
    assert set(found.values()) == {Effect.FINE}


def test_time_given_to_other_guests_is_moderate(tmp_path: Path) -> None:
    files = {"proc/cpuinfo": "flags : fpu hypervisor", "proc/stat": "cpu 10 0 10 70 0 0 0 10 0 0"}
    assert _found(tmp_path, {**QUIET, **files})["virtual machine"] is Effect.MODERATE


def test_more_threads_than_cores_come_first(tmp_path: Path) -> None:
    assert next(iter(_found(tmp_path, QUIET, threads=8).items())) == (
        "threads",
        Effect.SEVERE,
    )


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    found = _found(tmp_path, {})
    unknown = {what for what, severity in found.items() if severity is Effect.UNKNOWN}
    assert unknown == {"load", "governor", "boost", "hyper-threads", "memory", "virtual machine"}


def test_the_verb_answers_for_this_machine() -> None:
    tree = valid(run("doctor", "--threads", "2", "--format", "json"), "doctor")
    assert tree["data"]["threads"] == 2
    assert {one["what"] for one in tree["data"]["found"]} >= {"load", "threads", "memory"}
    text = run("doctor")
    assert text.code == 0
    assert "disturb" in text.out
