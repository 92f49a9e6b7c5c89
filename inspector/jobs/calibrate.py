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


@dataclass(frozen=True, slots=True)
class CallCostsJob:
    """A request to measure what calls cost on a target, with small programs.

    Attributes:
        toolchain: of the runtime, empty for ours
        python: the interpreter with it, empty for the current one
        device: name of the device, empty for this machine
        blocks: of each program
    """

    toolchain: str = ""
    python: str = ""
    device: str = ""
    blocks: int = 7


def usual_job(threads: int | None = None) -> CalibrateJob:
    """Return the request for one thread, one a core, and those asked for."""
    counts = {1, usable_cores(), *((threads,) if threads else ())}
    return CalibrateJob(tuple(sorted(counts)))
