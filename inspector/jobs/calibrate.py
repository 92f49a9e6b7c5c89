"""A measurement of the limits of this machine, as a job for a worker."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.files.machine import usable_cores


@dataclass(frozen=True, slots=True)
class CalibrateJob:
    """A request to measure the peaks of matmuls and the bandwidth of the memory.

    Attributes:
        threads: counts to measure with, each by itself
        blocks: of each figure
        seconds: of a block, at least one matmul or copy
    """

    threads: tuple[int, ...] = (1,)
    blocks: int = 9
    seconds: float = 0.03


def usual_job(threads: int | None = None) -> CalibrateJob:
    """Return the request for one thread, one a core, and those asked for."""
    counts = {1, usable_cores(), *((threads,) if threads else ())}
    return CalibrateJob(tuple(sorted(counts)))
