"""Lines of the log, and which of them a filter keeps."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.history import JobEntry, LoggedLine

LEVELS = (
    ("all", "0"),
    ("info and above", str(logging.INFO)),
    ("warnings and errors", str(logging.WARNING)),
    ("errors", str(logging.ERROR)),
)
ALL_JOBS, NO_JOB = "*", ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One message.

    Attributes:
        level: of Python's logging
        text: time, level, origin and message, maybe with a traceback
        job: id of the job it is of, empty for the program itself
        label: kind and subject of the job
    """

    level: int
    text: str
    job: str = NO_JOB
    label: str = ""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which lines are shown.

    Attributes:
        text: words that all occur, or ``/a regular expression/``
        level: the least one
        job: only of this one; ``ALL_JOBS`` for any
    """

    text: str = ""
    level: int = 0
    job: str = ALL_JOBS

    def matcher(self) -> Callable[[LogLine], bool]:
        """Return whether a line is shown.

        Raises: re.error for an invalid expression
        """
        text = self.text.strip()
        if len(text) > 1 and text.startswith("/") and text.endswith("/"):
            found = re.compile(text[1:-1], re.IGNORECASE).search
            return lambda line: self._own(line) and found(line.text) is not None
        words = text.lower().split()
        return lambda line: self._own(line) and all(one in line.text.lower() for one in words)

    def _own(self, line: LogLine) -> bool:
        return line.level >= self.level and self.job in (ALL_JOBS, line.job)


def label_of(entry: JobEntry) -> str:
    """Return kind and subject of a job."""
    return f"{entry.kind} {entry.subject}".rstrip()


def shown_line(entry: JobEntry, line: LoggedLine, *, named: bool = True) -> LogLine:
    """Return a line of a job as the log shows it.

    Args:
        entry: the job
        line: of its log
        named: whether the name of the job stands in it
    """
    moment = time.strftime("%H:%M:%S", time.localtime(line.at))
    label = label_of(entry)
    parts = [moment, f"{logging.getLevelName(line.level):<7}", label if named else "", line.origin]
    words = "  ".join(part for part in (*parts, line.text) if part)
    return LogLine(line.level, words, entry.id, label)
