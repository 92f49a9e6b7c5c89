"""How much memory a case takes: the peak of the process above what it had before."""

from __future__ import annotations

import re
import resource
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
EXTRA_MIB, TIMES_FILE = 200, 4
ADDRESS_SPACE = 16 << 30


def bound_mib(nbytes: int) -> float:
    """Return how much files of this size may take."""
    return EXTRA_MIB + TIMES_FILE * nbytes / 2**20


class Peak:
    """Measures the peak since it was made; where the system cannot, that of the process."""

    def __init__(self) -> None:
        self._exact = _reset()
        self._before = self._read("VmRSS") if self._exact else _peak_of_process()

    def mib(self) -> float:
        """Return by how much the process was larger than at the start, at its largest."""
        return (self._read("VmHWM") if self._exact else _peak_of_process()) - self._before

    @staticmethod
    def _read(field: str) -> float:
        found = re.search(rf"{field}:\s+(\d+) kB", _STATUS.read_text("ascii", "replace"))
        return int(found[1]) / 1024 if found else 0.0


def _reset() -> bool:
    try:
        _RESET.write_text("5", "ascii")
    except OSError:
        return False
    return True


def _peak_of_process() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def limit_address_space() -> None:
    """Let what runs away end in a MemoryError instead of taking the machine with it."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, hard))
