"""The duration of a sweep, estimated from the last compile and the last run."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.experiments.sweeps.task import SweepSettings
from inspector.units import NS_PER_S, format_estimate, format_time
from schema.objects.plural import plural


@dataclass(frozen=True, slots=True)
class KnownTimes:
    """How long the last jobs of the program took.

    Units: s

    Attributes:
        compile: the last compile, None if unknown
        run: the last run, None if unknown
        started: whether the compile was timed with the start of its worker
    """

    compile: float | None = None
    run: float | None = None
    started: bool = True


def seconds_of_sweep(
    points: int, settings: SweepSettings, workers: int, known: KnownTimes
) -> float | None:
    """Return how long a sweep takes at most, None if nothing was compiled yet.

    A point takes a compile; with runs a run as long as the last one, with a gap two more: one
    that logs values, and the comparison. Runs of unknown duration are not counted.
    """
    if known.compile is None:
        return None
    runs = (1 if settings.runs else 0) + (2 if settings.gap else 0)
    each = known.compile + runs * (known.run or 0.0)
    return each * points / max(1, min(workers, points))


def price_text(points: int, settings: SweepSettings, workers: int, known: KnownTimes) -> str:
    """Return number of points and estimated time in words."""
    count = plural(points, "point")
    seconds = seconds_of_sweep(points, settings, workers, known)
    if seconds is None:
        return f"{count} · time unknown: this program was not compiled here yet"
    parts = [f"compile {format_time((known.compile or 0.0) * NS_PER_S)}"]
    parts[0] += "" if known.started else " without the start of its worker"
    if settings.runs or settings.gap:
        run = (
            "not counted, none is known" if known.run is None else format_time(known.run * NS_PER_S)
        )
        parts.append(f"run {run}")
    parts += ["evaluation not counted"] if settings.data else []
    side = min(workers, points)
    at_once = f" with {side} at once" if side > 1 else ""
    return f"{count} · about {format_estimate(seconds)}{at_once} (last {', '.join(parts)})"
