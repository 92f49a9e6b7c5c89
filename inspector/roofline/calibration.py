"""The measured limits of a machine: peaks of matmuls by dtype, and the bandwidth of its memory.

``etscope roofline --calibrate`` measures them in a worker. They are kept in the user's cache
folder, one file for each machine: processor, cores, release of torch.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from inspector.files.machine import Machine, this_machine, torch_release
from schema.errors import FormatError
from schema.objects.atomic_file import write_atomically
from schema.objects.codec import read_versioned, to_json

VERSION = 1
DTYPES = ("float32", "float16", "bfloat16", "int8")
COPY, TRIAD = "copy", "triad"
STALE_DAYS = 90  # a machine whose system, clock or cooling changed is measured anew
_LARGEST = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A limit that was measured.

    Attributes:
        what: dtype of matmuls, or the kind of memory traffic
        threads: of torch
        median: over blocks
        low: 10 % quantile over blocks
        high: 90 % quantile over blocks
        blocks: number of blocks

    Units: FLOP/s or bytes/s
    """

    what: str
    threads: int
    median: float
    low: float
    high: float
    blocks: int

    @property
    def spread(self) -> float:
        """Return the distance of the quantiles as a fraction of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """The limits of a machine.

    Attributes:
        machine: measured
        torch: its release
        date: of the measurement, ISO 8601 in UTC
        compute: peaks of matmuls
        memory: bandwidths of arrays far beyond the caches
        missing: dtypes whose matmuls are not supported here
        version: of the file
    """

    machine: Machine
    torch: str
    date: str
    compute: tuple[Ceiling, ...] = ()
    memory: tuple[Ceiling, ...] = ()
    missing: tuple[str, ...] = field(default=())
    version: int = VERSION

    def peak(self, dtype: str, threads: int) -> Ceiling | None:
        """Return the peak of a dtype, None where it was not measured for that many threads."""
        return _best(self.compute, threads, (dtype,))

    def bandwidth(self, threads: int) -> Ceiling | None:
        """Return the highest bandwidth, None where it was not measured for that many threads."""
        return _best(self.memory, threads, (COPY, TRIAD))

    @property
    def threads(self) -> tuple[int, ...]:
        """Return the numbers of threads that were measured."""
        return tuple(sorted({one.threads for one in self.memory}))

    def age_days(self, now: datetime | None = None) -> float:
        """Return how long ago it was measured, infinite for an invalid date."""
        return age_days(self.date, now)

    @property
    def stale(self) -> bool:
        """Return whether it should be measured again."""
        return is_stale(self.date)

    @property
    def described(self) -> str:
        """Return the machine, the date and torch in words."""
        again = f", {self.age_days():.0f} days old: calibrate again" if self.stale else ""
        return f"{self.machine}, torch {self.torch}, measured {self.date[:10]}{again}"


def age_days(date: str, now: datetime | None = None) -> float:
    """Return how long ago a date was, infinite for an invalid one."""
    try:
        then = datetime.fromisoformat(date)
    except ValueError:
        return float("inf")
    aware = then if then.tzinfo is not None else then.replace(tzinfo=timezone.utc)
    return ((now or datetime.now(timezone.utc)) - aware).total_seconds() / 86400


def is_stale(date: str) -> bool:
    """Return whether measurements of a date are outdated."""
    return age_days(date) > STALE_DAYS


def _best(ceilings: Iterable[Ceiling], threads: int, what: tuple[str, ...]) -> Ceiling | None:
    found = [one for one in ceilings if one.threads == threads and one.what in what]
    return max(found, key=lambda one: one.median, default=None)


def calibration_file(machine: Machine | None = None, torch: str | None = None) -> Path:
    """Return where the calibration of a machine is kept, by default of this one."""
    one = this_machine() if machine is None else machine
    release = torch_release() if torch is None else torch
    key = json.dumps([one.cpu, one.cores, one.system, release])
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    return calibration_folder() / f"calibration-{name}.json"


def calibration_folder() -> Path:
    """Return the folder of measurements, that of the user's caches."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "etscope"


def load_calibration() -> Calibration | None:
    """Return the calibration of this machine, None if there is none.

    Raises: FormatError for a file that is not one, or one of another machine
    """
    path = calibration_file()
    if not path.is_file():
        return None
    found = read_calibration(path)
    if found.machine != this_machine() or found.torch != torch_release():
        expected = f"a calibration of {this_machine()}, torch {torch_release()}"
        raise FormatError(expected, found.described, file=str(path))
    return found


def read_calibration(path: Path) -> Calibration:
    """Return the calibration in a file.

    Raises: FormatError, OSError
    """
    return read_versioned(path, Calibration, "a calibration", ("version", VERSION), _LARGEST)


def save_calibration(found: Calibration) -> Path:
    """Write a calibration into the cache, in place of an earlier one; return the file.

    Raises: OSError
    """
    return save_measured(calibration_file(found.machine, found.torch), found)


def save_measured(path: Path, found: object) -> Path:
    """Write the measurements as JSON into the cache; return the file.

    Raises: OSError
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_json(found), indent=1)
    write_atomically(path, lambda file: file.write(text.encode()))
    return path
