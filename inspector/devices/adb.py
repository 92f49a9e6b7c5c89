"""Devices reached with the adb client of this machine: phones and emulators."""

from __future__ import annotations

from pathlib import Path

from typing_extensions import override

from inspector.devices.client import Called, call
from inspector.devices.device import Device
from inspector.devices.shell import ShellTransport

_SECONDS, _LITTLE, _SLOWEST = 60.0, 1 << 16, 100_000


class AdbTransport(ShellTransport):
    """Scripts through ``adb shell``, files through ``adb push`` and ``adb pull``."""

    client = "adb"

    def __init__(self, device: Device) -> None:
        """Begin; a device of the network is connected before it is first used."""
        super().__init__(device)
        self._is_connected = ":" not in device.address

    @override
    def command(self, script: str) -> list[str]:
        self._connect()
        return ["adb", "-s", self.device.address, "shell", script]

    @override
    def push(self, local: Path, remote: str) -> None:
        """Copy a file to the device."""
        self._copy(["push", str(local), remote], local.stat().st_size)

    @override
    def pull(self, remote: str, local: Path, size: int) -> None:
        """Copy a file from the device; a part of it is removed."""
        try:
            self._copy(["pull", remote, str(local)], size)
        except BaseException:
            local.unlink(missing_ok=True)
            raise
        if local.stat().st_size != size:
            local.unlink()
            raise self.failed(Called(1, ""), _SECONDS)

    def _copy(self, words: list[str], size: int) -> None:
        self._connect()
        timeout = _SECONDS + size / _SLOWEST
        called, message = self._called(["-s", self.device.address, *words], timeout)
        if called.code:
            raise self.failed(called, timeout, message)

    def _connect(self) -> None:
        if self._is_connected:
            return
        called, message = self._called(["connect", self.device.address], _SECONDS)
        if called.code or "connected to" not in message:  # older clients fail with the exit code 0
            raise self.failed(Called(1, called.error or message), _SECONDS, message)
        self._is_connected = True

    def _called(self, words: list[str], timeout: float) -> tuple[Called, str]:
        message = bytearray()
        called = call(["adb", *words], message.extend, timeout=timeout, limit=_LITTLE)
        return called, message.decode("utf-8", "replace")
