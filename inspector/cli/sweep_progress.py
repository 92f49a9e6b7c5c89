"""Progress of a sweep on a terminal: one line per point on standard error."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from typing import TextIO

from inspector.cli.text import printable, wants_colour
from inspector.experiments.sweeps.engine import Sweep
from inspector.experiments.sweeps.grid import value_text
from inspector.experiments.sweeps.results import PointResult, Status
from inspector.units import format_elapsed

_CLEAR, _DIM, _PLAIN = "\r\x1b[K", "\x1b[2m", "\x1b[0m"


class SweepProgress:
    """Writes finished points, and draws a line with the running ones."""

    def __init__(self, stream: TextIO, total: int, *, verbose: bool = False) -> None:
        """Begin.

        Args:
            stream: standard error
            total: number of points
            verbose: write points to a stream that is not a terminal, too
        """
        self._stream, self._total = stream, total
        self._live = stream.isatty() and wants_colour(stream)
        self._lines = stream.isatty() or verbose
        self._since = time.monotonic()

    def show(self, sweep: Sweep, ended: Sequence[PointResult]) -> None:
        """Show the finished and running points."""
        if self._lines:
            for one in ended:
                self._write(self._line(sweep, one))
        if self._live:
            self._draw(sweep)

    def end(self, sentence: str = "") -> None:
        """Leave the last line clean, and write a last line."""
        if self._live:
            self._stream.write(_CLEAR)
            self._stream.flush()
        if sentence:
            self._write(f"etscope: {sentence}")

    def _line(self, sweep: Sweep, one: PointResult) -> str:
        what = ", ".join(f"{name}={value_text(value)}" for name, value in one.changes.items())
        words = one.sentence if one.status is Status.FAILED else "done"
        return f"{self._total - sweep.left:>5,} of {self._total:,}  {what}: {words}"

    def _write(self, text: str) -> None:
        clear = _CLEAR if self._live else ""
        self._stream.write(f"{clear}{printable(text)}\n")
        self._stream.flush()

    def _draw(self, sweep: Sweep) -> None:
        spent = format_elapsed(time.monotonic() - self._since)
        done = self._total - sweep.left
        at_work = "; ".join(sweep.at_work())
        text = f"{done:,} of {self._total:,}  {spent}  Ctrl+C keeps what is done  {at_work}"
        width = shutil.get_terminal_size((80, 24)).columns - 1
        self._stream.write(f"{_CLEAR}{_DIM}{printable(text)[:width]}{_PLAIN}")
        self._stream.flush()
