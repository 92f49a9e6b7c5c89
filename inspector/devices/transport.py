"""How a device is reached: one protocol, and a table of its implementations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from inspector.devices.device import ADB, COMMAND, SSH, Device
from schema.backends import resolve


@dataclass(frozen=True, slots=True)
class Ran:
    """How a script ended on a device.

    Attributes:
        code: its exit code as in a shell
        output: what it printed
    """

    code: int
    output: str


class Transport(Protocol):
    """Runs scripts of a POSIX shell on a device and moves files; errors are ``DeviceError``."""

    def describe(self) -> str:
        """Return the device in words, as in ``ssh pi.local``."""
        ...

    def run(self, script: str, timeout: float, limit: int) -> Ran:
        """Run a script to its end; it is killed when the connection is lost.

        Args:
            script: of a POSIX shell; whatever it contains is quoted by the caller
            timeout: seconds
            limit: largest number of bytes that it may print
        """
        ...

    def push(self, local: Path, remote: str) -> None:
        """Copy a file to a device; a lost connection may leave a part of it."""
        ...

    def pull(self, remote: str, local: Path, size: int) -> None:
        """Copy a file from a device, and nothing else than its ``size`` bytes."""
        ...

    def remove(self, remote: str) -> None:
        """Remove a file or a folder with all that is in it, if it is there."""
        ...


_TRANSPORTS = {
    SSH: "inspector.devices.ssh:SshTransport",
    ADB: "inspector.devices.adb:AdbTransport",
    COMMAND: "inspector.devices.command:CommandTransport",
}


def transport_of(device: Device) -> Transport:
    """Return the transport of a device; nothing is connected yet."""
    found: Transport = resolve(_TRANSPORTS[device.transport])(device)
    return found
