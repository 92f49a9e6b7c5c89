"""The fuzz loop: seeded cases over the corpus, each timed, its memory watched."""

from __future__ import annotations

import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.fuzz.aware import aware_mutant
from tests.fuzz.memory import Peak, bound_mib
from tests.fuzz.mutate import mutant
from tests.fuzz.open_all import open_all

DATA = Path(__file__).parents[1] / "data"
SUFFIXES = (".pte", ".ptd", ".bpte", ".etrecord", ".etdp")
SECONDS = 5.0
_WAITING = 20  # times as long may pass on a busy machine
DAMAGES = {"bytes": mutant, "fields": aware_mutant}


class HangError(Exception):
    """A case took longer than the limit."""


@dataclass(slots=True)
class Report:
    """What a run found.

    Attributes:
        outcomes: number of cases by outcome
        failures: one text a failing case, with the seed that repeats it
        slowest_s: longest case
        peak_mib: most memory that a case took above what the process had before it
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    peak_mib: float = 0.0


def corpus() -> list[Path]:
    """Return the files that are damaged, in a stable order."""
    return sorted(path for path in DATA.rglob("*") if path.suffix in SUFFIXES)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise HangError when the body computes longer; how busy the machine is does not count."""

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise HangError(f"more than {seconds} s")

    before = [signal.signal(one, ring) for one in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, _WAITING * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, before[0])
        signal.signal(signal.SIGALRM, before[1])


def damage_of(rng: random.Random) -> str:
    """Return which kind of damage a case gets."""
    return rng.choice(tuple(DAMAGES))


def run(cases: int, seed: int = 0) -> Report:
    """Run seeded cases in turn over all files, through the decoders and the analyses."""
    files = corpus()
    report = Report()
    open_all(files[0].read_bytes(), "warm-up")
    for number in range(cases):
        _case(files[number % len(files)], seed * 1_000_003 + number, report)
    return report


def _case(path: Path, seed: int, report: Report) -> None:
    kind = damage_of(random.Random(f"kind {seed}"))
    name, data = DAMAGES[kind](path.read_bytes(), seed)
    label = f"{path.relative_to(DATA)} {kind} seed {seed} ({name}, {len(data)} bytes)"
    peak, start = Peak(), time.process_time()
    try:
        with time_limit(SECONDS):
            outcome = open_all(data, path.suffix[1:])
    except Exception:  # noqa: BLE001 - every escape is a finding
        outcome = "failed"
        report.failures.append(f"{label}\n{traceback.format_exc(limit=-4)}")
    report.slowest_s = max(report.slowest_s, time.process_time() - start)
    report.outcomes[outcome] += 1
    taken = peak.mib()
    report.peak_mib = max(report.peak_mib, taken)
    if taken > bound_mib(len(data)):
        report.failures.append(f"{label}: it took {taken:.0f} MiB")
