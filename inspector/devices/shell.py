"""A transport through a command that runs a shell on the device, with its standard streams."""

from __future__ import annotations

import secrets
import shlex
from pathlib import Path

from inspector.devices.client import Called, call
from inspector.devices.device import Device
from inspector.devices.errors import DeviceError, in_words
from inspector.devices.transport import Ran

_SHORT = 60.0  # seconds for what is done at once
_SLOWEST = 100_000  # bytes a second of the slowest connection
_LITTLE = 1 << 16


class ShellTransport:
    """Pushes and pulls through ``cat``; subclasses name the command.

    Attributes:
        device: the device
    """

    client = ""

    def __init__(self, device: Device) -> None:
        """Begin; nothing is connected."""
        self.device = device

    def command(self, script: str) -> list[str]:
        """Return the words of the command that runs a script there."""
        raise NotImplementedError

    def describe(self) -> str:
        """Return the device in words."""
        return f"{self.device.transport} {self.device.address}"

    def run(self, script: str, timeout: float, limit: int) -> Ran:
        """Run a script; the exit code comes as the last line, since not every client passes it on.

        Raises: DeviceError
        """
        mark = f"etscope-{secrets.token_hex(8)}"
        found = bytearray()
        whole = f"( {script}\n) 2>&1\nprintf '\\n{mark} %d\\n' $?"
        called = call(self.command(whole), found.extend, timeout=timeout, limit=limit)
        text = found.decode("utf-8", "replace").replace("\r\n", "\n")
        output, known, code = text.rpartition(f"\n{mark} ")
        if not known or not code.strip().isdigit():
            raise self.failed(called, timeout, text)
        return Ran(int(code), output)

    def push(self, local: Path, remote: str) -> None:
        """Copy a file to the device.

        Raises: DeviceError; OSError for a file that cannot be read
        """
        timeout = _SHORT + local.stat().st_size / _SLOWEST
        command = self.command(f"cat > {shlex.quote(remote)}")
        called = call(command, _nothing, timeout=timeout, limit=_LITTLE, feed=local)
        if called.code:
            raise self.failed(called, timeout)

    def pull(self, remote: str, local: Path, size: int) -> None:
        """Copy a file from the device; a part of it is removed.

        Raises: DeviceError, OSError
        """
        timeout = _SHORT + size / _SLOWEST
        command = self.command(f"cat {shlex.quote(remote)}")
        try:
            with local.open("wb") as stream:
                called = call(command, stream.write, timeout=timeout, limit=size)
        except BaseException:
            local.unlink(missing_ok=True)
            raise
        if called.code or local.stat().st_size != size:
            local.unlink()
            raise self.failed(called, timeout)

    def remove(self, remote: str) -> None:
        """Remove a file or a folder.

        Raises: DeviceError
        """
        ran = self.run(f"rm -rf -- {shlex.quote(remote)}", _SHORT, _LITTLE)
        if ran.code:
            raise self.error(in_words(ran.output, **self.facts()), ran.output)

    def failed(self, called: Called, timeout: float, output: str = "") -> DeviceError:
        """Return why the client failed."""
        text = f"{output}\n{called.error}"
        if called.timed_out:
            return self.error(f"it did not finish within {timeout:g} s", text)
        if called.too_much:
            return self.error("it sent more than there was to expect", text)
        if not called.error.strip():
            return self.error(in_words("Broken pipe", **self.facts()), text)
        return self.error(in_words(text, **self.facts()), text)

    def error(self, sentence: str, details: str = "") -> DeviceError:
        """Return an error that names the device."""
        return DeviceError(f"{self.device.describe()}: {sentence}", details=details)

    def facts(self) -> dict[str, str]:
        """Return the name of the device for messages."""
        device = self.device
        return {
            "name": device.name,
            "client": self.client,
            "address": device.address,
            "folder": device.place,
        }


def _nothing(_data: bytes) -> None:
    pass
