"""Compares threads of a run with available cores: too many make times long and unsteady."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from schema.objects.plural import plural

_STAT = Path("/proc/stat")
_LEAST_SECONDS = 0.2  # the kernel counts in ticks of 10 ms
_LEAST_BUSY = 0.5  # cores used by other processes; less is normal for an idle desktop


def oversubscribed(threads: int, cores: int, others: float | None) -> str:
    """Return a warning if there are fewer free cores than threads, else an empty string.

    Args:
        threads: of the run
        cores: available to it
        others: number of cores kept busy by other processes; None if unknown
    """
    if threads > cores:
        return (
            f"{threads} threads share {plural(cores, 'core')} that this process may use: times are"
            f" longer than they need be; --threads {cores} uses one thread a core"
        )
    if threads < 2 or others is None or others < _LEAST_BUSY:
        return ""
    free = cores - others
    if threads <= free + _LEAST_BUSY:
        return ""
    where = f"{plural(cores, 'core')} with other processes"
    return (
        f"{threads} threads share {where}, which kept {others:.1f}"
        f" of them busy: times are long and unsteady; try --threads {max(1, round(free))}"
    )


class Others:
    """Measures how many cores other processes keep busy, starting with its creation."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._busy = _busy_seconds()
        self._own = _own_seconds()

    def busy_cores(self) -> float | None:
        """Return the mean number of cores; None if unknown, or the time is too short."""
        seconds = time.monotonic() - self._start
        busy = _busy_seconds()
        if busy is None or self._busy is None or seconds < _LEAST_SECONDS:
            return None
        own = _own_seconds() - self._own
        return max(0.0, (busy - self._busy - own) / seconds)


def busy_cores(windows: Sequence[Others]) -> float | None:
    """Return how many cores others kept busy in the latest sufficiently long window."""
    found = (window.busy_cores() for window in reversed(windows))
    return next((cores for cores in found if cores is not None), None)


def _busy_seconds() -> float | None:
    """Return the time that the cores of this process have worked since the machine was started."""
    try:
        allowed = {f"cpu{core}" for core in os.sched_getaffinity(0)}
        ticks = 0
        for line in _STAT.read_text("ascii").splitlines():
            name, *counts = line.split()
            if name in allowed:
                user, nice, system, _idle, _waiting, interrupts, soft = map(int, counts[:7])
                ticks += user + nice + system + interrupts + soft
        return ticks / os.sysconf("SC_CLK_TCK")
    except (AttributeError, OSError, ValueError):
        return None


def _own_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
