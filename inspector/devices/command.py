"""Devices reached with a command of the user, such as ``docker exec -i box sh -c {command}``."""

from __future__ import annotations

import shlex

from typing_extensions import override

from inspector.devices.errors import DeviceError
from inspector.devices.shell import ShellTransport


class CommandTransport(ShellTransport):
    """Scripts as one word of a command, which a shell at its other end runs."""

    client = "the command"

    @override
    def command(self, script: str) -> list[str]:
        try:
            words = shlex.split(self.device.address)
        except ValueError as error:
            raise DeviceError(f"the command of {self.device.name}: {error}", "usage") from None
        return [word.replace("{command}", script) for word in words]
