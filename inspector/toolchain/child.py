"""An interpreter with ``executorch`` as a child process: request, messages, exit."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from inspector.toolchain.crashes import is_code, last_error, last_report

SCRIPT = Path(__file__).parent / "stock" / "__main__.py"
GREETING_SECONDS = 60.0  # a Python interpreter greets within it; torch is imported afterwards
GRACE_SECONDS = 5.0  # then the process is killed
_LOG_SECONDS = 1.0  # that printed output may come after the answer
_MOST_GARBAGE = 1 << 20  # limit of other output before the first message, in bytes
_LONGEST_LINE, _LONGEST_GREETING = 1 << 26, 1 << 16  # bytes of a message
_BEFORE_USERS = ("", "load executorch")  # stages without code of the user
_KEPT_LINES = 200
_INSTALL = "-m pip install executorch"
Say = Callable[..., None]


def ignore_message(_kind: str, **_content: object) -> None:
    """Ignore a message."""


class ToolchainError(Exception):
    """The other toolchain cannot do the request; one sentence.

    Attributes:
        blame: usage, unreadable or failed: its cause
        details: its last output
    """

    def __init__(self, sentence: str, *, blame: str = "failed", details: str = "") -> None:
        self.blame = blame
        self.details = details
        super().__init__(sentence)


class ReportedError(Exception):
    """A failure that the other interpreter has reported itself.

    Attributes:
        is_report: its text is a sentence with the class of the error there
        blame: usage, unreadable or failed: its cause
    """

    is_report = True

    def __init__(self, sentence: str, *, blame: str = "failed") -> None:
        self.blame = blame
        super().__init__(sentence)


@dataclass(frozen=True, slots=True)
class Response:
    """The response of an interpreter.

    Attributes:
        versions: of executorch, torch and Python, and the path of the interpreter
        result: as requested
    """

    versions: Mapping[str, str]
    result: Mapping[str, Any]


def install_hint(python: str) -> str:
    """Return installation instructions of the package."""
    return f"install it with `{python} {_INSTALL}`, or name an interpreter that has it"


def ask(python: str, question: Mapping[str, Any], notify: Say) -> Response:
    """Send a request to the package of an interpreter and wait for the response.

    Args:
        python: path of the interpreter
        question: request in the form of ``stock/answering.py``
        notify: called with messages: stages, warnings, lines of log, and a failure

    Raises: ReportedError if it failed with a reason, ToolchainError for any other end
    """
    with contextlib.closing(Interpreter(python)) as tool:
        return tool.ask(question, notify)


class Interpreter:
    """A running interpreter that answers one question after the other."""

    def __init__(self, python: str) -> None:
        """Start the child process.

        Args:
            python: its path

        Raises: ToolchainError if it cannot be started
        """
        self._python = python
        self._notify: Say = ignore_message
        self._versions: dict[str, str] = {}
        self._result: dict[str, Any] | None = None
        self._message = ""
        self._blame = "failed"
        self._missing: list[str] = []
        self._stage = ""
        self._runs_users_code = False
        self._greeted = threading.Event()
        self._silent = False
        self._garbage = 0
        self._tail: deque[str] = deque(maxlen=_KEPT_LINES)
        try:
            self._process = subprocess.Popen(
                [python, str(SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ToolchainError(f"{python} cannot be started: {why}", blame="usage") from error
        self._log = threading.Thread(target=self._read_log, name="toolchain log", daemon=True)
        self._patience = threading.Timer(GREETING_SECONDS, self._end_if_silent)
        self._patience.daemon = True
        self._log.start()
        self._patience.start()

    def ask(self, question: Mapping[str, Any], notify: Say) -> Response:
        """Return the response to a request; messages are passed to ``notify``.

        Raises: ReportedError if it failed with a reason, ToolchainError for any other end
        """
        self._notify, self._result, self._message, self._stage = notify, None, "", ""
        self._runs_users_code = question.get("do") == "compile"
        if self._greeted.is_set():
            self._tail.clear()  # of an earlier question
        self._hand_over(question)
        self._listen(notify)
        if self._result is None and not self._message:
            self.close()  # the exit status is part of the message
        return self._judged()

    def close(self) -> None:
        """End the process and release everything."""
        self._patience.cancel()
        self._end()
        self._log.join(1.0)

    def _hand_over(self, question: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # one that has exited shows it by its end
            self._process.stdin.write(json.dumps(question, default=list).encode() + b"\n")
            self._process.stdin.flush()

    def _listen(self, notify: Say) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.closed:
            return
        while line := self._process.stdout.readline(self._longest()):
            if not self._taken(line, notify) and not self._greeted.is_set():
                self._garbage += len(line)
                if self._garbage > _MOST_GARBAGE:
                    return
            if self._result is not None or self._message or self._missing:
                return

    def _longest(self) -> int:
        return _LONGEST_LINE if self._greeted.is_set() else _LONGEST_GREETING

    def _taken(self, line: bytes, notify: Say) -> bool:
        """Handle a line; return whether it is a message."""
        try:
            message: dict[str, Any] = json.loads(line)
            kind: str = message.pop("type")
        except (ValueError, KeyError, TypeError, AttributeError):
            return False
        if kind == "hello":
            self._greeted.set()
        elif not self._greeted.is_set():
            return False
        elif kind == "versions":
            self._versions = {name: str(value) for name, value in message.items()}
        elif kind == "missing":
            self._missing = [str(name) for name in message["packages"]]
        elif kind == "finished":
            self._result = message["result"]
        else:
            if kind == "failed":
                self._message = str(message.get("sentence", "")) or "no reason was given"
                self._message += self._reason()
                message["sentence"] = self._message
                self._blame = str(message.get("blame", "")) or "failed"
            if kind == "stage" and message.get("seconds") is None:
                self._stage = str(message.get("stage", ""))
            notify(kind, **message)
        return True

    def _read_log(self) -> None:
        """Forward printed output, as log or unchanged, and store its end."""
        assert self._process.stderr is not None
        stream: IO[bytes] = self._process.stderr
        with stream, contextlib.suppress(OSError, ValueError):
            while line := stream.readline(1 << 16):
                text = line.decode("utf-8", "replace").rstrip("\n")
                self._tail.append(text)
                if not self._runs_users_code or self._stage in _BEFORE_USERS:
                    self._notify("log", text=text)
                else:
                    with contextlib.suppress(OSError):
                        os.write(2, line)

    def _end_if_silent(self) -> None:
        if not self._greeted.is_set():
            self._silent = True
            self._process.kill()

    def _end(self) -> None:
        """End the process: it exits when its standard input ends, or is killed."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(0.0 if self._garbage > _MOST_GARBAGE else GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _judged(self) -> Response:
        """Return the answer, or raise the error instead."""
        if self._message:
            raise ReportedError(self._message, blame=self._blame)
        if self._missing:
            names = " and no ".join(self._missing)
            words = f"{self._python} has no {names}; {install_hint(self._python)}"
            raise ToolchainError(words, blame="usage")
        if self._result is not None:
            return Response(self._versions, self._result)
        details = "\n".join(self._tail)
        if not self._greeted.is_set():
            raise ToolchainError(self._no_python(), blame="usage", details=details)
        ended = _end_text(self._process.returncode)
        stage = f" in stage {self._stage}" if self._stage else ""
        who = f"executorch {self._versions['executorch']}" if self._versions else self._python
        last = last_error(self._tail)
        raise ToolchainError(f"{who} {ended}{stage}{last}", details=details)

    def _reason(self) -> str:
        """Return what the runtime printed about the code it failed with; that comes by itself."""
        if not is_code(self._message):
            return ""
        over = time.monotonic() + _LOG_SECONDS
        while not (found := last_report(list(self._tail))) and time.monotonic() < over:
            time.sleep(0.01)
        return f": {found}" if found else ""

    def _no_python(self) -> str:
        if self._silent:
            output_text = f"no output for {GREETING_SECONDS:.0f} seconds"
        elif self._garbage > _MOST_GARBAGE:
            output_text = "it prints other output endlessly"
        else:
            output_text = f"it {_end_text(self._process.returncode)}{last_error(self._tail)}"
        return f"{self._python} is not a Python interpreter that can run executorch: {output_text}"


def _end_text(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"crashed ({signal.Signals(-code).name})"
    except ValueError:
        return f"crashed (signal {-code})"
