"""OpenSSH's server on the loopback address, with keys and a configuration of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin") or ""
SEPARATION = Path("/run/sshd")  # an empty folder that a server of the superuser asks for


def why_not() -> str:
    """Return why there is no server here, empty if there is one."""
    if not (SSHD and shutil.which("ssh") and shutil.which("ssh-keygen")):
        return "this system has no sshd (Debian: apt-get install openssh-server)"
    if os.geteuid() == 0 and not SEPARATION.is_dir():
        try:
            SEPARATION.mkdir(mode=0o755, parents=True)
        except OSError:
            return f"sshd of the superuser needs {SEPARATION}"
    return ""


class Server:
    """A running server.

    Attributes:
        config: for the client; the host is called ``box``
        folder: with its keys
    """

    def __init__(self, folder: Path) -> None:
        """Create keys, start it, and wait until it listens."""
        self.folder = folder
        for name in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(command, check=True)
        self.port = free_port()
        self.config = folder / "client"
        server = folder / "server"
        server.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\n"
            f"AuthorizedKeysFile {folder}/user.pub\nPidFile none\nUsePAM no\nStrictModes no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        )
        key = (folder / "host.pub").read_text()
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {key}")
        self.config.write_text(
            f"Host *\n  HostName 127.0.0.1\n  Port {self.port}\n  User {getpass.getuser()}\n"
            f"  IdentityFile {folder}/user\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {folder}/known\n  GlobalKnownHostsFile none\n"
            "  StrictHostKeyChecking yes\n"
        )
        log = (folder / "log").open("wb")
        with log:
            command = [SSHD, "-D", "-e", "-f", str(server)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait()

    def unplug(self) -> None:
        """End the processes that serve connections, as a pulled cable does."""
        for pid in children(self._process.pid):
            for one in [*children(pid), pid]:
                if "sshd" in Path(f"/proc/{one}/comm").read_text():
                    os.kill(one, signal.SIGKILL)

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(10)

    def _wait(self) -> None:
        until = time.monotonic() + 10
        while time.monotonic() < until and self._process.poll() is None:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError((self.folder / "log").read_text())


def serving(folder: Path) -> Iterator[Server]:
    """Yield a server; ended afterwards."""
    server = Server(folder)
    yield server
    server.stop()


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    listing = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(one) for one in listing.read_text().split()] if listing.exists() else []


def free_port() -> int:
    """Return a port of the loopback address that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
