"""Devices reached with the OpenSSH client of this machine, its configuration and its keys."""

from __future__ import annotations

import shlex

from typing_extensions import override

from inspector.devices.shell import ShellTransport

_OPTIONS = (
    "BatchMode=yes",  # nobody is there to type a password
    "ConnectTimeout=10",
    "ServerAliveInterval=5",  # seconds; a cable that was pulled is noticed after three
    "ServerAliveCountMax=3",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "LogLevel=ERROR",
)


class SshTransport(ShellTransport):
    """Scripts through ``ssh HOST``; the remote shell gets one quoted word for ``sh -c``."""

    client = "ssh"

    @override
    def command(self, script: str) -> list[str]:
        options = [word for one in _OPTIONS for word in ("-o", one)]
        config = ["-F", self.device.config] if self.device.config else []
        words = f"exec sh -c {shlex.quote(script)}"
        return ["ssh", "-T", *config, *options, "--", self.device.address, words]
