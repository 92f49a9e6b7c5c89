"""Collects the log of a partitioner: its reasons for rejecting nodes."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import sys
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import TextIO

_PACKAGE, _ROOT = "executorch", "root"  # some backends log to the root itself
_WHY = re.compile(r"Node (?P<node>\S+) was not partitioned because (?P<reason>.+?)\.?$", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")
_OPERATOR = re.compile(r"(?<!torch\.)\b(?:torch\.ops\.)?(\w+\.\w+\.\w+)")
_REFUSAL = re.compile(r"skip|not support|unsupported|reject|fall|due to|because", re.IGNORECASE)
_CELL = "│"  # of a table of rejected nodes
_PRINTED = "printed"
_LONGEST = 400  # characters of a reason
_MOST = 3  # reasons of a node


@dataclass(frozen=True)
class LoggedReason:
    """A reason.

    Attributes:
        text: as logged
        logger: name of the logger
    """

    text: str
    logger: str


class Harvest(logging.Handler):
    """A log handler that keeps messages about nodes.

    Attributes:
        found: reasons by name of a node, or of an operator if no node is named
    """

    def __init__(
        self,
        names: Iterable[str],
        notify: Callable[..., None],
        others: Iterable[logging.Handler] = (),
    ) -> None:
        """Store the names of nodes and operators.

        Args:
            names: of both
            notify: called with log lines of the job
            others: handlers of the root, for other loggers
        """
        super().__init__(logging.DEBUG)
        self._names = frozenset(names)
        self._notify = notify
        self._others = tuple(others)
        self.found: dict[str, list[LoggedReason]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Handle a log record; warnings are also logged for the job."""
        if record.name.split(".")[0] not in (_PACKAGE, _ROOT):
            for one in self._others:
                if record.levelno >= one.level:
                    one.handle(record)
            return
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - a message whose arguments do not fit it
            text = str(record.msg)
        if not self._explains(record, text):
            for line in text.splitlines():
                self.read_line(line, record.name)
        if record.levelno >= logging.WARNING:
            self._notify("log", text=f"{record.name}: {text}")

    def read_line(self, line: str, logger: str) -> None:
        """Read a line: the row of a table, or one that names a node or an operator."""
        if not self._row(line, logger):
            self._named(line, logger)

    def _explains(self, record: logging.LogRecord, text: str) -> bool:
        """Parse the form of the package: an object with node and reason, or its string."""
        node, reason = getattr(record.msg, "node", None), getattr(record.msg, "reason", None)
        name = getattr(node, "name", None)
        if isinstance(name, str) and isinstance(reason, str):
            self._keep(name, reason, record.name)
            return True
        message = _WHY.search(text)
        if message is None:
            return False
        self._keep(message["node"].lstrip("%"), message["reason"], record.name)
        return True

    def _row(self, line: str, logger: str) -> bool:
        cells = [cell.strip() for cell in line.split(_CELL)[1:-1]]
        if len(cells) < 2 or cells[0] not in self._names:
            return False
        self._keep(cells[0], cells[-1], logger)
        return True

    def _named(self, line: str, logger: str) -> None:
        """Parse a line that names a node, or an operator with a phrase of rejection."""
        nodes = self._names.intersection(_WORD.findall(line))
        operators = self._names.intersection(_OPERATOR.findall(line))
        for name in nodes or (operators if _REFUSAL.search(line) else ()):
            self._keep(name, line.strip(), logger)

    def _keep(self, name: str, text: str, logger: str) -> None:
        kept = self.found.setdefault(name, [])
        short = text.strip()[:_LONGEST]
        if len(kept) < _MOST and all(one.text != short for one in kept):
            kept.append(LoggedReason(short, logger))


class _Prints(io.TextIOBase):
    """Standard output whose lines are read before they are passed on."""

    def __init__(self, harvest: Harvest, out: TextIO) -> None:
        super().__init__()
        self._harvest, self._out, self._line = harvest, out, ""

    def write(self, text: str) -> int:
        """Read full lines, and pass everything on."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._harvest.read_line(line, _PRINTED)
        self._out.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the original output."""
        self._out.flush()


@contextlib.contextmanager
def harvesting(
    names: Iterable[str], notify: Callable[..., None], *, prints: bool = False
) -> Generator[Harvest, None, None]:
    """Attach to the root, and to every logger of the package at debug level.

    Args:
        names: of nodes and operators
        notify: called with log lines of the job
        prints: also read what is printed
    """
    root = logging.getLogger()
    handlers = root.handlers
    handler = Harvest(names, notify, handlers)
    loggers = [
        logging.getLogger(name)
        for name in [_PACKAGE, *logging.root.manager.loggerDict]
        if name.split(".")[0] == _PACKAGE
    ]
    before = [(one, one.level, one.propagate, one.disabled) for one in loggers]
    for one in loggers:
        one.setLevel(logging.DEBUG)
        one.disabled = False
        one.propagate = True
    root.handlers = [handler]
    printed = contextlib.redirect_stdout(_Prints(handler, sys.stdout))
    try:
        with printed if prints else contextlib.nullcontext():
            yield handler
    finally:
        root.handlers = handlers
        for one, level, propagate, disabled in before:
            one.setLevel(level)
            one.propagate, one.disabled = propagate, disabled
