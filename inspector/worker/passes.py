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
from inspector.worker.exporter import Say, timed_stage

Once = Callable[[], float]
Counted = Callable[[int, int], None]
Stopped = Callable[[], bool]

SLOW_MS = 300.0  # programs that take longer run in blocks of one
WARM_MS = 2_000.0  # programs that take longer are not warmed up
_WARM_BLOCK_MS = 20.0
_ALIKE_BLOCKS, _ALIKE = 3, 0.03
_BLOCK_MS, _PASS_MS = 50.0, 3_000.0
_LEAST, _LEAST_SLOW, _MOST = 10, 3, 200
_REHEARSED, _REHEARSED_SLOW = 3, 1
_CLOSE = 0.02  # half of the 95 % interval of the mean, of the mean
_NORMAL = 1.96
_BLOCKS = 5  # that a number of runs is divided into
_SAY_EVERY = 0.1  # seconds between two reports on how far it is


def never() -> bool:
    """Return that nothing asked for an end."""
    return False


@dataclass(frozen=True, slots=True)
class Kinds:
    """How a program is run; each returns the time of one run in ms.

    Attributes:
        warm: to warm up
        bare: without a trace
        timed: with one, None where none is wanted
        rehearsed: with a trace of which nothing is kept, before the timed runs; or None
    """

    warm: Once
    bare: Once
    timed: Once | None = None
    rehearsed: Once | None = None


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes after the first inference.

    Units: ms

    Attributes:
        warmup: runs before anything counts
        steady: whether the last of them were alike; None where their number was given
        timed: runs with a trace; empty where none was wanted
        bare: runs without
        rehearsed: runs with a trace before the timed ones
        stopped: whether they were ended early by the user
        requested: timed and bare runs that were asked for; None where their number was open
    """

    warmup: tuple[float, ...] = ()
    steady: bool | None = None
    timed: tuple[float, ...] = ()
    bare: tuple[float, ...] = ()
    rehearsed: int = 0
    stopped: bool = False
    requested: int | None = None


def run_passes(
    kinds: Kinds,
    counts: tuple[int | None, int | None],
    first_ms: float,
    notify: Say,
    stopped: Stopped = never,
) -> Passes:
    """Warm up, then run with and without a trace in turns.

    Args:
        kinds: how the program is run
        counts: runs of each pass and of the warm-up; None to run until their times are known
        first_ms: the first inference
        notify: called with stages, progress, and the expected duration for slow programs
        stopped: whether the user has asked for an end
    """
    count, warmup = counts
    times, steady, rehearsed = (), None, 0
    if warmup is not None:
        _tell(kinds, counts, first_ms, notify)
    if warmup != 0:
        with timed_stage(notify, "warm up"):
            times, steady = warm_up(kinds.warm, warmup, first_ms, stopped)
            run_ms = min((first_ms, *times))
            if warmup is None:
                _tell(kinds, counts, run_ms, notify)
            for _ in range(_rehearsals(run_ms) if kinds.rehearsed is not None else 0):
                if kinds.rehearsed is not None and not stopped():
                    kinds.rehearsed()
                    rehearsed += 1

    def counted(done: int, total: int) -> None:
        notify("counted", done=done, total=total)

    with timed_stage(notify, "measure"):
        timed, bare = measured(kinds.bare, kinds.timed, count, counted, stopped)
    each = _runs_wanted(count, min((first_ms, *times, *bare)))
    requested = None if each is None else each * (1 if kinds.timed is None else 2)
    early = stopped() and (requested is None or len(timed) + len(bare) < requested)
    return Passes(times, steady, timed, bare, rehearsed, early, requested)


def _tell(kinds: Kinds, counts: tuple[int | None, int | None], run_ms: float, notify: Say) -> None:
    """Report the expected duration of a slow program; a warm-up without a number is over."""
    count, warmup = counts
    runs = _runs_wanted(count, run_ms)
    if run_ms <= SLOW_MS or runs is None:
        return
    timed = runs if kinds.timed is not None else 0
    before = (warmup or 0) + (_rehearsals(run_ms) if kinds.rehearsed and warmup != 0 else 0)
    seconds = run_ms * (runs + timed + before) / 1e3
    notify("expected", run_ms=run_ms, timed=timed, bare=runs, seconds=seconds)


def _rehearsals(run_ms: float) -> int:
    return _REHEARSED_SLOW if run_ms > SLOW_MS else _REHEARSED


def _runs_wanted(count: int | None, run_ms: float) -> int | None:
    """Return the runs of a pass, None where they depend on their times."""
    return count if count is not None else _LEAST_SLOW if run_ms > SLOW_MS else None


def warm_up(
    once: Once, count: int | None, first_ms: float, stopped: Stopped = never
) -> tuple[tuple[float, ...], bool | None]:
    """Run until the times are alike; return them, and whether they became so.

    Args:
        once: runs the program and returns its time
        count: how often; None to run until three blocks are alike, at most 2 s
        first_ms: the first inference of all; one that took longer has warmed up everything
        stopped: whether to end early
    """
    times: list[float] = []
    if count is not None:
        while len(times) < count and not stopped():
            times.append(once())
        return tuple(times), None
    blocks: list[float] = []
    while sum(times) < WARM_MS and first_ms < WARM_MS and not stopped():
        block = _block(once, _WARM_BLOCK_MS, _MOST, stopped)
        times += block
        blocks.append(sum(block) / len(block))
        last = blocks[-_ALIKE_BLOCKS:]
        if len(last) == _ALIKE_BLOCKS and max(last) <= min(last) * (1 + _ALIKE):
            return tuple(times), True
    return tuple(times), False


def measured(
    bare: Once,
    timed: Once | None,
    count: int | None,
    counted: Counted,
    stopped: Stopped = never,
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Run with and without a trace in turns; return the times of the timed and the bare runs.

    Args:
        bare: runs the program without a trace and returns its time in ms
        timed: runs it with one; None for none
        count: runs of each; None to stop when the mean of the bare ones is known to 2 %, when they
            have taken 3 s, or after 200
        counted: called with the number of finished runs and of all runs
        stopped: whether to end with the runs there are
    """
    bare_times, timed_times = list[float](), list[float]()
    passes = [(bare, bare_times)]
    if timed is not None:
        passes.append((timed, timed_times))
    most = _MOST if count is None else count
    share = most if count is None else math.ceil(count / _BLOCKS)
    message = time.monotonic()
    while not stopped() and not all(_enough(times, count) for _, times in passes):
        for once, times in passes:
            if not stopped() and not _enough(times, count):
                times += _block(once, _BLOCK_MS, min(share, most - len(times)), stopped)
        passes.reverse()  # neither always follows the other
        if time.monotonic() - message > _SAY_EVERY:
            message = time.monotonic()
            fastest = min((min(times) for _, times in passes if times), default=0.0)
            total = (_runs_wanted(count, fastest) or most) * len(passes)
            counted(sum(len(times) for _, times in passes), total)
    return tuple(timed_times), tuple(bare_times)


def _block(once: Once, block_ms: float, most: int, stopped: Stopped) -> list[float]:
    """Run until a time is over; one run that takes long is a block."""
    times = [once()]
    while sum(times) < block_ms and len(times) < most and times[-1] < SLOW_MS and not stopped():
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
