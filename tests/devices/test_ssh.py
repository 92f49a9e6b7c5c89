"""Runs by OpenSSH, through its server on the loopback address."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inspector.devices.device import Device, store_device
from inspector.devices.errors import DeviceError
from inspector.devices.remote import RemoteFolder
from inspector.devices.transport import transport_of
from tests.devices import sshd
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA

WHY_NOT = sshd.why_not() if os.name == "posix" else "needs a POSIX system"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-"),
]

RUNNER = Path(__file__).with_name("runner.py")
FLAGS = (
    "--model_path={program} --inputs={inputs} --output_file={output} --num_executions={runs}"
    " --warmup={warmup} --etdump_path={etdump} --debug_output_path={debug_buffer}"
)
MODEL = DATA / "extra" / "deep_mlp"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Server]:
    yield from sshd.serving(tmp_path_factory.mktemp("sshd"))


@pytest.fixture(scope="module")
def device(server: sshd.Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Device]:
    """A device by ssh whose files are in a folder with an awkward name."""
    patch = pytest.MonkeyPatch()
    base = tmp_path_factory.mktemp("device")
    patch.setenv("XDG_CONFIG_HOME", str(base / "config"))
    runner = f"{sys.executable} {RUNNER} --server={base}/runner {FLAGS}"
    folder = str(base / "$(touch oops) 'a' \"b\"; touch oops")
    found = Device("box", "ssh", "box", runner, folder, config=str(server.config))
    store_device(found, new=True)
    yield found
    patch.undo()
    assert not list(base.rglob("oops"))


def stored(device: Device, **changes: object) -> Device:
    """Store a variant of a device under another name."""
    found = replace(device, name="other", **changes)  # type: ignore[arg-type]
    store_device(found, new=False)
    return found


def shell_runner(tmp_path: Path, text: str) -> str:
    """A runner of a few lines of shell, which needs no torch."""
    path = tmp_path / "runner.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return f"{path} {FLAGS}"


@pytest.fixture(scope="module")
def loaded(device: Device) -> Iterator[None]:
    """The process that the runner of the device forks, so that torch is imported once."""
    path = re.search("--server=([^ ]+)", device.runner)
    assert path is not None
    command = [sys.executable, str(RUNNER), "--serve", path[1]]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not Path(path[1]).exists():
        assert process.poll() is None
        time.sleep(0.05)
    yield
    process.terminate()
    process.wait(10)


@pytest.mark.interop
@pytest.mark.usefixtures("loaded")
def test_a_run_by_ssh_is_a_session_with_trace_values_and_gap(
    device: Device, tmp_path: Path
) -> None:
    program = tmp_path / "a; touch oops $(touch oops).pte"
    shutil.copy(MODEL / "model.pte", program)
    shutil.copy(MODEL / "model.etrecord", tmp_path)
    folder = tmp_path / "run"
    options = ["--runs", "2", "--warmup", "1", "--debug-level", "intermediate"]
    answer = run("run", program, "--device", "box", "-o", folder, *options, "--format", "json")
    report = valid(answer, "run")["data"]
    assert (answer.code, report["device"]["name"], report["clock"]) == (0, "box", "ns")
    assert len(report["device"]["pushed"]) == 2
    assert report["trace"]["recorded"]
    assert report["memory"]["peak_bytes"] > 1 << 20
    assert len(report["run_ms"]) == len(report["traced_run_ms"]) == 2
    files = {one["path"] for one in report["files"]}
    assert files == {"inputs.pt", "outputs.pt", "run.etdp", "values.etdp", "values.debug"}
    gap = valid(run("gap", program, tmp_path / "model.etrecord", folder, "--format", "json"), "gap")
    assert gap["data"]["coverage"]["compared"] == gap["data"]["coverage"]["instruction_outputs"] > 0
    assert gap["data"]["first_divergence"] is None
    profile = run("profile", program, folder, "--format", "json").json["data"]
    (times,) = profile["methods"].values()
    assert times["runs"] == 2
    assert not list(Path.cwd().glob("oops"))
    assert not list(tmp_path.rglob("oops"))


def test_a_second_run_pushes_nothing_and_a_runner_without_tracing_is_named(
    device: Device, tmp_path: Path
) -> None:
    runner = "printf '%1024s' '' > output-0.bin; echo 'Iteration 1 of 1: 0.25 ms'"
    stored(device, runner=shell_runner(tmp_path, runner))
    options = ["--runs", "1", "--device", "other", "--format", "json"]
    for number in range(2):
        answer = run("run", MODEL / "model.pte", "-o", tmp_path / f"run{number}", *options)
        report = valid(answer, "run")["data"]
        assert report["run_ms"] == [0.25]
        assert not report["trace"]["recorded"]
        assert any("EXECUTORCH_ENABLE_EVENT_TRACER" in text for text in report["warnings"])
    assert report["device"]["pushed"] == []


def test_an_unplugged_device_is_one_sentence_and_nothing_is_lost(
    device: Device, server: sshd.Server, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text('{"files": []}')
    (folder / "run.etdp").write_bytes(b"of before")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    sign = tmp_path / "pid"
    stored(device, runner=shell_runner(tmp_path, f"echo $$ > {sign}; exec sleep 60"))

    def pull_the_cable() -> None:
        while not (sign.exists() and sign.read_text().strip()):
            time.sleep(0.02)
        server.unplug()

    thread = threading.Thread(target=pull_the_cable)
    thread.start()
    answer = run("run", MODEL / "model.pte", "-o", folder, "--force", "--device", "other")
    thread.join()
    assert answer.code == 4
    assert len(answer.err.strip().splitlines()) == 1
    assert "other (ssh box): the connection was lost" in answer.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert _ends(int(sign.read_text()))


def _ends(pid: int) -> bool:
    """Return whether the runner is gone within a moment."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        status = Path(f"/proc/{pid}/stat")
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def opened(device: Device) -> None:
    RemoteFolder(device, transport_of(device)).open()


def test_what_keeps_ssh_from_connecting_is_said(
    device: Device, server: sshd.Server, tmp_path: Path
) -> None:
    text = server.config.read_text()
    closed = text.replace(f"Port {server.port}", f"Port {sshd.free_port()}")
    other = tmp_path / "other"
    other.write_text((server.folder / "host").read_text())  # a key that is not authorized
    other.chmod(0o600)
    wrong = {
        "is it on": closed,
        "host key is unknown": text.replace("/known", "/none"),
        "must work without a password": text.replace(f"{server.folder}/user", str(other)),
        "unknown host": text.replace("127.0.0.1", "no.such.host.invalid"),
    }
    for words, content in wrong.items():
        config = tmp_path / "client"
        config.write_text(content)
        with pytest.raises(DeviceError, match=words) as found:
            opened(replace(device, config=str(config)))
        assert str(found.value).startswith("box (ssh box): ")
        assert "\n" not in str(found.value)


def test_a_place_that_cannot_be_written_is_said(device: Device) -> None:
    with pytest.raises(DeviceError, match="--folder"):
        opened(replace(device, folder="/proc/nowhere"))


def test_test_and_clean_on_the_command_line(device: Device) -> None:
    answer = run("device", "test", "box", "--format", "json")
    data = valid(answer, "device")["data"]
    assert (answer.code, data["runner"]) == (0, True)
    assert data["facts"]["system"]
    assert json.loads(run("device", "clean", "box", "--format", "json").out)["data"]["freed_bytes"]
    assert not Path(device.folder).exists()
