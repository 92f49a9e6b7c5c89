"""Runs by adb: the real client and server, and a daemon of ours in the place of a phone."""

from __future__ import annotations

import shutil
import subprocess
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
from tests.devices.adb_daemon import Daemon
from tests.devices.sshd import free_port
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.skipif(
    shutil.which("adb") is None, reason="this system has no adb (Debian: apt-get install adb)"
)
FLAGS = "{program} {runs} --inputs={inputs} --output={output} --etdump_path={etdump}"
MODEL = DATA / "extra" / "deep_mlp"


@pytest.fixture(scope="module", autouse=True)
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An adb server of our own, with its keys and log in a folder of the tests."""
    base = tmp_path_factory.mktemp("adb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANDROID_ADB_SERVER_PORT", str(free_port()))
        for name in ("HOME", "TMPDIR", "XDG_CONFIG_HOME"):
            patch.setenv(name, str(base))
        subprocess.run(["adb", "start-server"], check=True, capture_output=True)
        yield
        subprocess.run(["adb", "kill-server"], check=False, capture_output=True)


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    found = Daemon()
    yield found
    found.stop()


def phone(daemon: Daemon, tmp_path: Path, runner: str) -> Device:
    """A phone whose runner is a few lines of shell."""
    path = tmp_path / "runner.sh"
    path.write_text(f"#!/bin/sh\n{runner}\n")
    path.chmod(0o755)
    folder = str(tmp_path / "$(touch oops) 'a'")
    device = Device("phone", "adb", f"127.0.0.1:{daemon.port}", f"{path} {FLAGS}", folder)
    store_device(device, new=False)
    return device


def remote_folder(device: Device) -> RemoteFolder:
    found = RemoteFolder(device, transport_of(device))
    found.open()
    return found


def test_files_and_runs_by_adb(daemon: Daemon, tmp_path: Path) -> None:
    device = phone(daemon, tmp_path, "head -c 300000 $1 > 'a b'; echo ran $2; exit 0")
    local = tmp_path / "$(touch oops) 'x"
    local.write_bytes(bytes(range(256)) * 2000)
    remote = remote_folder(device)
    place = remote.put(local, ".pte")
    remote = remote_folder(device)
    assert (remote.put(local, ".pte"), remote.pushed) == (place, [])
    finished = remote.run({"program": place, "runs": "3"})
    assert (finished.output.strip(), finished.sizes) == ("ran 3", {"a b": 300000})
    assert remote.get(finished, "a b", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == local.read_bytes()[:300000]
    assert remote.facts["system"]
    remote.close(keep=False)
    assert not Path(device.folder).exists()
    assert not list(tmp_path.rglob("oops"))
    assert {one.partition(":")[0].partition(",")[0] for one in daemon.services} == {"shell", "sync"}


@pytest.mark.slow
def test_a_run_by_adb_is_a_session(daemon: Daemon, tmp_path: Path) -> None:
    trace = MODEL / "run.etdp"
    lines = f"""printf '%1024s' '' > output-0.bin
case "$*" in *--etdump_path*) cp {trace} run.etdp;; esac
echo 'Iteration 1 of 1: 0.25 ms'"""
    phone(daemon, tmp_path, lines)
    options = ["--device", "phone", "--runs", "1", "--tidy", "--format", "json"]
    answer = run("run", MODEL / "model.pte", "-o", tmp_path / "run", *options)
    report = valid(answer, "run")["data"]
    assert (report["run_ms"], report["trace"]["recorded"]) == ([0.25], True)
    assert run("profile", MODEL / "model.pte", tmp_path / "run").code == 0


def test_a_phone_that_is_unplugged_in_the_middle(daemon: Daemon, tmp_path: Path) -> None:
    sign = tmp_path / "pid"
    device = phone(daemon, tmp_path, f"echo $$ > {sign}; exec sleep 60")
    remote = remote_folder(device)

    def pull() -> None:
        while not (sign.exists() and sign.read_text().strip()):
            time.sleep(0.02)
        daemon.unplug()

    thread = threading.Thread(target=pull)
    thread.start()
    with pytest.raises(DeviceError, match="connection was lost"):
        remote.run({"program": "p", "runs": "1"})
    thread.join()


def test_what_keeps_adb_from_connecting_is_said(daemon: Daemon, tmp_path: Path) -> None:
    device = phone(daemon, tmp_path, "true")
    with pytest.raises(DeviceError, match="adb has no such device: plug it in"):
        remote_folder(replace(device, address="8A1X0ABCD"))
    with pytest.raises(DeviceError, match="is it on"):
        remote_folder(replace(device, address=f"127.0.0.1:{free_port()}"))
    answer = run("device", "edit", "phone", "--adb", "8A1X0ABCD")
    assert answer.code == 0
    found = run("device", "test", "phone")
    assert (found.code, len(found.err.strip().splitlines())) == (4, 1)


def test_a_client_that_is_not_installed_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for kind, words in (("adb", "platform tools"), ("ssh", "OpenSSH client")):
        with pytest.raises(DeviceError, match=words):
            remote_folder(Device("x", kind, "x"))
