"""What the last lines of an interpreter tell about its end."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SHOWN = 300  # characters of a line that is told
_FATAL = "Fatal Python error"  # the stack of a crash follows
_ABORTED = f"{_FATAL}: Aborted"  # with what was printed before it
_CURRENT = ("Current thread ", "Stack (most recent call first)")
_FRAME = re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+) in (?P<name>.+)')
_RUNTIME = re.compile(r"\[[\w.]+:\d+\] |[EF] [\d:. ]+executorch:")
_OF_START = re.compile(r"cpuinfo|threadpool")  # reports of what is there, not of errors
_CODE = re.compile(r"failed with error 0x[0-9a-f]+$")
_NOISE = re.compile(r"Failed to load .*\.so\b")  # of extensions for other machines, as torchao has
_PACKAGES = re.compile(r".*/(?:site|dist)-packages/")


def last_error(printed: Sequence[str]) -> str:
    """Return where and why an interpreter has ended, to stand behind how it did.

    Of a crash these are the innermost calls of Python and the last error of the runtime, if it
    reported one; else the last printed line. Empty where it printed nothing.
    """
    lines = [line.strip() for line in printed if line.strip() and not _NOISE.search(line)]
    fatal = next((at for at, line in enumerate(lines) if line.startswith(_FATAL)), len(lines))
    stack, before = lines[fatal:], lines[:fatal]
    reported = _reports(before)
    place = _place(stack)
    told_itself = not place or stack[0].startswith(_ABORTED)
    chosen = reported or (before if told_itself else [])
    return place + (f": {chosen[-1][:_SHOWN]}" if chosen else "")


def is_code(message: str) -> bool:
    """Return whether an error of the runtime is a code alone, whose reason it has printed."""
    return _CODE.search(message) is not None


def last_report(printed: Sequence[str]) -> str:
    """Return the last line that the runtime printed about an error, may be empty."""
    found = _reports([line.strip() for line in printed])
    return found[-1][:_SHOWN] if found else ""


def _reports(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if _RUNTIME.match(line) and not _OF_START.search(line)]


def _place(stack: Sequence[str]) -> str:
    """Return the two innermost calls of the thread that crashed, empty without a stack."""
    at = next((at for at, line in enumerate(stack) if line.startswith(_CURRENT)), len(stack))
    calls: list[str] = []
    for line in stack[at + 1 : at + 3]:
        found = _FRAME.match(line)
        if found is None:
            break
        path = found["path"]
        file = _PACKAGES.sub("", path) if _PACKAGES.match(path) else path.rpartition("/")[2]
        calls.append(f"{found['name']} ({file}, line {found['line']})")
    return f" in {', called by '.join(calls)}" if calls else ""
