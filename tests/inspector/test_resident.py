"""Memory of a run as the system counts it, in its report and as a gate."""

from __future__ import annotations

import json
import mmap
from pathlib import Path

import numpy as np
import pytest

from inspector.worker import resident
from inspector.worker.resident import MemoryPhases, mapped_bytes
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA

PROGRAM = DATA / "corpus/v1.5.1/convnet_portable/model.pte"
MIB = 1 << 20


@pytest.mark.skipif(not resident._STATUS.exists(), reason="the system has no /proc")
def test_each_phase_has_its_own_peak() -> None:
    phases = MemoryPhases()
    phases.begin()
    taken = np.ones(64 * MIB, np.uint8)
    phases.end("load")
    del taken
    phases.begin()
    phases.end("prepare")
    load, prepare = phases.peaks["load"], phases.peaks["prepare"]
    assert load is not None
    assert prepare is not None
    largest = phases.largest()
    assert largest is not None
    assert largest >= load
    if phases.are_separate:
        assert load - prepare > 32 * MIB


@pytest.mark.skipif(not resident._MAPS.exists(), reason="the system has no /proc")
def test_resident_pages_of_a_mapped_file_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    path.write_bytes(bytes(4 * MIB))
    assert mapped_bytes(str(path)) == 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        assert data[:: mmap.PAGESIZE].count(0) == 4 * MIB // mmap.PAGESIZE
        assert mapped_bytes(str(path)) == 4 * MIB


def test_what_the_system_does_not_tell_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "_MAPS", Path("/none"))
    monkeypatch.setattr(resident, "peak_bytes", lambda: None)
    phases = MemoryPhases()
    phases.begin()
    phases.end("steady_run")
    found = phases.report("none.pte", 100, 50)
    assert set(found["increase"].values()) == {None}
    assert set(found["steady_parts"].values()) == {None}
    assert phases.largest() is None


@pytest.mark.slow
def test_a_run_reports_its_phases_and_the_gate_judges_them(tmp_path: Path) -> None:
    answer = run("run", PROGRAM, "-o", tmp_path / "run", "--runs", "5", "--format", "json")
    memory = valid(answer, "run")["data"]["memory"]
    assert list(memory["increase"]) == ["load", "prepare", "first_run", "steady_run"]
    steady = memory["increase"]["steady_run"]
    parts = memory["steady_parts"]
    assert parts["delegates"] is None
    assert parts["program_file"] == PROGRAM.stat().st_size
    known = parts["program_file"] + parts["planned_buffers"] + parts["other"]
    assert known >= steady
    files = (PROGRAM, tmp_path / "run/run.etdp")
    text = json.dumps(steady)
    assert run("gate", *files, "--require", f"rss<={text}").code == 0
    assert run("gate", *files, "--require", f"rss<{text}").code == 1
    refused = run("gate", PROGRAM, "--require", "rss<=1GiB")
    assert refused.code == 2
    assert "rss needs the trace of a run" in refused.err
