"""Results of a sweep: one a point, as plain data, and the file that holds them all."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any

from inspector.experiments.gates.requirement import EVAL
from inspector.experiments.sweeps.pareto import front
from inspector.files.written_folders import POINTS
from inspector.files.written_folders import RESULTS as RESULTS
from schema.errors import FormatError
from schema.objects.codec import from_json, read_versioned, to_json
from schema.version import __version__

VERSION = 1
_LARGEST = 256 << 20  # bytes

# metric -> its unit, and whether more of it is better
METRICS: Mapping[str, tuple[str, bool]] = {
    "delegated": ("%", True),
    "delegates": ("count", False),
    "arena": ("B", False),
    "size": ("B", False),
    "latency": ("ms", False),
    "gap.max_abs": ("", False),
    "eval.snr": ("dB", True),
    "eval.cosine": ("", True),
    "eval.max_abs": ("", False),
    "eval.mean_abs": ("", False),
    "eval.top1": ("", True),
}
_USERS = ("", True)  # metrics of the user, such as an accuracy
STATIC = ("delegated", "delegates", "arena", "size")


def metric_of(name: str) -> tuple[str, bool] | None:
    """Return unit of a metric, and whether more of it is better; None for an unknown one.

    Any other name behind ``eval.`` is a metric of the user, of which more is better.
    """
    users = name.removeprefix(EVAL)
    return METRICS.get(name) or (_USERS if users != name and users.isidentifier() else None)


class Status(str, Enum):
    """States of a point."""

    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PointResult:
    """The result of a point.

    Units: metrics as in ``METRICS``; seconds s

    Attributes:
        number: place in the grid
        key: name of its folder below ``points``
        changes: field -> value
        status: done, failed, or waiting while it is neither
        sentence: why it failed, empty otherwise
        metrics: name -> value; None where there is none
        seconds: what was done -> how long it took
        attempts: how often it was begun
        files: paths below its folder
        settings: how it was run, to know whether the settings are the same now
        noise: how noisy the runs of the latency were: empty, or slight, moderate, severe
    """

    number: int
    key: str
    changes: Mapping[str, Any]
    status: Status = Status.WAITING
    sentence: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    attempts: int = 0
    files: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    noise: str = ""

    @property
    def folder(self) -> str:
        """Return the folder of its files, below that of the sweep."""
        return f"{POINTS}/{self.key}"

    def content(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return to_json(self)


@dataclass(frozen=True, slots=True)
class Results:
    """All results of a sweep.

    Attributes:
        recipe: file of the recipe that was varied
        fields: that were varied
        points: in the order of the grid
        objectives: metrics of the Pareto front
    """

    recipe: str
    fields: tuple[str, ...]
    points: tuple[PointResult, ...]
    objectives: tuple[str, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the metrics that some point has."""
        found = dict.fromkeys(name for one in self.points for name in one.metrics)
        known = [name for name in METRICS if name in found]
        return (*known, *(name for name in found if name not in METRICS and metric_of(name)))

    def best(self) -> tuple[bool, ...]:
        """Return which points no other one beats in all objectives."""
        return best_of(self.points, self.objectives)

    def count(self, status: Status) -> int:
        """Return how many points are in a state."""
        return sum(one.status is status for one in self.points)

    def content(self) -> dict[str, Any]:
        """Return the results as a JSON object."""
        return {
            "sweep": VERSION,
            "etscope": __version__,
            "recipe": self.recipe,
            "fields": list(self.fields),
            "objectives": list(self.objectives),
            "units": {name: _known(name)[0] for name in self.metrics},
            "points": [
                {**one.content(), "folder": one.folder, "pareto": best}
                for one, best in zip(self.points, self.best(), strict=True)
            ],
        }


def best_of(points: Sequence[PointResult], objectives: Sequence[str]) -> tuple[bool, ...]:
    """Return which points no other one beats in all of some metrics; only finished ones."""
    rows = [
        [_worth(one, name) for name in objectives] if one.status is Status.DONE else None
        for one in points
    ]
    return front(rows)


def _worth(one: PointResult, name: str) -> float:
    """Return a metric as a number to minimize; an unknown one is worst."""
    value = one.metrics.get(name)
    if value is None or math.isnan(value):
        return math.inf
    return -value if _known(name)[1] else value


def _known(name: str) -> tuple[str, bool]:
    return metric_of(name) or _USERS


def results_text(results: Results) -> str:
    """Return the file of the results."""
    return json.dumps(results.content(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_results(path: Path) -> Results:
    """Return the results in a file, or in the folder of a sweep.

    Raises: FormatError if it holds none; OSError
    """
    place = path / RESULTS if path.is_dir() else path
    return _results(
        read_versioned(place, _ResultsFile, "results of a sweep", ("sweep", VERSION), _LARGEST)
    )


@dataclass(frozen=True, slots=True)
class _ResultsFile:
    """A file of results."""

    recipe: str
    fields: tuple[str, ...]
    objectives: tuple[str, ...]
    points: tuple[PointResult, ...]

    def __post_init__(self) -> None:
        """Raise ValueError for an objective that is not a metric, or what no point has."""
        for one in self.points:
            _check(one)
        unknown = [name for name in self.objectives if metric_of(name) is None]
        if unknown:
            known = ", ".join(METRICS)
            raise ValueError(f"objectives: expected one of {known}, found {unknown[0]!r:.40}")


def _results(found: _ResultsFile) -> Results:
    return Results(found.recipe, found.fields, found.points, found.objectives)


def point_from(content: object, place: str) -> PointResult:
    """Return the result of a point in a JSON object.

    Raises: FormatError
    """
    found = from_json(content, PointResult, place)
    try:
        _check(found)
    except ValueError as error:
        raise FormatError("the result of a point", str(error), file=place) from error
    return found


def _check(point: PointResult) -> None:
    """Raise ValueError for what would name files elsewhere, or is not a finite number."""
    if not point.key.isalnum():  # it is a path below the folder
        raise ValueError(f"key: expected letters and digits, found {point.key!r:.40}")
    for one in map(PurePosixPath, point.files):
        if one.is_absolute() or ".." in one.parts:
            raise ValueError(f"files: expected paths below the point, found {str(one)!r:.40}")
    if point.number < 0 or point.attempts < 0:
        raise ValueError("number, attempts: expected counts, found a negative number")
    for name, value in point.metrics.items():
        if value is not None and not math.isfinite(value):
            raise ValueError(f"metrics.{name}: expected a number or null, found {value}")
