"""Results of a sweep: one a point, as plain data, and the file that holds them all."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any, cast

from inspector.experiments.sweeps.pareto import front
from inspector.files.load import POINTS
from schema.errors import FormatError
from schema.version import __version__

VERSION = 1
RESULTS = "results.json"
_LARGEST = 256 << 20  # bytes

# metric -> its unit, and whether more of it is better
METRICS: Mapping[str, tuple[str, bool]] = {
    "delegated": ("%", True),
    "delegates": ("count", False),
    "arena": ("B", False),
    "size": ("B", False),
    "latency": ("ms", False),
    "gap.max_abs": ("", False),
}
STATIC = ("delegated", "delegates", "arena", "size")


class Status(str, Enum):
    """How far a point is."""

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

    @property
    def folder(self) -> str:
        """Return the folder of its files, below that of the sweep."""
        return f"{POINTS}/{self.key}"

    def content(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {**asdict(self), "status": self.status.value, "files": list(self.files)}


@dataclass(frozen=True, slots=True)
class Results:
    """All results of a sweep.

    Attributes:
        recipe: file of the recipe that was varied
        fields: that were varied
        points: in the order of the grid
        objectives: metrics that the Pareto front is of
    """

    recipe: str
    fields: tuple[str, ...]
    points: tuple[PointResult, ...]
    objectives: tuple[str, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the metrics that some point has."""
        return tuple(name for name in METRICS if any(name in one.metrics for one in self.points))

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
            "units": {name: METRICS[name][0] for name in self.metrics},
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
    """Return a metric as a number of which less is better; one that is not known is worst."""
    value = one.metrics.get(name)
    if value is None or math.isnan(value):
        return math.inf
    return -value if METRICS[name][1] else value


def results_text(results: Results) -> str:
    """Return the file of the results."""
    return json.dumps(results.content(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_results(path: Path) -> Results:
    """Return the results in a file, or in the folder of a sweep.

    Raises: FormatError if it holds none; OSError
    """
    place = path / RESULTS if path.is_dir() else path
    size = place.stat().st_size
    if size > _LARGEST:
        raise FormatError("results of a sweep", f"{size:,} bytes", file=str(place))
    try:
        content = json.loads(place.read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError("results of a sweep as JSON", str(error), file=str(place)) from error
    return results_from(content, str(place))


def results_from(content: object, place: str) -> Results:
    """Return the results in a JSON object that ``Results.content`` made.

    Raises: FormatError
    """
    found = _object(content, place, "results")
    if found.get("sweep") != VERSION:
        told = f"{found.get('sweep', 'nothing')!r:.40}"
        raise FormatError(f"results of version {VERSION}", told, field="sweep", file=place)
    points = [
        point_from(one, place, f"points[{number}]")
        for number, one in enumerate(_list(found.get("points"), place, "points"))
    ]
    objectives = _texts(found.get("objectives"), place, "objectives")
    unknown = [name for name in objectives if name not in METRICS]
    if unknown:
        raise FormatError(
            f"one of {', '.join(METRICS)}", f"{unknown[0]!r:.40}", field="objectives", file=place
        )
    fields = _texts(found.get("fields"), place, "fields")
    recipe = found.get("recipe")
    return Results(recipe if isinstance(recipe, str) else "", fields, tuple(points), objectives)


def point_from(content: object, place: str, where: str = "") -> PointResult:
    """Return the result of a point in a JSON object.

    Raises: FormatError
    """
    found = _object(content, place, where)
    status = found.get("status")
    if status not in [one.value for one in Status]:
        words = ", ".join(one.value for one in Status)
        raise FormatError(words, f"{status!r:.40}", field=f"{where}.status", file=place)
    key = found.get("key")
    if not isinstance(key, str) or not key.isalnum():  # it is a path below the folder
        raise FormatError("a key", f"{key!r:.40}", field=f"{where}.key", file=place)
    files = _texts(found.get("files", []), place, f"{where}.files")
    if any(PurePosixPath(one).is_absolute() or ".." in PurePosixPath(one).parts for one in files):
        raise FormatError("paths below the point", str(files), field=f"{where}.files", file=place)
    return PointResult(
        number=_whole(found.get("number"), place, f"{where}.number"),
        key=key,
        changes=_object(found.get("changes"), place, f"{where}.changes"),
        status=Status(status),
        sentence=str(found.get("sentence") or ""),
        metrics=_numbers(found.get("metrics", {}), place, f"{where}.metrics"),
        seconds={
            name: value or 0.0
            for name, value in _numbers(found.get("seconds", {}), place, f"{where}.seconds").items()
        },
        attempts=_whole(found.get("attempts", 0), place, f"{where}.attempts"),
        files=files,
        settings=_object(found.get("settings", {}), place, f"{where}.settings"),
    )


def _object(value: object, place: str, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FormatError("an object", f"{value!r:.40}", field=where, file=place)
    return cast("dict[str, Any]", value)


def _list(value: object, place: str, where: str) -> list[object]:
    if not isinstance(value, list):
        raise FormatError("a list", f"{value!r:.40}", field=where, file=place)
    return cast("list[object]", value)


def _texts(value: object, place: str, where: str) -> tuple[str, ...]:
    found = _list(value, place, where)
    if not all(isinstance(one, str) for one in found):
        raise FormatError("texts", f"{value!r:.40}", field=where, file=place)
    return tuple(cast("list[str]", found))


def _whole(value: object, place: str, where: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise FormatError("a whole number", f"{value!r:.40}", field=where, file=place)
    return value


def _numbers(value: object, place: str, where: str) -> dict[str, float | None]:
    found = _object(value, place, where)
    for name, number in found.items():
        fine = number is None or type(number) in (int, float)
        if not fine or (number is not None and not math.isfinite(number)):
            raise FormatError(
                "a number or null", f"{number!r:.40}", field=f"{where}.{name}", file=place
            )
    return found
