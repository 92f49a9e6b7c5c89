"""Platform hooks, replaceable at run time: clock, log, memory, abort."""

from __future__ import annotations

import mmap
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NoReturn


class LogLevel(IntEnum):
    """Severity of a message."""

    DEBUG = 0
    INFO = 1
    ERROR = 2
    FATAL = 3


@dataclass(frozen=True, slots=True)
class LogMessage:
    """A log message of the runtime.

    Attributes:
        level: severity
        text: one sentence
        time_ns: of the platform's clock
    """

    level: LogLevel
    text: str
    time_ns: int


def _silent(_message: LogMessage) -> None:
    """Drop a message: errors are raised as exceptions too."""


def _aborted() -> NoReturn:
    sys.exit("the runtime was aborted")


@dataclass(frozen=True, slots=True)
class Platform:
    """The hooks.

    Attributes:
        clock: returns nanoseconds
        log: receives messages
        allocate: returns that many zero bytes; may raise OSError
        abort: ends the process; the runtime never calls it
    """

    clock: Callable[[], int] = time.perf_counter_ns
    log: Callable[[LogMessage], None] = _silent
    allocate: Callable[[int], mmap.mmap] = lambda size: mmap.mmap(-1, size)
    abort: Callable[[], NoReturn] = _aborted


_hooks = [Platform()]


def current() -> Platform:
    """Return the current hooks."""
    return _hooks[-1]


def register(**hooks: Any) -> Platform:  # noqa: ANN401 - see Platform
    """Replace hooks; return the previous ones, for `restore`."""
    before = _hooks[-1]
    _hooks[-1] = replace(before, **hooks)
    return before


def restore(platform: Platform) -> None:
    """Install hooks that `register` returned."""
    _hooks[-1] = platform


@contextmanager
def replaced(**hooks: Any) -> Generator[Platform, None, None]:  # noqa: ANN401 - see Platform
    """Replace hooks within a context."""
    before = register(**hooks)
    try:
        yield current()
    finally:
        restore(before)


def clock() -> int:
    """Return the time in nanoseconds."""
    return _hooks[-1].clock()


def log(level: LogLevel, text: str) -> None:
    """Log a message."""
    hooks = _hooks[-1]
    if hooks.log is not _silent:
        hooks.log(LogMessage(level, text, hooks.clock()))
