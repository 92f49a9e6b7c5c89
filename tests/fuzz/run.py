"""The fuzz loop: seeded cases over the corpus, each timed, the process' memory watched."""

from __future__ import annotations

import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.fuzz.mutate import mutant
from tests.fuzz.open_all import open_all

DATA = Path(__file__).parents[1] / "data"
SUFFIXES = (".pte", ".ptd", ".bpte", ".etrecord", ".etdp")
SECONDS = 5.0
MEMORY_MIB = 200


class HangError(Exception):
    """A case took longer than the limit."""


@dataclass(slots=True)
class Report:
    """What a run found.

    Attributes:
        outcomes: number of cases by outcome
        failures: one text a failing case, with the seed that repeats it
        slowest_s: longest case
        growth_mib: how much the process grew over its size before the first case
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    growth_mib: float = 0.0


def corpus() -> list[Path]:
    """Return the files that are damaged, in a stable order."""
    return sorted(path for path in DATA.rglob("*") if path.suffix in SUFFIXES)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise HangError when the body runs longer."""

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise HangError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(cases: int, seed: int = 0) -> Report:
    """Run seeded cases in turn over all files."""
    files = corpus()
    report = Report()
    open_all(files[0].read_bytes(), "warm-up")
    base = _resident_mib()
    for number in range(cases):
        path = files[number % len(files)]
        _case(path, seed * 1_000_003 + number, report, base)
    return report


def _case(path: Path, seed: int, report: Report, base: float) -> None:
    original = path.read_bytes()
    name, data = mutant(original, seed)
    label = f"{path.relative_to(DATA)} seed {seed} ({name}, {len(data)} bytes)"
    start = time.perf_counter()
    try:
        with time_limit(SECONDS):
            outcome = open_all(data, path.suffix[1:])
    except Exception:  # noqa: BLE001 - every escape is a finding
        outcome = "failed"
        report.failures.append(f"{label}\n{traceback.format_exc(limit=-4)}")
    report.slowest_s = max(report.slowest_s, time.perf_counter() - start)
    report.outcomes[outcome] += 1
    report.growth_mib = max(report.growth_mib, _resident_mib() - base)
    if report.growth_mib > MEMORY_MIB + 4 * len(data) / 2**20 and outcome != "failed":
        report.failures.append(f"{label}: the process grew by {report.growth_mib:.0f} MiB")


def _resident_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
