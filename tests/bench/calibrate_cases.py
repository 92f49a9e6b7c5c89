"""Calibration beside a matmul and a copy that are written by hand, in turns on one thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from inspector.jobs.calibrate import CalibrateJob
from inspector.roofline.calibration import COPY
from inspector.worker.calibrating import measure
from tests.bench.result import Result

_SIDE, _COUNT, _LIMIT = 1024, 1 << 26, 0.15


def _rate(amount: int, once: Callable[[], object]) -> float:
    once()
    found: list[float] = []
    for _ in range(15):
        start = time.perf_counter()
        once()
        found.append(amount / (time.perf_counter() - start))
    return statistics.median(found)


def calibration(_folder: Path) -> Iterable[Result]:
    """Peak of float32 and bandwidth of a copy, against loops of this file."""
    torch.set_num_threads(1)
    one, two = torch.randn(2, _SIDE, _SIDE)
    matmul = _rate(2 * _SIDE**3, lambda: one @ two)
    given, taken = torch.ones(_COUNT), torch.zeros(_COUNT)
    copy = _rate(8 * _COUNT, lambda: taken.copy_(given))
    found = measure(CalibrateJob(), lambda *_args, **_more: None)
    peak = found.peak("float32", 1)
    bandwidth = next(one for one in found.memory if one.what == COPY)
    assert peak is not None
    for name, own, hand in (("matmul", peak.median, matmul), ("copy", bandwidth.median, copy)):
        detail = f"calibration {own / 1e9:.1f} G/s, by hand {hand / 1e9:.1f} G/s"
        yield Result(f"calibration of {name}", abs(own / hand - 1), "x", _LIMIT, detail=detail)


CALIBRATE_CASES = (calibration,)
