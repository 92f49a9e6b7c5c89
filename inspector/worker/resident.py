"""How much memory this process holds, as the system counts it."""

from __future__ import annotations

import contextlib
import importlib
import sys
from pathlib import Path
from typing import Any

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> None:
    """Reset the peak, where the system can."""
    with contextlib.suppress(OSError):
        _CLEAR.write_text("5", "ascii")


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
