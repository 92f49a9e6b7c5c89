"""How much memory this process holds, as the system counts it."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> None:
    """Let the peak begin anew, where the system can."""
    with contextlib.suppress(OSError):
        _CLEAR.write_text("5", "ascii")


def resident_bytes() -> int | None:
    """Return what the process holds now, None where the system does not say."""
    return _line("VmRSS:")


def peak_bytes() -> int | None:
    """Return the most it has held since ``forget_peak``, None where the system does not say."""
    found = _line("VmHWM:")
    return found if found is not None else _since_start()


def _line(name: str) -> int | None:
    try:
        lines = _STATUS.read_text("ascii", "replace").splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith(name)), "").split()
    return int(found[1]) * 1024 if len(found) > 1 and found[1].isdigit() else None


def _since_start() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
