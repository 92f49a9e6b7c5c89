"""A disk that is full: what fits is kept, what is lost is named, in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from inspector.check.session import DO_NOT_BELONG, check_session
from inspector.files.load import load_session
from inspector.jobs import run as jobs
from tests.inspector.cli_runs import run, valid
from tests.inspector.jobs_here import Here
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow

PROGRAM = DATA / "corpus/v1.5.1/convnet_portable/model.pte"
WANTED = ("inputs.pt", "outputs.pt", "run.etdp", "values.debug", "values.etdp")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can only be mounted by the administrator")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def _leave(disk: Path, kib: int) -> None:
    """Fill a disk but for some KiB."""
    free = os.statvfs(disk)
    with (disk / "full").open("wb") as stream:
        stream.write(bytes(free.f_bavail * free.f_bsize - (kib << 10)))


@pytest.mark.parametrize("toolchain", ["", "executorch"])
@pytest.mark.parametrize("kib", [0, 4, 8, 12, 20, 32, 64, 96, 108, 116, 200])
def test_run_keeps_what_fits_and_names_the_rest(
    monkeypatch: pytest.MonkeyPatch, disk: Path, kib: int, toolchain: str
) -> None:
    if toolchain and (kib not in (8, 32) or pytest.importorskip("executorch") is None):
        pytest.skip("two of the sizes are enough for the slower runtime")
    monkeypatch.setattr(jobs, "Worker", Here)
    _leave(disk, kib)
    out = disk / "run"
    options = ["-o", out, "--debug-level", "intermediate", "--runs", "5", "--format", "json"]
    answer = run("run", PROGRAM, *options, *(["--toolchain", toolchain] if toolchain else []))
    assert not list(disk.glob(".etscope-*"))
    if not out.exists():
        assert answer.code == 4
        (sentence,) = answer.err.splitlines()
        assert str(disk) in sentence
        assert "No space left on device" in sentence
        assert kib < 12 or toolchain
        return
    report = valid(answer, "run")["data"]
    assert json.loads((out / "run.json").read_text()).items() <= report.items()
    there = {path.name: path.stat().st_size for path in out.iterdir()}
    assert {one["path"]: one["bytes"] for one in report["files"]} == {
        name: size for name, size in there.items() if name != "run.json"
    }
    failure = report["trace"]["failure"]
    missing = [name for name in WANTED if name not in there]
    assert answer.code == (4 if failure else 0)
    assert bool(failure) == bool(missing) or "values.debug ends early" in failure
    assert [name for name in missing if name not in failure] == []
    assert all(bool(one.isfinite().all()) for one in torch.load(out / "outputs.pt"))
    assert len(report["run_ms"]) == 5
    session = load_session([str(PROGRAM), str(out)])
    assert check_session(session).verdict != DO_NOT_BELONG
    untraced = not any(name.endswith(".etdp") for name in there)
    assert ["has no trace" in one.message for one in session.issues] == [True] * untraced


def test_compile_that_does_not_fit_leaves_nothing_and_names_the_file(disk: Path) -> None:
    source = disk / "net.py"
    source.write_text(
        "import torch\n\n\ndef model():\n"
        "    return torch.nn.Linear(64, 512).eval(), (torch.randn(2, 64),)\n"
    )
    _leave(disk, 64)
    answer = run("compile", f"{source}:model", "-o", disk / "out")
    assert answer.code == 4
    assert f"model.pte cannot be written in {disk}: No space left on device" in answer.err
    left = {path.name for path in disk.iterdir()} - {"__pycache__"}  # of Python itself
    assert left == {"full", "net.py"}
