"""How often a program is run, and in which passes: warm-up, timed with a trace, bare without one.

Timed and bare runs take turns in blocks, so that what changes slowly on the machine changes both,
and what the trace costs is the difference between them. Everything stops as soon as more runs would
not make the figure better.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from inspector.trace.steady import steady_runs

Once = Callable[[], float]
Counted = Callable[[int, int], None]

SLOW_MS = 300.0  # programs that take longer run in blocks of one
_WARM_MS, _WARM_BLOCK_MS = 2_000.0, 20.0
_ALIKE_BLOCKS, _ALIKE = 3, 0.03
_BLOCK_MS, _PASS_MS = 50.0, 3_000.0
_LEAST, _LEAST_SLOW, _MOST = 10, 3, 200
_CLOSE = 0.02  # half of the 95 % interval of the mean, of the mean
_NORMAL = 1.96
_BLOCKS = 5  # that a number of runs is divided into
_SAY_EVERY = 0.1  # seconds between two reports on how far it is


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes after the first inference.

    Units: ms

    Attributes:
        warmup: runs before anything counts
        steady: whether the last of them were alike; None where their number was given
        timed: runs with a trace; empty where none was wanted
        bare: runs without
    """

    warmup: tuple[float, ...] = ()
    steady: bool | None = None
    timed: tuple[float, ...] = ()
    bare: tuple[float, ...] = ()


def warm_up(
    once: Once, count: int | None, first_ms: float
) -> tuple[tuple[float, ...], bool | None]:
    """Run until the times are alike; return them, and whether they became so.

    Args:
        once: runs the program and returns its time
        count: how often; None to run until three blocks are alike, at most 2 s
        first_ms: the first inference of all; one that took longer has warmed up everything
    """
    times: list[float] = []
    if count is not None:
        return tuple(once() for _ in range(count)), None
    blocks: list[float] = []
    while sum(times) < _WARM_MS and first_ms < _WARM_MS:
        block = _block(once, _WARM_BLOCK_MS, _MOST)
        times += block
        blocks.append(sum(block) / len(block))
        last = blocks[-_ALIKE_BLOCKS:]
        if len(last) == _ALIKE_BLOCKS and max(last) <= min(last) * (1 + _ALIKE):
            return tuple(times), True
    return tuple(times), False


def measured(
    bare: Once, timed: Once | None, count: int | None, counted: Counted
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Run with and without a trace in turns; return the times of the timed and the bare runs.

    Args:
        bare: runs the program without a trace and returns its time in ms
        timed: runs it with one; None for none
        count: runs of each; None to stop when the mean of the bare ones is known to 2 %, when they
            have taken 3 s, or after 200
        counted: called with the number of finished runs and of all runs
    """
    passes: list[tuple[Once, list[float]]] = [(bare, [])]
    if timed is not None:
        passes.append((timed, []))
    most = _MOST if count is None else count
    share = most if count is None else math.ceil(count / _BLOCKS)
    said, total = time.monotonic(), most * len(passes)
    while not all(_enough(times, count) for _, times in passes):
        for once, times in passes:
            if not _enough(times, count):
                times += _block(once, _BLOCK_MS, min(share, most - len(times)))
        passes.reverse()  # neither always follows the other
        if time.monotonic() - said > _SAY_EVERY:
            said = time.monotonic()
            counted(sum(len(times) for _, times in passes), total)
    found = {id(once): tuple(times) for once, times in passes}
    return found.get(id(timed), ()), found[id(bare)]


def _block(once: Once, block_ms: float, most: int) -> list[float]:
    """Run until a time is over; one run that takes long is a block."""
    times = [once()]
    while sum(times) < block_ms and len(times) < most and times[-1] < SLOW_MS:
        times.append(once())
    return times


def _enough(times: Sequence[float], count: int | None) -> bool:
    if count is not None:
        return len(times) >= count
    slow = bool(times) and min(times) > SLOW_MS
    if len(times) < (_LEAST_SLOW if slow else _LEAST):
        return False
    return slow or len(times) >= _MOST or sum(times) >= _PASS_MS or _is_close(times)


def _is_close(times: Sequence[float]) -> bool:
    """Return whether the mean of the steady set is known well enough."""
    values = np.asarray(times)
    steady = values[steady_runs(values)]
    error = _NORMAL * float(steady.std(ddof=1)) / math.sqrt(len(steady))
    return error <= _CLOSE * float(steady.mean())
