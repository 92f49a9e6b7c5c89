"""How much memory this process holds, as the system counts it."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from pathlib import Path
from typing import Any

PHASES = ("load", "prepare", "first_run", "steady_run")
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_MAPS = Path("/proc/self/smaps")


class MemoryPhases:
    """Peaks of resident memory of the phases of a run.

    Where the system cannot reset a peak, that of a phase is the largest so far.
    """

    def __init__(self) -> None:
        self.peaks: dict[str, int | None] = dict.fromkeys(PHASES)
        self.are_separate = True
        self._largest: int | None = None

    def begin(self) -> None:
        """Start a phase."""
        self._seen()
        self.are_separate = forget_peak() and self.are_separate

    def end(self, phase: str) -> None:
        """Keep the peak since the start of a phase."""
        self.peaks[phase] = self._seen()

    def largest(self) -> int | None:
        """Return the peak of all phases and of the time between them, None if unknown."""
        self._seen()
        return self._largest

    def _seen(self) -> int | None:
        found = peak_bytes()
        if found is not None:
            self._largest = max(found, self._largest or 0)
        return found

    def report(self, program: str, idle: int | None, planned: int) -> dict[str, Any]:
        """Return the increase of each phase over the idle worker, and the parts of a steady run.

        Args:
            program: path of the program file
            idle: resident bytes before it was loaded
            planned: bytes of its planned buffers
        """
        increase = {
            phase: None if peak is None or idle is None else max(0, peak - idle)
            for phase, peak in self.peaks.items()
        }
        steady, file = increase["steady_run"], _file_bytes(program)
        # Planned buffers take memory where they are written to; kernels of delegates allocate
        # packed weights and workspace unseen, so these are in the rest.
        known = (file or 0) + planned
        parts = {
            "program_file": file if steady is not None else None,
            "planned_buffers": None if steady is None else min(planned, steady),
            "delegates": None,
            "other": None if steady is None else max(0, steady - known),
        }
        return {"increase": increase, "separate": self.are_separate, "steady_parts": parts}


def _file_bytes(path: str) -> int | None:
    """Return what a program file takes: its resident pages if it is mapped, else its copy."""
    try:
        return mapped_bytes(path) or os.path.getsize(path)
    except OSError:
        return None


def mapped_bytes(path: str) -> int | None:
    """Return how much of a mapped file is resident, 0 if it is not mapped, None if unknown."""
    try:
        lines = _MAPS.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    total, inside, name = 0, False, os.path.realpath(path)
    for line in lines:
        parts = line.split(maxsplit=5)
        if "-" in parts[0] and not parts[0].endswith(":"):
            inside = len(parts) == 6 and parts[5] == name
        elif inside and parts[0] == "Rss:":
            total += int(parts[1]) * 1024
    return total


def forget_peak() -> bool:
    """Reset the peak; return whether the system can."""
    try:
        _CLEAR.write_text("5", "ascii")
    except OSError:
        return False
    return True


def resident_bytes() -> int | None:
    """Return the resident memory of the process, None if unknown."""
    found = _memory()
    return None if found is None else int(found.rss)


def peak_bytes() -> int | None:
    """Return the peak of resident memory since ``forget_peak``, None if unknown.

    psutil reports a peak on Windows only. On Linux it is that of the kernel, which can be reset;
    elsewhere it counts from the start of the process.
    """
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = _STATUS.read_text("ascii", "replace").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    peak = getattr(_memory(), "peak_wset", None)
    return _since_start() if peak is None else int(peak)


def _memory() -> Any:  # noqa: ANN401 - of psutil, which has other members on each system
    """Return the memory of this process, None in a user's interpreter without psutil."""
    try:
        return importlib.import_module("psutil").Process().memory_info()
    except (ImportError, OSError):
        return None


def _since_start() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
