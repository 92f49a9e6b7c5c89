"""The cause of an error: what a vendor's tool has to report, without what was wrapped around it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Generator, Sequence
from typing import Any, TextIO, cast

_SHOWN = 400  # characters


class ToolExitError(Exception):
    """A vendor's tool that ended the process instead of raising: it read options of its own."""


class _LastLine:
    """A stream that writes to another one, and keeps the last line."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - whatever stands for sys.stderr
        self._stream = stream
        self.line = ""
        self._open = ""

    def write(self, text: str) -> int:
        """Write text."""
        *whole, self._open = (self._open + text).split("\n")
        self.line = next((one for one in reversed(whole) if one.strip()), self.line)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._stream, name)


@contextlib.contextmanager
def telling_exits() -> Generator[None, None, None]:
    """Raise an exit of a vendor's tool as an error with the last line that it wrote.

    Raises: ToolExitError
    """
    last = _LastLine(sys.stderr)
    try:
        with contextlib.redirect_stderr(cast("TextIO", last)):
            yield
    except SystemExit as error:
        words = error.code if isinstance(error.code, str) else last.line
        raise ToolExitError(words.strip() or f"exit with code {error.code}") from None


def innermost(error: BaseException) -> str:
    """Return the first cause of an error as one line, with its class.

    An error that reports one of another process is a sentence with the class of that already.
    """
    found: BaseException = error
    seen = {id(found)}
    while True:
        cause = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
        if cause is None or id(cause) in seen:
            break
        seen.add(id(cause))
        found = cause
    text = " ".join(str(found).split())
    if isinstance(found, subprocess.CalledProcessError):
        return _of_command(found)
    if isinstance(found, ToolExitError) or getattr(found, "is_report", False):
        return text[:_SHOWN]
    return f"{type(found).__name__}: {text[:_SHOWN]}".rstrip(": ")


def _of_command(error: subprocess.CalledProcessError) -> str:
    """Return the last line that a command wrote, with its name; its code if it wrote nothing."""
    given: Any = error.cmd
    is_one = not isinstance(given, (list, tuple))
    command = str(given if is_one else cast("Sequence[object]", given)[0]).rpartition("/")[2]
    written = (error.stderr, error.stdout)
    texts = [one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in written]
    lines = [line.strip() for text in texts for line in (text or "").splitlines()[::-1]]
    last = next(filter(None, lines), f"ended with exit code {error.returncode}")
    return f"{command}: {last[:_SHOWN]}"
