"""Measures how long the GUI thread is busy at a time, and what it does meanwhile."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from PySide6.QtCore import QCoreApplication, QEvent, QObject
from typing_extensions import override

_PERIOD = 0.005  # between two looks at the stack
_FIRST = 0.010  # of a block that is worth a look
_PRODUCT = ("devtools_app", "inspector", "schema")
_INNERMOST = 4  # functions of the product that are named


@dataclass(slots=True, eq=False)
class Block:
    """A time in which the GUI thread answered nothing.

    Attributes:
        step: what the window was asked for
        wall: seconds
        process: processor time of all threads of the process meanwhile
        own: processor time of the GUI thread
        stacks: functions of the product that ran, innermost first, each time it was looked at
    """

    step: str
    wall: float = 0.0
    process: float = 0.0
    own: float = 0.0
    stacks: list[str] = field(default_factory=list[str])

    @property
    def seconds(self) -> float:
        """Return how long the process itself kept the thread.

        Waits for the interpreter that another thread uses are included, those for a processor
        that another process uses are not.
        """
        return min(self.wall, max(self.process, self.own))

    @property
    def what(self) -> str:
        """Return what was seen most often."""
        found = Counter(self.stacks).most_common(1)
        return f"{found[0][0]} ({found[0][1]} of {len(self.stacks)})" if found else "not seen"


class _Ping(QEvent):
    """Asks the GUI thread to answer; it does once it is done with what came before."""

    KIND = QEvent.Type(QEvent.registerEventType())

    def __init__(self) -> None:
        super().__init__(self.KIND)


class Watchdog(QObject):
    """Posts an event to its own thread every few milliseconds, and measures until it is handled.

    Another thread posts and, while it waits for the answer, looks at the stack.

    Attributes:
        blocks: the waits that took longer than the least
        step: name of what is done, for the next blocks
    """

    def __init__(self, least: float) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self.step = ""
        self._least = least
        self._thread_id = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread_id)
        self._answered = threading.Event()
        self._ended = threading.Event()
        self._began = self._last = self._clocks()
        self._left_out = 0.0  # since the last answer
        self._stacks: list[str] = []
        self._watcher = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Begin to measure."""
        self._last = self._clocks()
        self._watcher.start()

    def stop(self) -> None:
        """Measure no more."""
        self._ended.set()
        self._answered.set()
        self._watcher.join()

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """Leave what the measurement itself does on the GUI thread out of its blocks."""
        began = self._clocks()[2]
        yield
        self._left_out += self._clocks()[2] - began

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() != _Ping.KIND:
            return super().event(event)
        wall, process, own = now = self._clocks()
        began, last = self._began, self._last
        # before the event was posted the thread may have been idle: its own time counts
        before = max(began[2] - last[2], 0.0) - self._left_out
        block = Block(self.step, wall - began[0] + before, process - began[1] + before)
        block.own, block.stacks = own - last[2] - self._left_out, self._stacks
        self._left_out = 0.0
        if block.wall >= self._least:
            self.blocks.append(block)
        self._last = now
        self._answered.set()
        return True

    def _watch(self) -> None:
        while not self._ended.wait(_PERIOD):
            self._began, self._stacks = self._clocks(), []
            stacks = self._stacks
            self._answered.clear()
            QCoreApplication.postEvent(self, _Ping())
            while not self._answered.wait(_PERIOD):
                if self._ended.is_set():  # set meanwhile: no event is handled any more
                    break
                if time.perf_counter() - self._began[0] > _FIRST:
                    stacks.append(_described(sys._current_frames().get(self._thread_id)))

    def _clocks(self) -> tuple[float, float, float]:
        """Return the time, and the processor time of the process and of the GUI thread."""
        return time.perf_counter(), time.process_time(), time.clock_gettime(self._clock)


def _described(frame: FrameType | None) -> str:
    """Return the innermost functions of the product on a stack."""
    found: list[str] = []
    while frame is not None and len(found) < _INNERMOST:
        path = Path(frame.f_code.co_filename)
        if any(part in _PRODUCT for part in path.parts[-5:]):
            found.append(f"{path.stem}.{frame.f_code.co_name}:{frame.f_lineno}")
        elif not found and frame.f_code.co_filename.startswith("<frozen importlib"):
            found.append("import")
        frame = frame.f_back
    return " < ".join(found)
