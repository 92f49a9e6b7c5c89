"""Progress of a job on a terminal: one line per stage on standard error."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from typing import TextIO

from inspector.cli.text import printable, wants_colour
from inspector.jobs.messages import Counted, Expected, Log, Message, StageProgress, Warned
from inspector.tables.runs import expected_text

_CLEAR, _DIM, _PLAIN = "\r\x1b[K", "\x1b[2m", "\x1b[0m"

_CANCELS, _STOPS = "Ctrl+C cancels", "Ctrl+C ends with the runs there are"
_CRASH = "Fatal Python error"


class Progress:
    """Writes stages to a terminal, and what the user's code prints to any stream.

    Attributes:
        warnings: those that came
        stoppable: stages that Ctrl+C ends with partial results
    """

    def __init__(
        self, stream: TextIO, runs_code: str = "", *, verbose: bool = False, logs: bool = True
    ) -> None:
        """Begin.

        Args:
            stream: standard error
            runs_code: file of Python code that will be run, which is reported first
            verbose: write finished stages to a stream that is not a terminal, too
            logs: write what is printed and logged, also if not verbose; False where no code of
                the user runs
        """
        self._stream = stream
        self._live = stream.isatty()
        self._colour = wants_colour(stream)
        self._verbose, self._logs, self._crashed = verbose, logs, False
        self._lines = self._live or verbose
        self.warnings: list[Warned] = []
        self.stoppable: tuple[str, ...] = ()
        self._begun: StageProgress | None = None
        self._counted: Counted | None = None
        self._since = 0.0
        if self._lines and runs_code:
            self._write(f"this runs the code in {runs_code}")
        self._begin(StageProgress("start"))

    def show(self, messages: Sequence[Message]) -> None:
        """Show the messages."""
        for message in messages:
            if isinstance(message, Log):
                self._crashed |= message.text.startswith(_CRASH)
                hidden = self._crashed or message.library or not self._logs
                if self._verbose or not hidden:
                    start = f"{message.logger}: " if message.logger else ""
                    for line in message.text.splitlines() or [""]:
                        self._write(f"{start}{line}")
            elif isinstance(message, StageProgress):
                self._stage(message)
            elif isinstance(message, Counted):
                self._counted = message
            elif isinstance(message, Expected):
                self._write(f"{expected_text(message)}; {_STOPS if self.stoppable else _CANCELS}")
            elif isinstance(message, Warned):
                self.warnings.append(message)
        if self._begun is not None:
            self._draw()

    def note(self, text: str) -> None:
        """Write a line where finished stages are written."""
        if self._lines:
            self._write(text)

    def say(self, text: str) -> None:
        """Write a line to any stream."""
        self._write(text)

    def end(self) -> None:
        """Leave the last line clean."""
        self._begun = None
        if self._live and self._colour:
            self._stream.write(_CLEAR)
            self._stream.flush()

    def write_warnings(self) -> None:
        """Write the warnings, for when there will be no answer to hold them."""
        for warning in self.warnings:
            place = f"{warning.file}:{warning.line}: " if warning.file else ""
            self._write(f"etscope: warning: {place}{warning.text}")

    def _stage(self, stage: StageProgress) -> None:
        if stage.seconds is None:
            self._begin(stage)
            return
        self._begun = None
        if self._lines:
            nodes = f"{stage.nodes:>9,} nodes" if stage.nodes is not None else ""
            self._write(f"{_named(stage):<28} {stage.seconds:>9.3f} s {nodes}".rstrip())

    def _begin(self, stage: StageProgress) -> None:
        self._begun, self._since, self._counted = stage, time.monotonic(), None

    def _write(self, text: str) -> None:
        clear = _CLEAR if self._live and self._colour else ""
        self._stream.write(f"{clear}{printable(text)}\n")
        self._stream.flush()

    def _draw(self) -> None:
        """Draw the line of the running stage, which the next one replaces."""
        if not (self._live and self._colour and self._begun):
            return
        waited = time.monotonic() - self._since
        at = self._counted
        far = f"  {at.done:,} of {at.total:,}" if at is not None else ""
        interrupt = _STOPS if self._begun.stage in self.stoppable else _CANCELS
        text = f"{_named(self._begun):<28} {waited:>9.1f} s{far}  {interrupt}"
        width = shutil.get_terminal_size((80, 24)).columns - 1
        self._stream.write(f"{_CLEAR}{_DIM}{printable(text)[:width]}{_PLAIN}")
        self._stream.flush()


def _named(stage: StageProgress) -> str:
    return f"{stage.stage} {stage.method}".rstrip()
