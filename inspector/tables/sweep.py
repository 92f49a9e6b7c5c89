"""A sweep as a table, and any two of its metrics as points, Pareto-optimal ones marked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inspector.experiments.sweeps.grid import value_text
from inspector.experiments.sweeps.results import (
    PointResult,
    Results,
    Status,
    best_of,
    metric_of,
    read_results,
)
from inspector.tables.selection import Units
from inspector.tables.table import (
    Column,
    Table,
    badge_column,
    number_column,
    text_column,
)
from inspector.units import (
    NS_PER_MS,
    NS_PER_S,
    Quantity,
    Unit,
    choose_unit,
    column_formatter,
    format_quantity,
)

# metric -> what it counts, and how many of its base units the sweep's unit is
_QUANTITIES: Mapping[str, tuple[Quantity, float]] = {
    "delegated": (Quantity.SHARE, 0.01),
    "delegates": (Quantity.COUNT, 1.0),
    "arena": (Quantity.SIZE, 1.0),
    "size": (Quantity.SIZE, 1.0),
    "latency": (Quantity.TIME, NS_PER_MS),
    "gap.max_abs": (Quantity.PLAIN, 1.0),
    "eval.top1": (Quantity.SHARE, 1.0),
}
_OTHER = (Quantity.PLAIN, 1.0)
_TONES = {"done": "good", "failed": "bad"}
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # round decimal steps between ticks
_BINARY_STEPS = (1.0, 2.0, 4.0, 8.0, 16.0)  # round steps for bytes
_TICKS = 5
BEST = "best"


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction of the plot.

    Attributes:
        title: metric with its unit
        low: value at its beginning, in base units
        high: value at its end
        quantity: of the values
        unit: of the labels
    """

    title: str
    low: float
    high: float
    quantity: Quantity
    unit: Unit

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Return value and label of each mark of the whole axis."""
        return self.ticks_between(self.low, self.high)

    def ticks_between(self, low: float, high: float) -> tuple[tuple[float, str], ...]:
        """Return value and label of each mark of a part of the axis, in base units."""
        return _ticks(low, high, self.unit, self.quantity)

    def share(self, value: float) -> float:
        """Return the position of a value, 0 at the beginning and 1 at the end."""
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of the plot.

    Attributes:
        key: of the point in the sweep
        x: value across, in base units
        y: value up, in base units
        best: whether it is Pareto-optimal
        words: shown on hover
    """

    key: str
    x: float
    y: float
    best: bool
    words: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """Two metrics of the points that have both.

    Attributes:
        across: axis to the right
        up: axis upwards
        dots: one per point
        left_out: number of points without both
    """

    across: Axis
    up: Axis
    dots: tuple[Dot, ...]
    left_out: int

    def front(self) -> tuple[Dot, ...]:
        """Return the dots that are Pareto-optimal, from left to right."""
        return tuple(sorted((dot for dot in self.dots if dot.best), key=lambda dot: (dot.x, dot.y)))


def sweep_table(results: Results, time_unit: str = "auto", size_unit: str = "auto") -> Table:
    """Return one row per point: its changes, its state, its metrics."""
    points = results.points
    titles = short_titles(results.fields)
    fields = [
        text_column(title, [value_text(one.changes.get(field)) for one in points], mono=True)
        for field, title in titles.items()
    ]
    first = [name for name in results.objectives if name in results.metrics]
    names = (*first, *(name for name in results.metrics if name not in first))
    state = badge_column(
        "state",
        [one.status.value for one in points],
        tone=lambda value: _TONES.get(str(value), "muted"),
    )
    front = badge_column(
        "front",
        [BEST if best else None for best in results.best()],
        tone=lambda _value: "accent",
        explain=lambda _value: f"no other point beats it in {', '.join(results.objectives)}",
    )
    whole = all(one.status is Status.DONE for one in points)  # then there is nothing to see in it
    return Table(
        (
            number_column("#", [one.number for one in points], Quantity.COUNT),
            *(() if whole else (state,)),
            front,
            *fields,
            *(_metric(points, name, time_unit, size_unit) for name in names),
            *_noises(points),
            *((state,) if whole else ()),
            number_column("compile", _compile_times(points), Quantity.TIME, missing="—"),
            text_column("why", [one.sentence for one in points], missing=""),
        ),
        len(points),
        keys=[one.key for one in points],
        noun="points",
    )


def _noises(points: Sequence[PointResult]) -> list[Column]:
    """Return how noisy the runs of the latency were, if those of some point were."""
    if not any(one.noise for one in points):
        return []
    words = [f"noisy ({one.noise})" if one.noise else None for one in points]
    return [badge_column("times", words, tone=lambda _value: "warn")]


def _compile_times(points: Sequence[PointResult]) -> list[float | None]:
    known = [one.seconds.get("compile") for one in points]
    return [None if seconds is None else seconds * NS_PER_S for seconds in known]


def sweep_points(folder: Path, units: Units) -> Table:
    """Return the points of the sweep in a folder.

    Raises: FormatError if it holds none; OSError
    """
    return sweep_table(read_results(folder), units.time, units.size)


def short_titles(fields: Sequence[str]) -> dict[str, str]:
    """Return a title for each field: its last word, the whole where two would be the same."""
    ends = [field.rpartition(".")[2] for field in fields]
    return {
        field: field if ends.count(end) > 1 else end
        for field, end in zip(fields, ends, strict=True)
    }


def _metric(points: Sequence[PointResult], name: str, time_unit: str, size_unit: str) -> Column:
    quantity, _ = _QUANTITIES.get(name, _OTHER)
    unit = {Quantity.TIME: time_unit, Quantity.SIZE: size_unit}.get(quantity, "auto")
    values = [in_base(name, one.metrics.get(name)) for one in points]
    missing = "—" if any(one.status is not Status.DONE for one in points) else "missing"
    return number_column(name, values, quantity, unit=unit, missing=missing)


def in_base(name: str, value: float | None) -> float | None:
    """Return a metric in the base unit of its quantity."""
    return None if value is None else value * _QUANTITIES.get(name, _OTHER)[1]


def axes_of(results: Results) -> tuple[tuple[str, str], ...]:
    """Return the metrics a point can be drawn by, each with its direction of improvement."""
    return tuple(
        (f"{name} ({'more' if (metric_of(name) or ('', True))[1] else 'less'} is better)", name)
        for name in results.metrics
    )


def first_axes(results: Results) -> tuple[str, str]:
    """Return the metrics that are drawn at first: the objectives, if there are two that vary."""
    names = [name for name in results.objectives if name in results.metrics]
    names += [name for name in results.metrics if name not in names]
    found = {name: {one.metrics.get(name) for one in results.points} - {None} for name in names}
    names.sort(key=lambda name: len(found[name]) == 1)
    return (names[1], names[0]) if len(names) > 1 else (names[0], names[0]) if names else ("", "")


def scatter(
    results: Results, across: str, up: str, time_unit: str = "auto", size_unit: str = "auto"
) -> Scatter | None:
    """Return two metrics as points; None when no point has both."""
    best = best_of(results.points, (across, up))
    dots: list[Dot] = []
    for one, front in zip(results.points, best, strict=True):
        x, y = in_base(across, one.metrics.get(across)), in_base(up, one.metrics.get(up))
        if one.status is not Status.DONE or x is None or y is None:
            continue
        dots.append(Dot(one.key, x, y, front, _tooltip(one, (across, up))))
    if not dots:
        return None
    units = (time_unit, size_unit)
    return Scatter(
        _axis(across, [dot.x for dot in dots], units),
        _axis(up, [dot.y for dot in dots], units),
        tuple(dots),
        len(results.points) - len(dots),
    )


def _tooltip(one: PointResult, names: Sequence[str]) -> str:
    changes = ", ".join(f"{field}={value_text(value)}" for field, value in one.changes.items())
    values = [f"{name} {metric_text(one, name)}" for name in dict.fromkeys(names)]
    if one.noise and "latency" in names:
        values.append(f"noisy ({one.noise})")
    return "\n".join([f"{one.number}: {changes}", *values])


def metric_text(one: PointResult, name: str) -> str:
    """Return a metric of a point with its unit."""
    return format_quantity(in_base(name, one.metrics.get(name)), _QUANTITIES.get(name, _OTHER)[0])


def _axis(name: str, values: Sequence[float], units: tuple[str, str]) -> Axis:
    quantity, _ = _QUANTITIES.get(name, _OTHER)
    choice = {Quantity.TIME: units[0], Quantity.SIZE: units[1]}.get(quantity, "auto")
    unit = choose_unit(quantity, max(map(abs, values)), choice)
    low, high = min(values), max(values)
    room = (high - low) * 0.08 or abs(high) * 0.1 or unit.factor
    least = 0.0 if low >= 0 else -math.inf
    low, high = max(low - room, least), high + room
    title = f"{name} / {unit.symbol}" if unit.symbol else name
    return Axis(title, low, high, quantity, unit)


def _ticks(
    low: float, high: float, unit: Unit, quantity: Quantity
) -> tuple[tuple[float, str], ...]:
    """Return round values between two ends, in the unit that is shown."""
    span = (high - low) / unit.factor
    steps, base = (_BINARY_STEPS, 16.0) if quantity is Quantity.SIZE else (_STEPS, 10.0)
    power = base ** math.floor(math.log(span / _TICKS, base))
    step = next(power * one for one in (*steps, steps[-1]) if power * one >= span / _TICKS)
    if quantity is Quantity.COUNT:
        step = max(1.0, round(step))
    first = math.ceil(low / unit.factor / step)
    last = math.floor(high / unit.factor / step)
    every = (number * step * unit.factor for number in range(first, last + 1))
    values = [value for value in every if low <= value <= high]
    largest = max(map(abs, values), default=0.0)
    text = column_formatter(quantity, unit, largest)
    if quantity is Quantity.COUNT:
        return tuple((value, text(value)) for value in values)
    # enough digits to tell neighbours apart; 4 are those of a whole axis
    parts = largest / unit.factor / step
    digits = max(4, math.ceil(math.log10(parts)) + 1 if parts > 1 else 0)
    grouped = "" if quantity is Quantity.PLAIN else ","
    return tuple((value, f"{value / unit.factor:{grouped}.{digits}g}") for value in values)
