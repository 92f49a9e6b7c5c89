"""Measures this machine in a worker: matmuls of each dtype, and traffic beyond the caches."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import torch

from inspector.files.machine import this_machine, torch_release
from inspector.jobs.calibrate import CalibrateJob
from inspector.roofline.calibration import (
    COPY,
    DTYPES,
    TRIAD,
    Calibration,
    Ceiling,
    save_calibration,
)
from inspector.worker.exporter import Say, timed_stage
from inspector.worker.tasks import Task
from schema.objects.codec import to_json

_SIDES = (256, 512, 1024)  # of square matmuls; the best of them counts
_SLOW = 0.01  # seconds of a matmul from which no larger one is tried: it would take 8 times as long
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_LEAST, _MOST = 64 << 20, 512 << 20  # bytes of an array
_TIMES_CACHE = 4
_INTEGER_MATMUL = "_int_mm"  # of int8 with sums of int32; it has no public name
_Once = Callable[[], object]


def work(job: CalibrateJob, task: Task) -> dict[str, Any]:
    """Measure, store the calibration in the cache of the user and return it.

    Raises: OSError if it cannot be written
    """
    found = measure(job, task.notify)
    path = save_calibration(found)
    return {**to_json(found), "file": str(path)}


def measure(job: CalibrateJob, notify: Say) -> Calibration:
    """Return the limits of this machine for each thread count of a request."""
    steps, done = len(job.threads) * (len(DTYPES) + 2), 0
    compute: list[Ceiling] = []
    memory: list[Ceiling] = []
    missing: list[str] = []

    def counted() -> None:
        nonlocal done
        done += 1
        notify("counted", done=done, total=steps)

    with timed_stage(notify, "calibrate"), torch.inference_mode():
        for threads in job.threads:
            torch.set_num_threads(threads)
            for dtype in DTYPES:
                peak = _peak(job, dtype, threads)
                compute += [peak] if peak is not None else []
                missing += [dtype] if peak is None and dtype not in missing else []
                counted()
            memory += _traffic(job, threads, counted)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    machine, release = this_machine(), torch_release()
    return Calibration(machine, release, now, tuple(compute), tuple(memory), tuple(missing))


def _peak(job: CalibrateJob, dtype: str, threads: int) -> Ceiling | None:
    """Return the peak of the best size, None if the dtype has no matmul here."""
    best, rate = 0, 0.0
    for side in _SIDES:
        try:
            once = matmul(dtype, side)
            once()  # allocates and packs
        except (RuntimeError, NotImplementedError):
            return None
        spent = timed(once)
        if 2 * side**3 / spent > rate:
            best, rate = side, 2 * side**3 / spent
        if spent > _SLOW:
            break
    return ceiling(job, dtype, threads, 2 * best**3, matmul(dtype, best))


def matmul(dtype: str, side: int) -> _Once:
    """Return a function that multiplies two square matrices.

    Raises: RuntimeError, NotImplementedError for a dtype without matmuls
    """
    generator = torch.Generator().manual_seed(0)
    if dtype == "int8":
        numbers = torch.randint(-8, 8, (2, side, side), generator=generator, dtype=torch.int8)
        multiply = getattr(torch.ops.aten, _INTEGER_MATMUL)
        return lambda: multiply(numbers[0], numbers[1])
    factors = torch.randn(2, side, side, generator=generator).to(getattr(torch, dtype))
    return lambda: torch.mm(factors[0], factors[1])


def _traffic(job: CalibrateJob, threads: int, counted: Callable[[], None]) -> list[Ceiling]:
    count = array_bytes() // 4
    one, two, three = (torch.full((count,), float(number)) for number in range(3))
    copied = ceiling(job, COPY, threads, 2 * 4 * count, lambda: three.copy_(one))
    counted()
    added = ceiling(
        job, TRIAD, threads, 3 * 4 * count, lambda: torch.add(one, two, alpha=3.0, out=three)
    )
    counted()
    return [copied, added]


def array_bytes() -> int:
    """Return a size far beyond the caches, that memory has room for three times."""
    found = _TIMES_CACHE * cache_bytes(_CACHES)
    return max(_LEAST, min(found, _MOST))


def cache_bytes(folder: Path) -> int:
    """Return the size of the largest cache of a processor, 0 if unknown.

    Source: cache/index*/size of sysfs, as in ``32768K``
    """
    sizes = [0]
    for path in folder.glob("index*/size"):
        try:
            text = path.read_text("ascii").strip()
            sizes.append(int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20}[text[-1:]])
        except (OSError, ValueError, KeyError):
            continue
    return max(sizes)


def ceiling(job: CalibrateJob, what: str, threads: int, each: int, once: _Once) -> Ceiling:
    """Return a limit from the rates of blocks.

    Args:
        job: number and duration of blocks
        what: its name
        threads: in use
        each: FLOPs or bytes of a call
        once: the call
    """
    once()
    rates: list[float] = []
    for _ in range(job.blocks):
        calls, start = 0, time.perf_counter()
        while not calls or time.perf_counter() - start < job.seconds:
            once()
            calls += 1
        rates.append(calls * each / (time.perf_counter() - start))
    low, median, high = (float(one) for one in np.percentile(rates, (10, 50, 90)))
    return Ceiling(what, threads, median, low, high, len(rates))


def timed(once: _Once) -> float:
    """Return the seconds of a call."""
    start = time.perf_counter()
    once()
    return max(time.perf_counter() - start, 1e-9)
