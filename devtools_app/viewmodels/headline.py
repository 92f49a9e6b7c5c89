"""The time of a method: its headline with its spread, and the parts that add up to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from devtools_app.viewmodels.status import StatusFacts
from inspector.profile.methods import LOGGING, TRACING, VALUES_LOGGED, MethodTime, plain_tag
from inspector.tables.glossary import definition
from inspector.tables.selection import Units
from inspector.trace.run_times import RunTimes
from inspector.units import Quantity, choose_unit, exact_text, format_time
from schema.objects.plural import plural
from schema.origins import weakest

_NS = 1e6  # a millisecond in nanoseconds
WITHOUT_TRACE = "without a trace"
_VIEWS = {"delegates": "partitions", "operators": "operators"}  # that show a part


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of the time of a method.

    Attributes:
        word: kind: delegates, operators, control, unattributed, or what tracing takes off
        nanoseconds: mean over runs
        share: of the whole, 0 to 1; None where the times are not the program's
        text: with its unit
        exact: unrounded
        view: view that shows it
    """

    word: str
    nanoseconds: float
    share: float | None
    text: str
    exact: str
    view: str


@dataclass(frozen=True, slots=True)
class TimeSum:
    """The distribution of the time of a method; the slices add up to the total.

    Attributes:
        method: method that ran, empty if the trace does not name it
        whole: its time with its unit, empty if unknown
        runs: the runs that it is the mean of, in ms; None if unknown
        unit: of the headline and all of its parts
        slices: its parts
        reason: why the time is unknown, else empty
        spread: median and percentiles, empty for few runs
        kept: how many runs are steady, and which are left out
        badges: how it was measured, each with its meaning: origin, trace, noise, assumed unit
        hatched: whether values were logged, so that the times are not the program's
    """

    method: str = ""
    whole: str = ""
    runs: RunTimes | None = None
    unit: str = "auto"
    slices: tuple[Slice, ...] = ()
    reason: str = ""
    spread: str = ""
    kept: str = ""
    badges: tuple[tuple[str, str], ...] = ()
    hatched: bool = False


def time_sum(facts: StatusFacts, units: Units) -> TimeSum:
    """Return the parts of a method's time; the last one is unattributed."""
    time = facts.time
    if time is None:
        return TimeSum(reason=facts.why_no_time)
    unit = choose_unit(Quantity.TIME, time.latency_ms * _NS, units.time).symbol
    logged = VALUES_LOGGED in map(plain_tag, facts.tags)
    return TimeSum(
        time.method,
        format_time(time.latency_ms * _NS, unit),
        time.headline,
        unit,
        _slices(time, unit, shared=0.0 if logged else time.method_ms),
        spread=_spread(time, unit, logged=logged),
        kept=_kept(time.headline),
        badges=_badges(time, facts.tags),
        hatched=logged,
    )


def _slices(time: MethodTime, unit: str, shared: float) -> tuple[Slice, ...]:
    return tuple(
        Slice(
            word,
            part * _NS,
            part / shared if shared and word not in (LOGGING, TRACING) else None,
            f"{'−' if part < 0 else ''}{format_time(abs(part) * _NS, unit)}",
            exact_text(round(part * _NS, 3), Quantity.TIME),
            _VIEWS.get(word, "timeline"),
        )
        for word, part in time.latency_parts
        if part
    )


def _spread(time: MethodTime, unit: str, *, logged: bool) -> str:
    runs, found = time.headline, list[str]()
    if runs.median is not None and runs.p10 is not None and runs.p90 is not None:
        low, high = (format_time(ms * _NS, unit) for ms in (runs.p10, runs.p90))
        found.append(f"median {format_time(runs.median * _NS, unit)}, p10 to p90 {low} to {high}")
    if time.bare is not None:
        what = "values logged" if logged else "a trace"
        found.append(f"with {what} {format_time(time.method_ms * _NS, unit)}")
    return " · ".join(found)


def _kept(runs: RunTimes) -> str:
    kept = f"mean of {plural(len(runs.steady), 'steady run')}"
    return f"{kept}, without {left}" if (left := runs.left_out()) else kept


def _badges(time: MethodTime, tags: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return how the headline was measured, the origin of the times of delegates first."""
    found: list[tuple[str, str]] = []
    if (origin := weakest(time.origins)) is not None:
        found.append((origin.value, time.origin_words or f"delegates are {origin.words}"))
    tag = time.tag or WITHOUT_TRACE
    found.append((tag, definition(tag)))
    if time.headline.noise:
        found.append((f"noisy ({time.headline.noise})", time.headline.noise_words()))
    return (*found, *((one, definition(plain_tag(one))) for one in tags))
