"""Errors of connections to devices, each with a remedy."""

from __future__ import annotations

import re

_RULES: tuple[tuple[str, str], ...] = (
    (
        r"REMOTE HOST IDENTIFICATION|Host key verification failed|No .* host key is known",
        "its host key is unknown or has changed: connect once by {client} {address} and check it",
    ),
    (
        r"Permission denied \(|Too many authentication failures|[Ll]oad key",
        "it refuses the login: {client} {address} must work without a password, by a key",
    ),
    (
        r"[Cc]ould not resolve hostname|Name or service not known",
        "unknown host: check the address, or the alias in the configuration of {client}",
    ),
    (
        r"closed by remote host|Connection reset|Broken pipe|client_loop|not responding",
        "the connection was lost in the middle; nothing here was changed, so run it again",
    ),
    (
        r"Connection refused|timed out|No route to host|unreachable|Connection closed by"
        r"|kex_exchange|failed to connect|cannot connect to \S+:\d",
        "it cannot be reached: is it on, and in this network?",
    ),
    (
        r"unauthorized|failed to authenticate",
        "adb is not authorized there: accept the key of this machine on its screen",
    ),
    (r"device offline|device .*offline", "adb reports it as offline: plug it in again"),
    (
        r"device '.*' not found|no devices|device not found",
        "adb has no such device: plug it in, allow USB debugging, and see what adb devices lists",
    ),
    (
        r"cannot connect to daemon|failed to start daemon",
        "the adb server does not start: run adb start-server and see what it reports",
    ),
    (
        r"[Nn]o space left on device|ENOSPC|[Dd]isk quota exceeded",
        "its disk is full: etscope device clean {name} removes what was pushed there",
    ),
    (
        r"[Rr]ead-only file system|[Pp]ermission denied|mkdir: ",
        "it does not permit writing to {folder}: name another folder with etscope device edit"
        " {name} --folder",
    ),
)
_SIGNALS = {6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}


class DeviceError(Exception):
    """A device cannot handle the request; one sentence.

    Attributes:
        blame: usage, unreadable or failed: its cause
        details: last output of the client or the runner
    """

    def __init__(self, sentence: str, blame: str = "failed", details: str = "") -> None:
        self.blame = blame
        self.details = details
        super().__init__(sentence)


def in_words(text: str, **facts: str) -> str:
    """Return the message for the output of a client, else its last line.

    Args:
        text: output of the client
        facts: name, client, address and folder of the device
    """
    for pattern, words in _RULES:
        if re.search(pattern, text):
            return words.format(**facts)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else f"{facts['client']} ended without a word"


def runner_failure(code: int, program: str, device: str, output: str) -> str:
    """Return why a runner failed, by the exit code of a shell.

    Args:
        code: from 1
        program: first word of the command
        device: its name
        output: its last lines
    """
    if code == 127:
        words = f"set its path with etscope device edit {device} --runner"
        return f"the runner {program} is not there: {words}"
    if code == 126:
        return (
            f"the runner {program} is not executable there: chmod +x, and build it for this device"
        )
    if code == 137:
        return "the runner was killed (SIGKILL), most likely because memory ran out"
    if code > 128:
        name = _SIGNALS.get(code - 128, f"signal {code - 128}")
        return f"the runner crashed ({name}){_last(output)}"
    if re.search(r"[Nn]o space left", output):
        return "its disk is full while the runner writes: free some space there"
    return f"the runner failed with exit code {code}{_last(output)}"


def _last(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f": {lines[-1][:300]}" if lines else ""
